//! Following the log: first what there is, then what comes, in one order.
//!
//! Owns: waiting. Does not own: remembering how far a follower is, which it does with what it wrote (`store::checkpoint`).
//! Invariants: no event is left out or given twice; no gap is skipped by time. Dropping `next` loses nothing.

use crate::{Log, LogError};
use domain::kernel::Recorded;
use std::time::Duration;
use tokio::{sync::watch, time};

/// How many events come at once at most.
const PAGE: usize = 500;
/// How often the log is asked for the commits of other processes.
const POLL: Duration = Duration::from_millis(250);

/// A place in the log that moves on.
pub struct Subscription {
    log: Log,
    head: watch::Receiver<i64>,
    position: i64,
}

impl Subscription {
    /// Starts after a position; 0 is before the first event.
    pub fn after(log: Log, position: i64) -> Self {
        let head = log.head();
        Self { log, head, position }
    }

    /// Waits for the next events, at least one and at most 500, oldest first. After an error it may be called again.
    pub async fn next(&mut self) -> Result<Vec<Recorded>, LogError> {
        loop {
            // Marked as seen before reading, so that a commit in between wakes.
            self.head.borrow_and_update();
            let page = self.log.read_all(self.position, PAGE).await?;
            if let Some(last) = page.last() {
                self.position = last.position;
                return Ok(page);
            }
            let mut ended = false;
            let commit = async { ended = self.head.changed().await.is_err() };
            // Time is up: another process may have committed.
            let _ = time::timeout(POLL, commit).await;
            if ended {
                time::sleep(POLL).await;
            }
        }
    }

    /// The position of the last event that was given.
    pub fn position(&self) -> i64 {
        self.position
    }
}
