//! Quantities: how much of a resource was held for how long, as whole numbers.
//!
//! Owns: `Quantity` (milli-units × milliseconds), `Unit` (what people count in), `Resource` (what is held).
//! Invariants: quantities are added as integers and never rounded; a price is applied once to a sum (DESIGN §6).

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{fmt, str::FromStr};

/// Thousandths of a unit in one unit: `1 card = 1000 milli`.
pub const MILLI: i64 = 1000;
const HOUR_MS: i64 = 3_600_000;
const MODEL_LENGTH_MAX: usize = 40;

/// Milli-units × milliseconds. One card-hour is 3.6 billion of them; 2.5 billion card-hours fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub i64);

impl Quantity {
    /// So many thousandths of a unit, for so many milliseconds. `None` where it is more than can be counted.
    pub fn held(milli: i64, ms: i64) -> Option<Self> {
        milli.checked_mul(ms).map(Self)
    }

    /// Both together. `None` where it is more than can be counted.
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The other way round, for a correction.
    pub fn negated(self) -> Self {
        Self(-self.0)
    }

    /// In unit-hours (卡时, 核时), exact up to what a decimal holds (28 digits).
    pub fn hours(self) -> Decimal {
        Decimal::from(self.0) / Decimal::from(MILLI * HOUR_MS)
    }

    /// What it costs at a price per unit-hour, at the scale that amounts are kept.
    pub fn cost(self, price: Decimal) -> Option<Decimal> {
        let product = Decimal::from(self.0).checked_mul(price)?;
        product.checked_div(Decimal::from(MILLI * HOUR_MS)).map(super::money::kept)
    }
}

/// What people count in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 卡时: one card for one hour.
    CardHour,
    /// 核时: one core for one hour.
    CoreHour,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CardHour => "card-hour",
            Self::CoreHour => "core-hour",
        })
    }
}

/// What is held, ordered and priced: CPU cores, or cards of one model. Written `core` or `card.<model>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Core,
    Card(Model),
}

/// A card model: 1 to 40 of `a-z`, `0-9`, `.` and `-`, starting with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Model(String);

/// Not a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a resource: write `core`, or `card.` and a model of at most 40 small letters, digits, dots or dashes"
)]
pub struct BadResource(String);

impl Model {
    /// The model as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Resource {
    /// What people count it in.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Core => Unit::CoreHour,
            Self::Card(_) => Unit::CardHour,
        }
    }
}

impl FromStr for Model {
    type Err = BadResource;
    fn from_str(text: &str) -> Result<Self, BadResource> {
        let known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'.' || c == b'-';
        let starts = text.bytes().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts && text.len() <= MODEL_LENGTH_MAX && text.bytes().all(known) {
            Ok(Self(text.into()))
        } else {
            Err(BadResource(text.chars().take(MODEL_LENGTH_MAX).collect()))
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Resource {
    type Err = BadResource;
    fn from_str(text: &str) -> Result<Self, BadResource> {
        match text.strip_prefix("card.") {
            Some(model) => Ok(Self::Card(model.parse()?)),
            None if text == "core" => Ok(Self::Core),
            None => Err(BadResource(text.chars().take(MODEL_LENGTH_MAX).collect())),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core => f.write_str("core"),
            Self::Card(model) => write!(f, "card.{model}"),
        }
    }
}

impl Serialize for Resource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_written_one_way() {
        for text in ["core", "card.a100", "card.ascend-910b", "card.4090"] {
            assert_eq!(text.parse::<Resource>().unwrap().to_string(), text);
        }
        for text in ["", "cores", "card.", "card.A100", "card.-x", "card.a_b", "卡", "card.é"] {
            assert!(text.parse::<Resource>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_hour_of_a_card_is_one_card_hour() {
        assert_eq!(Quantity::held(MILLI, HOUR_MS).unwrap().hours(), Decimal::ONE);
        assert_eq!(Quantity::held(i64::MAX, 2), None);
    }
}
