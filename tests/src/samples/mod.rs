//! One sample of every event that can be stored, as the platform writes it now.
//!
//! Owns: the samples behind `golden/events/`. Does not own: the stored files, nor how they are compared (`goldens.rs`).
//! Invariants: a variant without a sample does not compile; the samples are the same in every run, since their ids are
//! derived and their times are written down.

mod money;
mod sales;
mod tenancy;
mod values;
mod work;

use domain::Event;

/// One sample of each variant. A variant that is not listed makes the match incomplete, which stops the build.
macro_rules! samples {
    ($function:ident of $module:ident: $($variant:ident $({ $($named:tt)* })? $(($value:expr))?;)+) => {
        pub(super) fn $function() -> Vec<domain::Event> {
            fn listed(event: $module::Event) -> domain::Event {
                match &event {
                    $($module::Event::$variant { .. } => event.into(),)+
                }
            }
            vec![$(listed($module::Event::$variant $({ $($named)* })? $(($value))?)),+]
        }
    };
}
use samples;

/// Every sample: one of each variant, and more where a field of a variant has variants itself.
pub fn all() -> Vec<Event> {
    [tenancy::all(), sales::all(), work::all(), money::all()].concat()
}
