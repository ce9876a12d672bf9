//! A data folder with a runner in it, for tests that run real processes.
//!
//! Invariants: whatever a test does, no process of it is left.

use agent_protocol::{DesiredLease, Exit, Phase, Work};
use domain::kernel::{Id, JobId, LeaseId};
use kashi_agent::{
    run::{Runner, end_all, of_lease},
    state::Local,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use tokio::time::{interval, timeout};
use uuid::Uuid;

/// The agent's binary, which is also the keeper's.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kashi-agent");
/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Room {
    pub(crate) data: TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn runner(&self) -> Runner {
        Runner::open(self.data.path(), PROGRAM.into()).unwrap()
    }

    /// Kills whatever is left, and whether anything was.
    fn sweep(&self) -> bool {
        let mut left = false;
        for entry in fs::read_dir(self.data.path().join("leases")).into_iter().flatten().flatten() {
            let folder = kashi_agent::run::Folder::at(entry.path());
            let lease: LeaseId = entry.file_name().to_str().unwrap().parse().unwrap();
            let held = folder.hold().ok().is_some_and(|held| held.is_none()) && folder.ended().unwrap().is_none();
            let keeper = folder.started().unwrap().and_then(|started| Pid::from_raw(started.keeper));
            if let Some(keeper) = keeper.filter(|_| held) {
                let _ = kill_process(keeper, Signal::KILL);
            }
            left |= held || !of_lease(lease, None).is_empty();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            std::thread::spawn(move || runtime.block_on(end_all(lease))).join().unwrap();
        }
        left
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let left = self.sweep();
        assert!(!left || std::thread::panicking(), "a test left processes");
    }
}

pub(crate) fn work(command: &[&str]) -> Work {
    Work {
        command: command.iter().map(ToString::to_string).collect(),
        env: [].into(),
        folder: None,
        time_limit_s: None,
        milli_cores: 1000,
        memory_mib: 64,
        cards: Vec::new(),
    }
}

pub(crate) fn shell(script: &str) -> Work {
    work(&["/bin/sh", "-c", script])
}

pub(crate) fn wanted(work: Work) -> DesiredLease {
    let (lease, job) = (LeaseId::from_uuid(Uuid::now_v7()), JobId::from_uuid(Uuid::now_v7()));
    DesiredLease { lease, generation: 1, job, work, stop_after_ms: None }
}

/// Starts work and answers its lease.
pub(crate) async fn start(runner: &Runner, work: Work) -> LeaseId {
    let wanted = wanted(work);
    runner.start(&wanted).await.unwrap();
    wanted.lease
}

pub(crate) fn local(runner: &Runner, lease: LeaseId) -> Option<Local> {
    runner.observe().unwrap().into_iter().find(|local| local.lease == lease)
}

/// Waits for the end of a lease.
pub(crate) async fn exit(runner: &Runner, lease: LeaseId) -> Exit {
    let mut changed = runner.changed();
    let wait = async {
        loop {
            if let Some(Phase::Ended { exit, .. }) = local(runner, lease).and_then(|local| local.phase) {
                return exit;
            }
            // The keeper's word is on the disk a little before the runner hears of it.
            changed.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, wait).await.expect("the lease did not end in time")
}

/// Waits until something is so.
pub(crate) async fn until(what: impl Fn() -> bool) {
    let mut ticks = interval(Duration::from_millis(10));
    let wait = async {
        while !what() {
            ticks.tick().await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it did not come to be in time");
}

pub(crate) fn output(runner: &Runner, lease: LeaseId) -> Vec<u8> {
    fs::read(runner.folder(lease).output()).unwrap_or_default()
}

/// Waits until the job has written a line.
pub(crate) async fn says(runner: &Runner, lease: LeaseId, line: &str) {
    until(|| String::from_utf8_lossy(&output(runner, lease)).lines().any(|said| said == line)).await;
}

/// Whether a process is there and not dead.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
