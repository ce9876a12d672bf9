//! The values that samples are made of: the same in every run.

use chrono::{DateTime, Utc};
use domain::kernel::spec::bill_to;
use domain::kernel::{Id, Period, Resource, TenantId};
use rust_decimal::Decimal;

/// The id that a name stands for.
pub(super) fn id<I: Id>(name: &str) -> I {
    I::derived(TenantId::PLATFORM, name)
}

/// A hash, as 64 hex digits.
pub(super) fn hash(digit: char) -> String {
    digit.to_string().repeat(64)
}

/// A moment of 5 November 2026 in UTC, such as `01:20:00.5`.
pub(super) fn at(time: &str) -> DateTime<Utc> {
    format!("2026-11-05T{time}Z").parse().unwrap()
}

/// A span of that day.
pub(super) fn period(from: &str, to: &str) -> Period {
    Period { from: at(from), to: at(to) }
}

/// An exact number.
pub(super) fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// What most samples are of.
pub(super) fn a100() -> Resource {
    "card.a100".parse().unwrap()
}

/// Whose samples they are.
pub(super) fn tenant() -> TenantId {
    id("tenant")
}

/// On whose account.
pub(super) fn account() -> domain::kernel::BillTo {
    bill_to()
}
