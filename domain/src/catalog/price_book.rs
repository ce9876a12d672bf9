//! A price book (价格表): dated versions of prices per unit-hour, flat.
//!
//! Invariants: a published version never changes; versions follow each other in time, and none begins before it was
//! published, so that what was used is never priced anew by accident.

use crate::catalog::product::is_sku;
use crate::kernel::{Aggregate, Currency, Kind, Rejection};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const PRICE_SCALE_MAX: u32 = 8;
const PRICE_MAX: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
const ITEMS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PriceBook {
    currency: Option<Currency>,
    versions: Vec<Version>,
}

/// Prices per unit-hour by SKU, from an instant on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// From 1.
    pub number: u32,
    pub effective_at: DateTime<Utc>,
    pub prices: BTreeMap<String, Decimal>,
}

#[derive(Debug, Clone)]
pub enum Command {
    Open { name: String, currency: Currency },
    Publish { effective_at: DateTime<Utc>, prices: BTreeMap<String, Decimal>, now: DateTime<Utc> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened { name: String, currency: Currency },
    Published(Version),
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such price book")]
    NotFound,
    #[error("the price book already exists")]
    AlreadyExists,
    #[error("a price version has 1 to {ITEMS_MAX} prices")]
    NoPrices,
    #[error(
        "`{sku}` costs {price}: a price is above 0 and at most {PRICE_MAX}, with at most {PRICE_SCALE_MAX} decimal places"
    )]
    BadPrice { sku: String, price: Decimal },
    #[error("`{0}` is not a SKU")]
    BadSku(String),
    #[error("prices begin at {wanted}, which is before {earliest}: what was used is not priced anew")]
    TooEarly { wanted: DateTime<Utc>, earliest: DateTime<Utc> },
}

impl PriceBook {
    /// What its prices are in.
    pub fn currency(&self) -> Option<Currency> {
        self.currency
    }

    /// Its versions, oldest first.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The version in force at an instant.
    pub fn version_at(&self, at: DateTime<Utc>) -> Option<&Version> {
        self.versions.iter().rev().find(|version| version.effective_at <= at)
    }

    /// The price of a product at an instant, and of which version.
    pub fn price_at(&self, sku: &str, at: DateTime<Utc>) -> Option<(Decimal, u32)> {
        let version = self.version_at(at)?;
        version.prices.get(sku).map(|price| (*price, version.number))
    }

    fn publish(
        &self,
        effective_at: DateTime<Utc>,
        prices: BTreeMap<String, Decimal>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Event>, Error> {
        if prices.is_empty() || prices.len() > ITEMS_MAX {
            return Err(Error::NoPrices);
        }
        for (sku, price) in &prices {
            if !is_sku(sku) {
                return Err(Error::BadSku(sku.chars().take(64).collect()));
            }
            if *price <= Decimal::ZERO || *price > PRICE_MAX || price.normalize().scale() > PRICE_SCALE_MAX {
                return Err(Error::BadPrice { sku: sku.clone(), price: *price });
            }
        }
        let earliest = self.versions.last().map_or(now, |last| last.effective_at.max(now));
        if effective_at < earliest {
            return Err(Error::TooEarly { wanted: effective_at, earliest });
        }
        let number = u32::try_from(self.versions.len()).unwrap_or(u32::MAX).saturating_add(1);
        Ok(vec![Event::Published(Version { number, effective_at, prices })])
    }
}

impl Aggregate for PriceBook {
    const STREAM: &'static str = "pricebook";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self.currency, command) {
            (None, Command::Open { name, currency }) => Ok(vec![Event::Opened { name, currency }]),
            (Some(_), Command::Open { .. }) => Err(Error::AlreadyExists),
            (None, Command::Publish { .. }) => Err(Error::NotFound),
            (Some(_), Command::Publish { effective_at, prices, now }) => self.publish(effective_at, prices, now),
        }
    }

    fn evolve(mut self, event: &Event) -> Self {
        match event {
            Event::Opened { currency, .. } => self.currency = Some(*currency),
            Event::Published(version) => self.versions.push(version.clone()),
        }
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "price_book.not_found",
            Self::AlreadyExists => "price_book.already_exists",
            Self::NoPrices => "price_book.no_prices",
            Self::BadPrice { .. } => "price_book.bad_price",
            Self::BadSku(_) => "price_book.bad_sku",
            Self::TooEarly { .. } => "price_book.too_early",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists => Kind::Conflict,
            Self::NoPrices | Self::BadPrice { .. } | Self::BadSku(_) | Self::TooEarly { .. } => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::given;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn prices(price: &str) -> BTreeMap<String, Decimal> {
        BTreeMap::from([("core".into(), price.parse().unwrap())])
    }

    fn opened() -> Event {
        Event::Opened { name: "list".into(), currency: Currency::Cny }
    }

    fn published(number: u32, second: i64, price: &str) -> Event {
        Event::Published(Version { number, effective_at: at(second), prices: prices(price) })
    }

    fn publish(second: i64, price: &str, now: i64) -> Command {
        Command::Publish { effective_at: at(second), prices: prices(price), now: at(now) }
    }

    #[test]
    fn versions_follow_each_other_and_never_reach_back() {
        given::<PriceBook>([opened()]).when(publish(10, "1", 10)).then([published(1, 10, "1")]);
        let history = [opened(), published(1, 10, "1")];
        given::<PriceBook>(history.clone()).when(publish(30, "2", 20)).then([published(2, 30, "2")]);
        let too_early = |earliest| Error::TooEarly { wanted: at(15), earliest: at(earliest) };
        given::<PriceBook>(history).when(publish(15, "2", 20)).then_refused(too_early(20));
        let ahead = [opened(), published(1, 50, "1")];
        given::<PriceBook>(ahead).when(publish(15, "2", 10)).then_refused(too_early(50));
        given::<PriceBook>([]).when(publish(10, "1", 10)).then_refused(Error::NotFound);
    }

    #[test]
    fn a_price_is_above_zero_and_sane() {
        for price in ["0", "-1", "1000000.01", "0.000000001"] {
            let error = Error::BadPrice { sku: "core".into(), price: price.parse().unwrap() };
            given::<PriceBook>([opened()]).when(publish(10, price, 10)).then_refused(error);
        }
        let none = Command::Publish { effective_at: at(10), prices: BTreeMap::new(), now: at(10) };
        given::<PriceBook>([opened()]).when(none).then_refused(Error::NoPrices);
    }

    #[test]
    fn a_price_is_that_of_the_version_in_force() {
        let book = [opened(), published(1, 10, "1"), published(2, 30, "2")];
        let book: PriceBook = crate::kernel::fold(&book);
        let price = |second| book.price_at("core", at(second)).map(|(_, version)| version);
        assert_eq!([9, 10, 29, 30].map(price), [None, Some(1), Some(1), Some(2)]);
        assert_eq!(book.price_at("gpu", at(30)), None);
    }
}
