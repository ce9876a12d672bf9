//! Metering (计量): how much of a resource was used, from when until when. No prices here.
//!
//! Owns: one meter per lease. Does not own: rating (`catalog`), charges (`billing`). On failure: a meter that was cut
//! at a month's end past the real end gives the difference back when it closes.

pub mod meter;

pub use meter::Meter;
