//! What holds for every history: random commands to each aggregate, one file per subject in `properties/`.
//!
//! Owns: the invariants that no single example shows. Does not own: the rules one by one (tests of each aggregate),
//! what follows between aggregates (`flows.rs`). A failing case's seed is printed and written to
//! `properties/*.regressions`, from where it is tried first; check it in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

#[path = "properties/ends.rs"]
mod ends;
#[path = "properties/given.rs"]
mod given;
#[path = "properties/money.rs"]
mod money;
#[path = "properties/quota.rs"]
mod quota;
#[path = "properties/stored.rs"]
mod stored;
#[path = "properties/usage.rs"]
mod usage;
