//! The stories of `domain::flows`, walked with a log in memory: what people, machines and the clock do is given as
//! commands, what follows is left to the flows.
//!
//! Owns: the stories, one file per context in `flows/`. Does not own: the single rules (tests of each aggregate), the
//! real log and its retries (`services`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

#[path = "flows/billing.rs"]
mod billing;
#[path = "flows/interleaving.rs"]
mod interleaving;
#[path = "flows/ordering.rs"]
mod ordering;
#[path = "flows/platform.rs"]
mod platform;
#[path = "flows/running.rs"]
mod running;
#[path = "flows/world.rs"]
mod world;
