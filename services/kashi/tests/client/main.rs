//! The program itself, run against a small server that answers as the platform would: what it sends, writes and ends
//! with. One subject a file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod asking;
mod failing;
mod kashi;
mod operating;
mod server;
mod signing_in;
mod working;
