//! Rating (计价): what a reading of a meter comes to, by the prices that were in force while it ran.
//!
//! Owns: the split of a reading at price and month boundaries. Does not own: adding up (`billing::ledger`), which sums
//! the integers per line and applies the price once.
//! Invariants: the parts' quantities sum to the reading's; cutting the reading anywhere changes no sum; a reading that
//! runs backwards (a correction) is rated as the same reading forwards, negated.

use crate::catalog::PriceBook;
use crate::kernel::{Month, Period, Quantity, Zone};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

/// A part of a reading under one price and in one month.
#[derive(Debug, Clone, PartialEq)]
pub struct Rated {
    pub period: Period,
    pub month: Month,
    pub quantity: Quantity,
    /// Per unit-hour, and of which version. `None`: nothing was published for it, so it is unrated.
    pub price: Option<(Decimal, u32)>,
}

/// Splits a reading. Times count to the millisecond. `None` where it is more than can be counted.
pub fn rate(book: &PriceBook, sku: &str, zone: Zone, milli: i64, reading: Period) -> Option<Vec<Rated>> {
    let backwards = reading.to < reading.from;
    let whole = if backwards { Period { from: reading.to, to: reading.from } } else { reading };
    let mut parts = vec![];
    let mut from = whole.from;
    while from < whole.to {
        let month = Month::of(from, zone);
        let to = next_change(book, from).into_iter().chain([month.period(zone).to, whole.to]).min()?;
        let period = Period { from, to };
        let quantity = Quantity::held(milli, period.ms())?;
        let quantity = if backwards { quantity.negated() } else { quantity };
        parts.push(Rated { period, month, quantity, price: book.price_at(sku, from) });
        from = to;
    }
    Some(parts)
}

fn next_change(book: &PriceBook, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    book.versions().iter().map(|version| version.effective_at).find(|at| *at > after)
}
