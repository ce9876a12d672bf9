//! Money: exact decimal amounts, one currency each. Never binary floating point.
//!
//! Owns: currencies, the two roundings of DESIGN §6. Invariants: an amount is kept at scale 8; it is rounded to what a
//! person pays once, half to even, where a statement shows it.

use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How many decimal places an amount keeps until it is shown.
pub const AMOUNT_SCALE: u32 = 8;
/// How many decimal places a statement shows.
const SHOWN_SCALE: u32 = 2;

/// An amount at the scale that is kept, half to even.
pub fn kept(amount: Decimal) -> Decimal {
    amount.round_dp_with_strategy(AMOUNT_SCALE, RoundingStrategy::MidpointNearestEven).normalize()
}

/// An amount as a statement shows it, half to even, always with two places.
pub fn shown(amount: Decimal) -> Decimal {
    let mut shown = amount.round_dp_with_strategy(SHOWN_SCALE, RoundingStrategy::MidpointNearestEven);
    shown.rescale(SHOWN_SCALE);
    shown
}

/// What an amount is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Currency {
    Cny,
    Usd,
}

/// Not a currency that we bill in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a currency that is billed in; CNY and USD are")]
pub struct BadCurrency(String);

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cny => "CNY",
            Self::Usd => "USD",
        })
    }
}

impl FromStr for Currency {
    type Err = BadCurrency;
    fn from_str(text: &str) -> Result<Self, BadCurrency> {
        [Self::Cny, Self::Usd]
            .into_iter()
            .find(|currency| currency.to_string() == text)
            .ok_or_else(|| BadCurrency(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_rounded_half_to_even_and_shown_with_two_places() {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        assert_eq!(shown(decimal("0.125")).to_string(), "0.12");
        assert_eq!(shown(decimal("0.135")).to_string(), "0.14");
        assert_eq!(shown(decimal("-0.125")).to_string(), "-0.12");
        assert_eq!(shown(decimal("240")).to_string(), "240.00");
        assert_eq!(kept(decimal("1.311111111111")).to_string(), "1.31111111");
    }
}
