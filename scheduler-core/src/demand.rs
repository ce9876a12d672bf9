//! What a job asks for, in the domain's words.
//!
//! Owns: nothing; the planner speaks of demands as jobs and leases do. Does not own: which demands are allowed (the
//! domain refuses a count of zero and amounts below zero; the planner gives nothing for them).

pub use domain::allocation::{Cards, Demand};
