//! Quota (配额): how much a tenant may have at once, along the tree of a root and all below it. Capacity, not money (that is
//! `billing`).
//!
//! Owns: the ceilings, what orders hold under them, what jobs hold under the orders, and who waits. Does not own: the
//! tree, the order or the job. On failure: what finds no room is refused or waits, by an event that says the numbers.

pub mod allowance;

pub use allowance::Allowance;
