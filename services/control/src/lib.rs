//! The control service: what keeps the platform moving after a command was accepted.
//!
//! Owns: the projector, the flows, the scheduling loop, the agents' endpoint, the clock that
//! closes months, and giving up nodes that are silent. Does
//! not own: rules (`domain`), placement (`scheduler-core`), people's edges (`tenant`, `portal`).
//! Invariants: everything here can be killed at any point and goes on from the log; nothing here writes but by commands
//! and folds; a part that stops says so and takes the whole process with it, rather than letting the others run blind.

mod agents;
mod erasures;
mod fleet;
mod fleets;
mod flows;
mod holds;
mod losses;
mod periods;
mod projector;
mod schedule;
mod versions;

pub use agents::router as agents_router;
pub use erasures::run as run_erasures;
pub use fleet::Fleet;
pub use fleets::Fleets;
pub use flows::run as run_flows;
pub use holds::extend_due;
pub use losses::{SILENCE_MAX, Watch, run as run_losses};
pub use periods::{close_due, run as run_periods};
pub use projector::{Stopped, rebuild, run as run_projector};
pub use schedule::run as run_schedule;
pub use versions::Versions;

use chrono::TimeDelta;
use eventlog::LogError;
use kit::Kit;
use tokio::task::JoinSet;

/// Runs every loop, each as a task, until one of them cannot go on; says why. Dropped, it ends them all. A node that is
/// silent for longer than `silence_max` is given up.
pub async fn run(kit: Kit, fleets: Fleets, silence_max: TimeDelta) -> Result<(), ControlError> {
    let mut loops = JoinSet::new();
    let of = || (kit.clone(), fleets.clone());
    let (own, _) = of();
    loops.spawn(async move { run_projector(&own).await });
    let (own, _) = of();
    loops.spawn(async move { run_flows(&own).await });
    let (own, fleet) = of();
    loops.spawn(async move { fleets::follow(&own, &fleet).await });
    let (own, fleet) = of();
    loops.spawn(async move { run_schedule(&own, &fleet).await });
    let (own, _) = of();
    loops.spawn(async move { run_periods(&own).await });
    let (own, _) = of();
    loops.spawn(async move { run_erasures(&own).await });
    let (own, fleet) = of();
    loops.spawn(async move { run_losses(&own, &fleet, silence_max).await });
    match loops.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(panicked)) => Err(ControlError::Panicked(panicked.to_string())),
        None => Ok(()),
    }
}

/// Why the control service cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The log did not answer, or holds what this version does not understand.
    #[error("the log: {0}")]
    Log(#[from] LogError),
    /// A database did not answer.
    #[error("the database: {0}")]
    Store(#[from] store::Error),
    /// An event of a known category that this version does not understand: an older version reads a newer log.
    #[error(transparent)]
    Unreadable(#[from] domain::Unreadable),
    /// A loop ended by a defect.
    #[error("a loop of the control service failed: {0}")]
    Panicked(String),
    /// A read model could not be folded.
    #[error(transparent)]
    Projection(#[from] Stopped),
    /// A key could not be destroyed.
    #[error(transparent)]
    Keys(#[from] kit::keys::KeysError),
    /// Somebody is still connected to the tables that a new version was to have.
    #[error("the tables of `{0}` are still in use; ask again once no server reads them")]
    InUse(String),
    /// No read model is folded any more; why was reported for each.
    #[error("every read model has stopped")]
    AllStopped,
}
