//! Allocation: work and the cards that it holds.
//!
//! Owns: jobs, leases (占用) and the record of placements. Does not own: which node is chosen (`scheduler-core`), what
//! hardware there is (`pools`), what it costs (`catalog`, `billing`).
//! Words: a job is what a tenant wants run; a placement is the decision where; a lease is the right to cards, cores and
//! memory of one node that follows from it. On failure: a placement that comes too late is voided; a lease ends on the
//! agent's word only.

pub mod demand;
pub mod job;
pub mod lease;
pub mod plan;

pub use demand::{Cards, Demand};
pub use job::Job;
pub use lease::Lease;
pub use plan::Plan;
