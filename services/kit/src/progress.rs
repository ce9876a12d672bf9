//! How far the read models and the flows are, and waiting until they are far enough.
//!
//! Owns: `Progress`, and the answer to who waits in vain. Does not own: moving it (`services/control`).
//! Invariants: a position is told only once everything up to it was applied, and never goes back; while the read models
//! are folded or another version of them is put in place, nobody else does either in this process.

use crate::Problem;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::timeout;

/// How long a read waits for the read models.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(2);

/// A shared view of how far the read models are. The default is at no position.
#[derive(Debug, Clone)]
pub struct Progress {
    read_models: watch::Sender<i64>,
    stops: watch::Sender<Stops>,
    flows: watch::Sender<i64>,
    switches: watch::Sender<u64>,
    folding: Arc<Mutex<()>>,
}

type Stops = BTreeMap<&'static str, Stop>;

/// Why and where a read model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The position of the event that could not be folded.
    pub position: i64,
    /// Why.
    pub cause: String,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            read_models: watch::Sender::new(0),
            stops: watch::Sender::default(),
            flows: watch::Sender::new(0),
            switches: watch::Sender::new(0),
            folding: Arc::default(),
        }
    }
}

impl Progress {
    /// Every read model shows all up to this position.
    pub fn read_models_reached(&self, position: i64) {
        forward(&self.read_models, position);
    }

    /// The flows have handled all up to this position.
    pub fn flows_reached(&self, position: i64) {
        forward(&self.flows, position);
    }

    /// A read model cannot be folded any further.
    pub fn stopped(&self, name: &'static str, stop: Stop) {
        self.stops.send_modify(|stops| drop(stops.insert(name, stop)));
    }

    /// A read model goes on after all.
    pub fn goes_on(&self, name: &'static str) {
        self.stops.send_modify(|stops| drop(stops.remove(name)));
    }

    /// Another version of the read models is in place, and shows all up to this position.
    pub fn switched(&self, position: i64) {
        self.stops.send_replace(Stops::new());
        forward(&self.read_models, position);
        self.switches.send_modify(|count| *count += 1);
    }

    /// Wakes whenever another version of the read models was put in place.
    pub fn switches(&self) -> watch::Receiver<u64> {
        self.switches.subscribe()
    }

    /// The turn to fold the read models, or to put another version in place.
    pub async fn folding(&self) -> MutexGuard<'_, ()> {
        self.folding.lock().await
    }

    /// The position up to which every read model shows all.
    pub fn read_models(&self) -> i64 {
        *self.read_models.borrow()
    }

    /// The read models that go no further.
    pub fn stops(&self) -> BTreeMap<&'static str, Stop> {
        self.stops.borrow().clone()
    }

    /// The position up to which the flows have handled all.
    pub fn flows(&self) -> i64 {
        *self.flows.borrow()
    }

    /// Wakes whenever the read models have moved on in this process.
    pub fn moved(&self) -> watch::Receiver<i64> {
        self.read_models.subscribe()
    }

    /// Waits until the read models show a position; after two seconds 503 `read.behind`. Where one of them has stopped
    /// before it, at once 503 `read.stopped`.
    pub async fn shown(&self, position: i64) -> Result<(), Problem> {
        let (mut read_models, mut stops) = (self.read_models.subscribe(), self.stops.subscribe());
        let stopped = |stops: &Stops| stops.values().any(|stop| stop.position <= position);
        let outcome = async {
            tokio::select! {
                biased;
                // The senders live as long as this does.
                _ = read_models.wait_for(|at| *at >= position) => Ok(()),
                Ok(stops) = stops.wait_for(stopped) => Err(why_stopped(&stops)),
            }
        };
        timeout(WAIT_MAX, outcome).await.unwrap_or_else(|_| {
            let at = self.read_models();
            let detail = format!("the read models are at position {at} and do not show {position} yet");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "read.behind", detail).with_hint("read it again"))
        })
    }

    /// Waits until the flows have handled a position.
    pub async fn flowed(&self, position: i64) {
        // The sender lives as long as this does.
        let _ = self.flows.subscribe().wait_for(|at| *at >= position).await;
    }
}

fn forward(to: &watch::Sender<i64>, position: i64) {
    to.send_if_modified(|at| {
        let on = position > *at;
        *at = position.max(*at);
        on
    });
}

fn why_stopped(stops: &Stops) -> Problem {
    let one = |(name, stop): (&&str, &Stop)| format!("`{name}` at position {}", stop.position);
    let which: Vec<String> = stops.iter().map(one).collect();
    let detail = format!("the read models show no more: stopped is {}", which.join(", "));
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "read.stopped", detail)
        .with_hint("an operator sees why with GET /api/v1/projections, and can make it anew")
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
        progress.read_models_reached(2);
        assert_eq!(progress.read_models(), 4, "it does not go back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_read_model_is_named_at_once() {
        let progress = Progress::default();
        progress.read_models_reached(3);
        let stop = || Stop { position: 5, cause: "a defect".into() };
        let begun = tokio::time::Instant::now();
        let (refused, ()) = tokio::join!(progress.shown(7), async { progress.stopped("orders", stop()) });
        let refused = refused.unwrap_err();
        assert_eq!((refused.code(), refused.status().as_u16()), ("read.stopped", 503));
        assert!(refused.detail().contains("`orders` at position 5"), "{}", refused.detail());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(progress.shown(3).await.is_ok(), "what is shown is shown");
        assert_eq!(progress.shown(4).await.unwrap_err().code(), "read.behind", "the others may come to 4");
        progress.switched(7);
        assert!(progress.shown(7).await.is_ok() && progress.stops().is_empty());
    }
}
