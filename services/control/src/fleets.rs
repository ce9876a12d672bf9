//! The fleet that a process shares: folded once, read by the scheduler and the agents, and waking whoever waits for it.
//!
//! Owns: following the log, and waking. Does not own: the fold (`fleet`).
//! Invariant: nobody waits while holding the fleet.

use crate::projector::{decode, patiently};
use crate::{ControlError, Fleet};
use chrono::{DateTime, Utc};
use domain::kernel::{NodeId, Recorded};
use eventlog::{Log, Subscription};
use kit::Kit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many events are folded at once.
const PAGE: usize = 500;

/// The fleet, shared; wakes those who wait.
#[derive(Debug, Clone, Default)]
pub struct Fleets {
    fleet: Arc<Mutex<Fleet>>,
    moved: watch::Sender<i64>,
}

impl Fleets {
    /// The fleet with all that the log has now. Agents are served only from then on: an older fleet would ask them to
    /// run what is over.
    pub async fn caught_up(log: &Log) -> Result<Self, ControlError> {
        let fleets = Self::default();
        loop {
            let from = fleets.position();
            let page = log.read_all(from, PAGE).await?;
            if page.is_empty() {
                return Ok(fleets);
            }
            fleets.fold(&page)?;
        }
    }

    fn fold(&self, page: &[Recorded]) -> Result<(), ControlError> {
        let events = decode(page)?;
        {
            let mut fleet = self.now();
            for (stored, event) in page.iter().zip(&events) {
                fleet.apply(stored, event.as_ref());
            }
        }
        self.wake();
        Ok(())
    }

    /// The fleet now. Nobody may wait while holding it.
    pub(crate) fn now(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of the last event that the fleet has.
    pub fn position(&self) -> i64 {
        self.now().position()
    }

    /// Wakes whenever the fleet moved.
    pub(crate) fn moved(&self) -> watch::Receiver<i64> {
        self.moved.subscribe()
    }

    /// Waits until the fleet has this position.
    pub(crate) async fn reached(&self, position: i64) {
        // The sender lives as long as this does.
        let _ = self.moved.subscribe().wait_for(|at| *at >= position).await;
    }

    fn wake(&self) {
        let position = self.now().position();
        self.moved.send_replace(position);
    }

    /// A node was heard of.
    pub(crate) fn saw(&self, node: NodeId, at: DateTime<Utc>) {
        let came_back = self.now().saw(node, at);
        if came_back {
            self.wake();
        }
    }
}

/// Folds what comes.
pub(crate) async fn follow(kit: &Kit, fleets: &Fleets) -> Result<(), ControlError> {
    let from = fleets.position();
    let mut log = Subscription::after(kit.executor.log().clone(), from);
    loop {
        let page = patiently(&mut log).await?;
        fleets.fold(&page)?;
    }
}
