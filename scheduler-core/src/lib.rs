//! Which job runs where: a pure function from what is known to what should be. No clock, IO, randomness or float.
//!
//! Owns: the order of the queue, the choice of node and cards, and the reason of every job that waits.
//! Does not own: the facts (folded from the log by the control service), leases, quotas, preemption.
//!
//! Invariants, each a test:
//! - The same facts give the same plan, byte for byte, in whatever order nodes and jobs are listed.
//! - A card is given once; no room falls below nothing; a job gets all that it asks for on one node, or nothing.
//! - Each job is either placed or waiting, exactly once, and what waits has a typed [`Why`].
//! - A plan is a fixed point: once it is applied, planning again places nothing more.
//! - A job never changes what becomes of the jobs before it in the order.
//!
//! # The order, and what it does not promise
//!
//! Jobs are considered by priority (higher first), then by the order of submission. A job that cannot be placed does
//! not stop those behind it: they may take what it cannot use now. The guard against starving it by mistake is that
//! its place is never lost: nothing re-stamps it for having waited, so within its priority it is offered the room of
//! each new plan before any job that came later, and a later job runs in its stead only where it did not fit.
//!
//! The risk that stays: a large job waits for ever while smaller ones keep taking what falls free before enough of it
//! lies together, or while jobs of higher priority keep coming. The remedy is an operator's, and [`Why::advice`] says
//! so: hold the smaller jobs back for a while.
//!
//! Deliberately absent until the engine is replaced: reservations and time limits (so no start time is promised),
//! ageing, fair shares between tenants, preemption, gangs over several nodes, slices of a card, topology, and an index
//! over nodes (a plan looks at each node for each job).

mod demand;
mod digest;
mod facts;
mod fit;
mod plan;
mod score;
mod why;
mod words;

pub use demand::{Cards, Demand};
pub use facts::{Facts, FreeCard, Job, Node, Readiness, Room};
pub use fit::RoomSummary;
pub use plan::{Placement, Plan, Rule, plan};
pub use score::Score;
pub use why::{Shortage, Why};
pub use words::Lang;
