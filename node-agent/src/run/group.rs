//! The processes of a lease: finding them and ending them.
//!
//! Owns: what counts as one of them: whoever is in the keeper's session, and whoever carries the lease's mark in the
//! environment it was started with, so also a child that left the session. Does not own: the keeper itself. Invariants:
//! a dead process that nobody has waited for does not count, it holds nothing any more.

use domain::kernel::LeaseId;
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::{fs, time::Duration};

const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// One living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    /// Its process group.
    pub group: i32,
}

/// The longer, the rarer: looking through all processes is not free.
#[derive(Debug)]
pub(super) struct Pause(Duration);

impl Pause {
    pub(super) fn new() -> Self {
        Self(PAUSE_FIRST)
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX);
        pause
    }
}

/// The living processes of a lease. The session is that of the keeper, where the keeper lives.
pub fn of_lease(lease: LeaseId, session: Option<Pid>) -> Vec<Process> {
    let mark = format!("KASHI_LEASE={lease}");
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let other = pids.filter(|&pid| pid != getpid() && Some(pid) != session);
    other.filter_map(|pid| belonging(pid, session, &mark)).collect()
}

/// Kills all processes of a lease that has no keeper any more, and waits until none is left. Whether there was any.
pub async fn end_all(lease: LeaseId) -> bool {
    let (mut pause, mut found) = (Pause::new(), false);
    loop {
        let left = of_lease(lease, None);
        if left.is_empty() {
            return found;
        }
        found = true;
        signal(&left, Signal::KILL);
        tokio::time::sleep(pause.next()).await;
    }
}

/// Sends a signal to each. One that has gone meanwhile needs none, and one that we may not signal is seen again.
pub(super) fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        let _ = kill_process(process.pid, signal);
    }
}

fn belonging(pid: Pid, session: Option<Pid>, mark: &str) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let (process, its_session) = parse(pid, &stat)?;
    let inside = session.is_some_and(|session| its_session == session.as_raw_pid());
    let marked = || {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|one| one == mark.as_bytes())
    };
    (inside || marked()).then_some(process)
}

/// The process and its session, unless it is dead. Its name is in brackets and may itself hold brackets and blanks.
fn parse(pid: Pid, stat: &str) -> Option<(Process, i32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some((Process { pid, group }, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_process_of_any_name_and_leaves_out_the_dead() {
        let pid = Pid::from_raw(7).unwrap();
        assert_eq!(parse(pid, "7 (a) R (b) S 1 2 3 0 -1"), Some((Process { pid, group: 2 }, 3)));
        assert_eq!(parse(pid, "7 (sh) Z 1 2 3 0 -1"), None);
        assert_eq!(parse(pid, "7 (sh"), None);
        assert_eq!(parse(pid, ""), None);
    }
}
