//! What the tests of the whole platform share.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

pub mod engines;
pub mod fake_agent;
pub mod faults;
pub mod lab;
pub mod processes;
pub mod samples;
pub mod stored;
pub mod world;
