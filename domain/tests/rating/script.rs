//! Reads a script, rates and charges what was used, and writes the ledgers in words. A script that cannot be read stops
//! the test.

use chrono::{DateTime, FixedOffset, Utc};
use domain::billing::ledger::{self, Charge, Event, Heading, Ledger, Source, Unrated};
use domain::billing::line::LineKey;
use domain::catalog::price_book::{Command, PriceBook};
use domain::catalog::rating::{Rated, rate};
use domain::kernel::spec::bill_to;
use domain::kernel::{
    Aggregate, BadResource, BillTo, Currency, EventId, Id, JobId, LeaseId, MILLI, Month, Period, Quantity, Resource,
    TenantId, Unit,
};
use rust_decimal::{Decimal, RoundingStrategy};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many decimal places of a quantity people see.
const SHOWN_SCALE: u32 = 4;

/// What a script says.
#[derive(Clone)]
pub(crate) struct Script {
    bill_to: BillTo,
    /// By the instant from which they are in force, prices by SKU, which here is the resource's name.
    versions: BTreeMap<DateTime<Utc>, BTreeMap<String, Option<Decimal>>>,
    used: Vec<Used>,
}

/// What was held, and at which instants that was read.
#[derive(Clone)]
struct Used {
    resource: Resource,
    milli: i64,
    readings: Vec<DateTime<Utc>>,
}

impl Used {
    /// Reads it at these instants too.
    fn also(&mut self, instants: impl IntoIterator<Item = DateTime<Utc>>) {
        let backwards = self.readings[0] > self.readings[self.readings.len() - 1];
        self.readings.extend(instants);
        self.readings.sort();
        if backwards {
            self.readings.reverse();
        }
    }
}

/// A month's ledger and what in it has no price.
#[derive(Default)]
struct Book {
    ledger: Ledger,
    unrated: BTreeMap<Resource, Quantity>,
}

impl Script {
    /// What the text says.
    pub(crate) fn read(given: &str) -> Self {
        let mut script = Self { bill_to: bill_to(), versions: BTreeMap::new(), used: Vec::new() };
        for line in given.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            script.line(line).unwrap_or_else(|why| panic!("`{line}`: {why}"));
        }
        script
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["zone", zone] => self.bill_to.zone = zone.parse().map_err(|error| format!("{error}"))?,
            ["price", resource, "none", "from", from] => self.price(resource, None, from)?,
            ["price", resource, price, currency, "from", from] => {
                self.bill_to.currency = currency.parse::<Currency>().map_err(|error| error.to_string())?;
                let price = price.parse().map_err(|error| format!("`{price}` is no price: {error}"))?;
                self.price(resource, Some(price), from)?;
            }
            ["use", resource, count, "cards" | "cores", from, to] => {
                let resource = resource.parse().map_err(|error: BadResource| error.to_string())?;
                let from = instant(from, None)?;
                let readings = vec![from.to_utc(), instant(to, Some(from))?.to_utc()];
                self.used.push(Used { resource, milli: milli(count)?, readings });
            }
            ["cut", ref cuts @ ..] => {
                let used = self.used.last_mut().ok_or("nothing was used yet")?;
                let mut day = None;
                for cut in cuts {
                    let at = instant(cut, day)?;
                    day = Some(at);
                    used.also([at.to_utc()]);
                }
            }
            _ => return Err("is not a line of a script".into()),
        }
        Ok(())
    }

    fn price(&mut self, resource: &str, price: Option<Decimal>, from: &str) -> Result<(), String> {
        let resource: Resource = resource.parse().map_err(|error: BadResource| error.to_string())?;
        self.versions.entry(instant(from, None)?.to_utc()).or_default().insert(resource.to_string(), price);
        Ok(())
    }

    /// The same, with each use read so many times on its way.
    pub(crate) fn read_in_parts(&self, parts: i32) -> Self {
        let more = |used: &Used| {
            let (from, to) = (used.readings[0], used.readings[used.readings.len() - 1]);
            let mut used = used.clone();
            used.also((1..parts).map(|part| from + (to - from) / parts * part));
            used
        };
        Self { used: self.used.iter().map(more).collect(), ..self.clone() }
    }

    /// The same, with the last use first.
    pub(crate) fn backwards(&self) -> Self {
        Self { used: self.used.iter().rev().cloned().collect(), ..self.clone() }
    }

    fn book(&self) -> PriceBook {
        let open = Command::Open { name: "list".into(), currency: self.bill_to.currency };
        let mut book = decided(PriceBook::default(), open);
        let mut prices = BTreeMap::new();
        for (effective_at, changes) in &self.versions {
            for (sku, price) in changes {
                match price {
                    Some(price) => prices.insert(sku.clone(), *price),
                    None => prices.remove(sku),
                };
            }
            let (effective_at, prices) = (*effective_at, prices.clone());
            book = decided(book, Command::Publish { effective_at, prices, now: effective_at });
        }
        book
    }

    /// The ledgers of all months, in words.
    pub(crate) fn ledgers(&self) -> String {
        let prices = self.book();
        let mut books: BTreeMap<Month, Book> = BTreeMap::new();
        for (at, used) in self.used.iter().enumerate() {
            for (part, reading) in used.readings.windows(2).enumerate() {
                let period = Period { from: reading[0], to: reading[1] };
                let sku = used.resource.to_string();
                let source = EventId::derived(TenantId::PLATFORM, &format!("{at}/{part}"));
                let parts = rate(&prices, &sku, self.bill_to.zone, used.milli, period).unwrap();
                for (part, rated) in (0..).zip(parts) {
                    let book = books.entry(rated.month).or_default();
                    self.charge(book, used, Source { event: source, part }, rated);
                }
            }
        }
        let mut text = String::new();
        for (month, book) in books {
            self.write(&mut text, month, &book);
        }
        text
    }

    fn heading(&self, month: Month) -> Heading {
        let BillTo { customer, zone, currency, .. } = self.bill_to;
        Heading { customer, tenant: TenantId::PLATFORM, month, zone, currency }
    }

    fn charge(&self, book: &mut Book, used: &Used, source: Source, rated: Rated) {
        let id = TenantId::PLATFORM;
        let (lease, job) = (LeaseId::derived(id, "lease"), JobId::derived(id, "job"));
        let (heading, sku) = (self.heading(rated.month), used.resource.to_string());
        let Rated { period, quantity, price, .. } = rated;
        let command = match price {
            Some((price, price_version)) => {
                let key = LineKey { sku, book: self.bill_to.book, price_version };
                let unit = used.resource.unit();
                let charge = Charge { source, lease, job, period, key, unit, price, quantity };
                ledger::Command::Charge { heading, charge }
            }
            None => {
                let sum = book.unrated.entry(used.resource.clone()).or_default();
                *sum = sum.plus(quantity).unwrap();
                let unrated = Unrated { source, lease, job, period, sku, quantity };
                ledger::Command::RecordUnrated { heading, unrated }
            }
        };
        book.ledger = decided(std::mem::take(&mut book.ledger), command);
    }

    /// Closes the month, which what has no price prevents.
    fn write(&self, text: &mut String, month: Month, book: &Book) {
        for line in book.ledger.lines() {
            let quantity = shown(line.quantity, line.unit);
            writeln!(text, "month {month} line {} {quantity} at {} = {}", line.key.sku, line.price, line.shown())
                .unwrap();
        }
        for (resource, quantity) in &book.unrated {
            writeln!(text, "month {month} unrated {resource} {}", shown(*quantity, resource.unit())).unwrap();
        }
        let currency = self.bill_to.currency;
        match book.ledger.decide(ledger::Command::Close { heading: self.heading(month) }) {
            Ok(events) => {
                let [Event::Closed { total, .. }] = &events[..] else { panic!("a close closes: {events:?}") };
                let rounding = total.rounding.normalize();
                let rounding = if rounding.is_zero() { String::new() } else { format!(", rounding {rounding}") };
                writeln!(text, "month {month} total {} {currency}{rounding}", total.total).unwrap();
            }
            Err(ledger::Error::HasUnrated(_)) => writeln!(text, "month {month} stays open").unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn decided<A: Aggregate>(aggregate: A, command: A::Command) -> A {
    aggregate.decide(command).unwrap().iter().fold(aggregate, A::evolve)
}

/// A quantity as people read it: four decimal places, half to even, without zeros that say nothing.
fn shown(quantity: Quantity, unit: Unit) -> String {
    let hours = quantity.hours().round_dp_with_strategy(SHOWN_SCALE, RoundingStrategy::MidpointNearestEven);
    format!("{} {unit}s", hours.normalize())
}

/// `0.5` is 500.
fn milli(count: &str) -> Result<i64, String> {
    let count: Decimal = count.parse().map_err(|error| format!("`{count}` is no number: {error}"))?;
    let milli = count * Decimal::from(MILLI);
    if milli.fract().is_zero() && milli > Decimal::ZERO {
        milli.try_into().map_err(|error| format!("{error}"))
    } else {
        Err(format!("{count} is not a whole number of thousandths above zero"))
    }
}

fn instant(text: &str, day: Option<DateTime<FixedOffset>>) -> Result<DateTime<FixedOffset>, String> {
    let (text, day) = match day {
        Some(day) if !text.contains('T') => (format!("{}T{text}{}", day.date_naive(), day.offset()), day),
        _ => return text.parse().map_err(|error| format!("`{text}` is no instant: {error}")),
    };
    text.parse().map_err(|error| format!("`{text}` is no instant of {day}: {error}"))
}

#[test]
fn a_script_that_cannot_be_meant_is_refused() {
    let mut script = Script::read("");
    let mut refused = |line: &str| script.line(line).unwrap_err();
    assert_eq!(refused("spend 1"), "is not a line of a script");
    assert_eq!(refused("cut 09:00:00"), "nothing was used yet");
    let of_core = |count: &str, from: &str| format!("use core {count} cores {from} 09:00:00");
    assert!(refused(&of_core("0.0005", "2026-11-05T08:00:00+08:00")).contains("not a whole number of thousandths"));
    assert!(refused(&of_core("x", "2026-11-05T08:00:00+08:00")).contains("no number"));
    assert!(refused(&of_core("1", "08:00:00")).contains("no instant"));
    assert!(refused("zone Moon").contains("not a time zone"));
    assert!(refused("price core 1 EUR from 2026-11-01T00:00:00+08:00").contains("not a currency"));
    assert!(refused("price Core 1 CNY from 2026-11-01T00:00:00+08:00").contains("not a resource"));
}
