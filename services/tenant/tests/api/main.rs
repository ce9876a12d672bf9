//! The REST edge, asked over its router: one subject per file, on a log in memory with the read models folded after it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod access;
mod input;
mod money;
mod permissions;
mod problems;
mod profiles;
mod room;
mod scope;
mod secrets;
mod sign_in;
mod work;
