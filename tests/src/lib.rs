//! What the tests of the whole platform share.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

pub mod fake_agent;
pub mod lab;
pub mod samples;
pub mod world;
