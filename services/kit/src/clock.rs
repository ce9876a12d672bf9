//! The clock: the only place where an edge learns the time.
//!
//! Owns: `Clock`. Invariants: a time is cut to whole microseconds, as it is stored; a test's clock moves by hand only.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// Where the time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// Microseconds since 1970, moved by hand. Clones share it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at an instant until it is moved.
    pub fn manual(at: DateTime<Utc>) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at.timestamp_micros())))
    }

    /// The time, to the microsecond.
    pub fn now(&self) -> DateTime<Utc> {
        match self {
            Self::System => Utc::now().trunc_subsecs(6),
            Self::Manual(us) => DateTime::from_timestamp_micros(us.load(Ordering::SeqCst)).unwrap_or_default(),
        }
    }

    /// Moves a manual clock; the machine's clock cannot be moved.
    pub fn advance(&self, by: TimeDelta) {
        match self {
            Self::System => {}
            Self::Manual(us) => {
                us.fetch_add(by.num_microseconds().unwrap_or_default(), Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Timelike;

    #[test]
    fn is_cut_to_the_microsecond() {
        assert_eq!(Clock::System.now().nanosecond() % 1000, 0);
    }

    #[test]
    fn a_manual_clock_stands_until_it_is_moved() {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let same = clock.clone();
        assert_eq!(same.now(), DateTime::UNIX_EPOCH);
        clock.advance(TimeDelta::hours(1));
        assert_eq!(same.now(), DateTime::UNIX_EPOCH + TimeDelta::hours(1));
    }
}
