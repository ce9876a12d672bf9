//! The real programs: a server and an agent, as processes that can be killed and stopped, and a connection between them
//! that can be cut.
//!
//! Owns: finding and starting the programs, ending them. Does not own: what a story does with them.
//! Invariants: whatever a test does, no process of it is left; what a program says is in a file of the test's folder.

mod programs;
pub mod proxy;

pub use programs::{Programs, programs};

use crate::world::PATIENCE;
use domain::kernel::LeaseId;
use kashi_agent::run::{Folder, end_all, of_lease};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};

const LOOK_EVERY: Duration = Duration::from_millis(20);
const CARDS: &str = "4";

/// Waits until something is so.
pub async fn until<F: Future<Output = bool>>(what: &str, question: impl Fn() -> F) {
    let mut ticks = interval(LOOK_EVERY);
    let asked = async {
        while !question().await {
            ticks.tick().await;
        }
    };
    assert!(timeout(PATIENCE * 3, asked).await.is_ok(), "waited in vain for {what}");
}

/// A process of ours.
pub struct Process(Child);

impl Process {
    /// Kills it at once.
    pub async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.0.wait().await.unwrap();
    }

    /// Asks it to end, and waits until it has.
    pub async fn end(mut self) {
        self.signal(Signal::TERM);
        assert!(timeout(PATIENCE, self.0.wait()).await.is_ok(), "it does not end when it is asked to");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            kill_process(pid, signal).unwrap();
        }
    }

    /// Stops it, and waits until all of it stands still: a thread may go on for a moment.
    pub async fn freeze(&self) {
        self.signal(Signal::STOP);
        let pid = self.0.id().unwrap();
        let still = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state comes after the name, which is in brackets.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        let frozen = async {
            while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(Result::unwrap).all(still) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, frozen).await.unwrap();
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

/// A server on a data folder, without an agent.
pub struct Server {
    pub process: Process,
    pub url: String,
    /// The secret of the first operator, where it was shown.
    pub secret: Option<String>,
}

impl Server {
    /// Starts one, `None` where it ended before it was up.
    pub async fn start(data: &Path, log: &Path) -> Option<Self> {
        let mut command = Command::new(&programs().kashi);
        command.args(["up", "--no-agent", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        let mut child = spawned(command.stdout(Stdio::piped()), log);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let greeting = timeout(PATIENCE, greeting(&mut lines)).await.expect("the server is not up in time");
        let (url, secret) = greeting?;
        // A pipe that nobody reads stops who writes.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self { process: Process(child), url, secret })
    }
}

/// The address, and the secret that is said after it as long as there is no operator. What is said next, or silence for
/// a moment, tells that there is one.
async fn greeting(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<(String, Option<String>)> {
    const UP: &str = "kashi is up at ";
    const SECRET: &str = "one-time secret of the first operator: ";
    let url = loop {
        let line = lines.next_line().await.ok()??;
        if let Some(rest) = line.strip_prefix(UP) {
            break rest.split_whitespace().next()?.to_owned();
        }
    };
    let next = timeout(LOOK_EVERY * 10, lines.next_line()).await;
    let secret = next.ok().and_then(|line| line.ok()??.strip_prefix(SECRET).map(str::to_owned));
    Some((url, secret))
}

/// Starts an agent on a data folder, with made-up cards.
pub fn agent(server: &str, data: &Path, token: &str, log: &Path) -> Process {
    let mut command = Command::new(&programs().agent);
    command.args(["--server", server, "--simulate-cards", CARDS, "--model", "a100", "--cores", "16000", "--data"]);
    command.arg(data).args(["--memory-mib", "16384"]).stdout(Stdio::null()).env("KASHI_JOIN_TOKEN", token);
    Process(spawned(&mut command, log))
}

fn spawned(command: &mut Command, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stderr(log).kill_on_drop(true).spawn().unwrap()
}

/// The leases that an agent's data folder holds.
pub fn leases(data: &Path) -> Vec<(LeaseId, PathBuf)> {
    let entries = fs::read_dir(data.join("leases")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// The keeper of a lease, where it lives.
pub fn keeper(folder: &Path) -> Option<Pid> {
    let folder = Folder::at(folder);
    let lives = folder.hold().ok().is_some_and(|held| held.is_none());
    let started = folder.started().ok()??;
    Pid::from_raw(started.keeper).filter(|_| lives)
}

/// Whether nothing of these leases runs any more.
pub fn nothing_runs(leases: impl IntoIterator<Item = LeaseId>) -> bool {
    leases.into_iter().all(|lease| of_lease(lease, None).is_empty())
}

/// Ends what an agent's data folder still runs.
pub fn sweep(data: &Path) {
    for (lease, folder) in leases(data) {
        if let Some(keeper) = keeper(&folder) {
            let _ = kill_process(keeper, Signal::KILL);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _ = std::thread::spawn(move || runtime.block_on(end_all(lease))).join();
    }
}
