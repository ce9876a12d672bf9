//! What the log and its executor promise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod contract;
mod executor;
mod kit;
mod processes;
mod sql;
