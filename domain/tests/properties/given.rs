//! What random commands are made of, and how they are given.

use chrono::{DateTime, Utc};
use domain::kernel::{Aggregate, Id, TenantId};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_decimal::Decimal;

/// Writes a failing case's seed beside the file of the property.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

/// One of so many ids.
pub(crate) fn one_of<I: Id>(ids: u8) -> impl Strategy<Value = I> {
    (0..ids).prop_map(|number| I::derived(TenantId::PLATFORM, &number.to_string()))
}

/// An amount with two decimal places.
pub(crate) fn cents(range: std::ops::Range<i64>) -> impl Strategy<Value = Decimal> {
    range.prop_map(|cents| Decimal::new(cents, 2))
}

/// Any instant of the years 2020 to 2039, to the microsecond.
pub(crate) fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    (1_577_836_800_000_000_i64..2_208_988_800_000_000).prop_map(|us| DateTime::from_timestamp_micros(us).unwrap())
}

/// Mostly what a name may be, sometimes any text.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z][a-z0-9]{1,9}", 1 => "[\\PC]{1,20}", 1 => any::<String>()]
}

/// Gives a command; a refusal changes nothing.
pub(crate) fn give<A: Aggregate>(state: &A, command: A::Command) -> (A, Vec<A::Event>) {
    let events = state.decide(command).unwrap_or_default();
    (events.iter().fold(state.clone(), A::evolve), events)
}

/// Everything that comes of the commands.
pub(crate) fn history<A: Aggregate>(commands: Vec<A::Command>) -> Vec<A::Event> {
    let (mut state, mut history) = (A::default(), Vec::new());
    for command in commands {
        let (next, events) = give(&state, command);
        (state, _) = (next, history.extend(events));
    }
    history
}
