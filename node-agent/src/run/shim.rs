//! The keeper of one job: a small process between the agent and the job, which outlives the agent.
//!
//! Owns: starting the job, its time limit, ending it, its exit. Does not own: whether it should run. Invariants: the
//! job is said to have ended only when none of its processes is left; a stop that was asked for at any moment, also
//! before the start, is heard; whatever happens is written down, or the keeper ends without a word and the agent sees
//! that; an end that was seen is kept in mind until it is on the disk, however long that takes; as long as the job runs,
//! a mark on the disk says so.

use super::{
    Ended, Folder, Moment, Started,
    clock::Stopwatch,
    folder::not_started,
    group::{self, Pause, of_lease, signal},
    launch,
};
use crate::reconcile::GRACE_MS;
use agent_protocol::{DesiredLease, Exit};
use anyhow::Context;
use rustix::process::{Pid, Signal, getpid, kill_process_group, setsid};
use std::{
    future,
    io::{self, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::ExitStatus,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};
use tokio::{
    process::Child,
    signal::unix::{Signal as Signals, SignalKind, signal as signals},
    time::{Instant, sleep, sleep_until},
};

/// How often the mark of a running job is renewed: what is not billed at most where the machine goes down.
const MARK_EVERY: Duration = Duration::from_secs(3);
/// How often an end that cannot be written is tried again.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Keeps the job in this folder, from its start to its end.
pub fn keep(path: &Path) -> anyhow::Result<()> {
    setsid().context("the keeper of a job is started by the agent only: it must not lead a process group")?;
    let folder = Folder::at(path);
    let wanted = folder.wanted()?.with_context(|| format!("`{}` holds no work.json", path.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // From here on a TERM is heard; the agent sends none before it can read `started.json`.
        let terms = signals(SignalKind::terminate())?;
        let ended = match start(&folder, &wanted) {
            Ok(Some(child)) => Job { folder: &folder, wanted: &wanted, child, terms }.live().await?,
            Ok(None) => Ended::now(Exit::Stopped),
            Err(reason) => Ended::now(not_started(&reason)),
        };
        write(&folder, &ended).await;
        say_ready();
        Ok(())
    })
}

/// Returns when the end is on the disk, or its folder is not.
async fn write(folder: &Folder, ended: &Ended) {
    let mut told = false;
    while let Err(error) = folder.write_ended(ended) {
        if !folder.path().exists() {
            return;
        }
        if !told {
            tracing::error!(%error, "the end of the job cannot be written; it is tried again");
        }
        told = true;
        sleep(WRITE_EVERY).await;
    }
}

/// A job that was started.
struct Job<'a> {
    folder: &'a Folder,
    wanted: &'a DesiredLease,
    child: Child,
    terms: Signals,
}

/// Starts it; `None` where it should end already.
fn start(folder: &Folder, wanted: &DesiredLease) -> Result<Option<Child>, String> {
    if folder.stop().map_err(|error| error.to_string())?.is_some() {
        return Ok(None);
    }
    let child = launch::command(wanted, folder)?.spawn();
    child.map(Some).map_err(|error| launch::reason(&wanted.work.command[0], &error))
}

/// Tells the agent, if it still listens, that there is something to read.
fn say_ready() {
    let mut pipe = io::stdout();
    let _ = pipe.write_all(b"\n").and_then(|()| pipe.flush());
}

/// Marks that the job runs, until what it answers is dropped. On a thread of its own: a slow disk keeps back no signal.
fn mark(folder: &Folder, watch: Stopwatch) -> Sender<()> {
    let (alive, over) = mpsc::channel();
    let folder = folder.clone();
    thread::spawn(move || {
        let mut told = false;
        while over.recv_timeout(MARK_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = folder.write_alive(watch.ms())
                && !std::mem::replace(&mut told, true)
            {
                tracing::warn!(%error, "the mark of a job that runs cannot be renewed; it is tried again");
            }
        }
    });
    alive
}

impl Job<'_> {
    async fn live(mut self) -> anyhow::Result<Ended> {
        let group = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = group.context("a process that was just started has an id")?;
        let watch = Stopwatch::start();
        let (started_at, since) = (watch.started_at, Some(Moment::now()));
        let started = Started { pid: pid.as_raw_pid(), keeper: getpid().as_raw_pid(), started_at, since };
        if let Err(error) = self.folder.write_started(&started) {
            self.end(pid, Duration::ZERO).await?;
            let reason = format!("it was ended at once, for the node cannot keep a record of it: {error}");
            return Ok(Ended { ended_at: started_at, exit: not_started(&reason) });
        }
        say_ready();
        let alive = mark(self.folder, watch);
        let limit = self.wanted.work.time_limit_s.map(|limit| u64::try_from(limit).unwrap_or(0));
        // A limit beyond what a clock can hold is none.
        let limit = limit.and_then(|limit| Instant::now().checked_add(Duration::from_secs(limit)));
        // A stop that was asked for before `started.json` could be read came without a signal.
        // Where it cannot be read, the agent asks again.
        let asked = self.folder.stop().is_ok_and(|stop| stop.is_some());
        let (exit, grace) = tokio::select! {
            biased;
            status = self.child.wait() => (exit(status?), Duration::ZERO),
            () = future::ready(()), if asked => (Exit::Stopped, self.grace()),
            _ = self.terms.recv() => (self.told(), self.grace()),
            () = at(limit) => (Exit::TimedOut, milliseconds(GRACE_MS)),
        };
        self.end(pid, grace).await?;
        drop(alive);
        Ok(Ended { ended_at: watch.at(), exit })
    }

    /// What a TERM means: the agent writes `stop.json` before it sends one, if the disk lets it; another sender, such as
    /// the machine going down, does not.
    fn told(&self) -> Exit {
        match self.folder.stop() {
            Ok(Some(_)) => Exit::Stopped,
            Ok(None) | Err(_) => Exit::Signal { signal: Signal::TERM.as_raw() },
        }
    }

    fn grace(&self) -> Duration {
        let stop = self.folder.stop().ok().flatten();
        milliseconds(stop.map_or(GRACE_MS, |stop| stop.grace_ms))
    }

    /// Ends what is left: TERM, then KILL after the grace, and no return before none is left. A further TERM can only
    /// shorten the grace. Without a grace it is KILL at once.
    async fn end(&mut self, group: Pid, grace: Duration) -> anyhow::Result<()> {
        let mut kill_at = Instant::now() + grace;
        if !grace.is_zero() {
            self.send(group, Signal::TERM)?;
            // A stopped process hears TERM only once it goes on.
            self.send(group, Signal::CONT)?;
        }
        let mut pause = Pause::new();
        loop {
            if Instant::now() >= kill_at {
                self.send(group, Signal::KILL)?;
            }
            if self.child.try_wait()?.is_some() && self.left().is_empty() {
                return Ok(());
            }
            tokio::select! {
                _ = self.terms.recv() => kill_at = kill_at.min(Instant::now() + self.grace()),
                () = sleep(pause.next()) => {}
            }
        }
    }

    fn left(&self) -> Vec<group::Process> {
        of_lease(self.wanted.lease, Some(getpid()))
    }

    /// To the group at once, so that none is born between two signals, and to those who left it.
    fn send(&mut self, group: Pid, what: Signal) -> io::Result<()> {
        let left = self.left();
        // The group's number is ours as long as its leader was not waited for or a member lives.
        let ours = self.child.id().is_some() || left.iter().any(|process| process.group == group.as_raw_pid());
        if ours {
            let _ = kill_process_group(group, what);
        }
        let others: Vec<_> = left.into_iter().filter(|process| process.group != group.as_raw_pid()).collect();
        signal(&others, what);
        Ok(())
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code { code },
        (None, Some(signal)) => Exit::Signal { signal },
        (None, None) => Exit::Vanished,
    }
}

fn milliseconds(ms: i64) -> Duration {
    // A day is for ever here, and can be added to any instant.
    Duration::from_millis(u64::try_from(ms).unwrap_or(0)).min(Duration::from_hours(24))
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => future::pending().await,
    }
}
