//! How long to wait before asking again, and what is said of it.
//!
//! Owns: exponential backoff with jitter. Invariants: never longer than [`WAIT_MAX`]; an outage is logged when it
//! begins and when it is over, not at every try.

use crate::link::LinkError;
use std::{error::Error, iter, time::Duration};

/// The longest wait.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
const WAIT_FIRST_MS: u64 = 100;

/// The patience with one kind of call.
#[derive(Debug)]
pub struct Patience {
    call: &'static str,
    failures: u32,
}

impl Patience {
    /// For calls of this name.
    pub fn new(call: &'static str) -> Self {
        Self { call, failures: 0 }
    }

    /// How long to wait after this failure.
    pub fn after(&mut self, error: &LinkError) -> Duration {
        if self.failures == 0 {
            let causes: Vec<_> =
                iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
            let cause = causes.join(": ");
            tracing::warn!(call = self.call, %error, cause, "the server did not take a call; it is tried again");
        }
        let top = longest_ms(self.failures);
        self.failures = self.failures.saturating_add(1);
        // Half of it is left to chance, so that a thousand agents do not come back in the same instant.
        Duration::from_millis(rand::random_range(top / 2..=top))
    }

    /// A call went well.
    pub fn rewarded(&mut self) {
        if self.failures > 0 {
            tracing::info!(call = self.call, failures = self.failures, "the server takes calls again");
        }
        self.failures = 0;
    }
}

fn longest_ms(failures: u32) -> u64 {
    let max = u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX);
    WAIT_FIRST_MS.saturating_mul(1 << failures.min(16)).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_longer_and_longer_but_never_too_long() {
        assert_eq!([0, 1, 2, 5].map(longest_ms), [100, 200, 400, 3_200]);
        assert_eq!([6, 40, u32::MAX].map(longest_ms), [5_000; 3]);
    }

    #[test]
    fn starts_anew_after_a_success() {
        let (mut patience, away) = (Patience::new("test"), LinkError::Odd("nothing".into()));
        for _ in 0..10 {
            assert!(patience.after(&away) <= WAIT_MAX);
        }
        patience.rewarded();
        assert!(patience.after(&away) <= Duration::from_millis(WAIT_FIRST_MS));
    }
}
