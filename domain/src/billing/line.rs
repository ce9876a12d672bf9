//! A line of a ledger or statement: everything of one product under one price.
//!
//! Owns: the key and the sum. Invariants: quantities are summed as integers, the price is applied once to the sum and
//! the result kept at scale 8; a line is rounded once, half to even, where it is shown (DESIGN §6).

use crate::kernel::{PriceBookId, Quantity, Unit, money};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// What makes two charges one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineKey {
    pub sku: String,
    pub book: PriceBookId,
    pub price_version: u32,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub key: LineKey,
    pub unit: Unit,
    /// Per unit-hour.
    pub price: Decimal,
    pub quantity: Quantity,
    /// Exact to scale 8.
    pub amount: Decimal,
}

impl Line {
    /// The line with more on it. `None` where it is more than can be counted.
    pub fn plus(&self, quantity: Quantity) -> Option<Self> {
        let quantity = self.quantity.plus(quantity)?;
        Some(Self { quantity, amount: quantity.cost(self.price)?, ..self.clone() })
    }

    /// As a person reads it, with two decimal places.
    pub fn shown(&self) -> Decimal {
        money::shown(self.amount)
    }
}

/// What lines come to: the exact sum rounded once, and what the rounded lines differ from that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Total {
    pub total: Decimal,
    /// `total` less the sum of the lines as shown.
    pub rounding: Decimal,
}

impl Total {
    /// Of these lines.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let (exact, shown) = lines
            .into_iter()
            .fold((Decimal::ZERO, Decimal::ZERO), |(exact, shown), line| (exact + line.amount, shown + line.shown()));
        let total = money::shown(exact);
        Self { total, rounding: money::shown(total - shown) }
    }
}
