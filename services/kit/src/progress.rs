//! How far the read models and the flows are, and waiting until they are far enough.
//!
//! Owns: `Progress`, and the answer to who waits in vain. Does not own: moving it (`services/control`).
//! Invariant: a position is told only once everything up to it was applied.

use crate::Problem;
use axum::http::StatusCode;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a read waits for the read models.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A shared view of how far the read models are. The default is at no position.
#[derive(Debug, Clone)]
pub struct Progress {
    read_models: watch::Sender<i64>,
    flows: watch::Sender<i64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { read_models: watch::Sender::new(0), flows: watch::Sender::new(0) }
    }
}

impl Progress {
    /// Every read model shows all up to this position.
    pub fn read_models_reached(&self, position: i64) {
        self.read_models.send_replace(position);
    }

    /// The flows have handled all up to this position.
    pub fn flows_reached(&self, position: i64) {
        self.flows.send_replace(position);
    }

    /// The position up to which every read model shows all.
    pub fn read_models(&self) -> i64 {
        *self.read_models.borrow()
    }

    /// The position up to which the flows have handled all.
    pub fn flows(&self) -> i64 {
        *self.flows.borrow()
    }

    /// Wakes whenever the read models have moved on in this process.
    pub fn moved(&self) -> watch::Receiver<i64> {
        self.read_models.subscribe()
    }

    /// Waits until the read models show a position; after two seconds 503 `read.behind`.
    pub async fn shown(&self, position: i64) -> Result<(), Problem> {
        let mut read_models = self.read_models.subscribe();
        let reached = timeout(WAIT_MAX, read_models.wait_for(|at| *at >= position)).await;
        if matches!(reached, Ok(Ok(_))) {
            return Ok(());
        }
        let at = self.read_models();
        let detail = format!("the read models are at position {at} and do not show {position} yet");
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "read.behind", detail).with_hint("read it again"))
    }

    /// Waits until the flows have handled a position.
    pub async fn flowed(&self, position: i64) {
        // The sender lives as long as this does.
        let _ = self.flows.subscribe().wait_for(|at| *at >= position).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_what_comes_and_not_for_ever() {
        let progress = Progress::default();
        progress.read_models_reached(3);
        assert!(progress.shown(3).await.is_ok());
        assert_eq!(progress.shown(4).await.unwrap_err().code(), "read.behind");
        let (shown, ()) = tokio::join!(progress.shown(4), async { progress.read_models_reached(4) });
        assert!(shown.is_ok());
    }
}
