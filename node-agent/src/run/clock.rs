//! How long a job has run.
//!
//! Owns: the clocks. The node's own says when a job started, and a clock that nobody can set says how long it has run.
//! Invariants: a step of the node's clock changes no length of time; the time in which the machine is suspended does not
//! count; instants of two boots of a machine are never compared.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::{fs, time::Instant};

/// An instant that every process of this boot can compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The boot of the machine, `None` where the kernel does not tell it.
    pub boot: Option<String>,
    /// Since some instant of that boot, in milliseconds.
    pub ms: i64,
}

/// Runs from the start of a job, in its keeper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch {
    pub(super) started_at: DateTime<Utc>,
    since: Instant,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let time = clock_gettime(ClockId::Monotonic);
        let ms = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
        Self { boot: boot.map(|boot| boot.trim().to_owned()), ms }
    }

    /// How long ago an earlier one was, `None` unless both are known to be of one boot.
    pub fn since(&self, earlier: &Self) -> Option<TimeDelta> {
        let same = self.boot.is_some() && self.boot == earlier.boot;
        same.then(|| TimeDelta::milliseconds(self.ms.saturating_sub(earlier.ms).max(0)))
    }
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { started_at: now(), since: Instant::now() }
    }

    /// How long it has run, in milliseconds.
    pub(super) fn ms(&self) -> i64 {
        i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The start and how long it has run since: whatever the node's clock says by now.
    pub(super) fn at(&self) -> DateTime<Utc> {
        self.started_at.checked_add_signed(TimeDelta::milliseconds(self.ms())).unwrap_or(self.started_at)
    }
}

/// The node's time, to the millisecond.
pub(super) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_changes_no_length_of_time() {
        for days in [-400, 400] {
            let started_at = now() + TimeDelta::days(days);
            let watch = Stopwatch { started_at, ..Stopwatch::start() };
            assert!((0..60_000).contains(&(watch.at() - started_at).num_milliseconds()));
        }
    }

    #[test]
    fn moments_of_two_boots_are_not_compared() {
        let moment = |boot: Option<&str>, ms| Moment { boot: boot.map(str::to_owned), ms };
        let later = moment(Some("a"), 500);
        assert_eq!(later.since(&moment(Some("a"), 200)), Some(TimeDelta::milliseconds(300)));
        assert_eq!(later.since(&moment(Some("a"), 600)), Some(TimeDelta::zero()));
        assert_eq!(later.since(&moment(Some("b"), 200)), None);
        assert_eq!(later.since(&moment(None, 200)), None);
        assert_eq!(moment(None, 500).since(&moment(None, 200)), None);
        let now = Moment::now();
        assert!(now.boot.is_some() && Moment::now().since(&now).is_some());
    }
}
