#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]
//! What the log and its executor promise.

mod contract;
mod executor;
mod kit;
mod sqlite;
