//! The ledger of one customer and month: double entry, every posting sums to zero.
//!
//! Invariants: a charge is counted once, by the reading and part that it comes from; the charges of a line sum to the
//! price applied once to the line's whole quantity; an unrated use blocks the close; after the close nothing is added,
//! a late charge is deferred to the next month by an event.

use crate::billing::line::{Line, LineKey, Total};
use crate::kernel::{
    Aggregate, Currency, CustomerId, EventId, JobId, Kind, LeaseId, Month, Period, Quantity, Rejection, TenantId, Unit,
    Zone,
};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ledger {
    opened: Option<Heading>,
    lines: BTreeMap<LineKey, Line>,
    charged: BTreeSet<Source>,
    unrated: BTreeSet<Source>,
    closed: bool,
}

/// Whose month it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heading {
    pub customer: CustomerId,
    pub tenant: TenantId,
    pub month: Month,
    pub zone: Zone,
    pub currency: Currency,
}

/// The reading of a meter that a charge comes from, and which part of it, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    pub event: EventId,
    pub part: u32,
}

/// A use to be charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    pub source: Source,
    pub lease: LeaseId,
    pub job: JobId,
    pub period: Period,
    pub key: LineKey,
    pub unit: Unit,
    pub price: Decimal,
    pub quantity: Quantity,
}

/// A use that no price was published for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unrated {
    pub source: Source,
    pub lease: LeaseId,
    pub job: JobId,
    pub period: Period,
    pub sku: String,
    pub quantity: Quantity,
}

/// One side of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Posting {
    /// `receivable` or `revenue.<sku>`.
    pub account: String,
    /// Debit above zero, credit below.
    pub amount: Decimal,
}

#[derive(Debug, Clone)]
pub enum Command {
    Charge { heading: Heading, charge: Charge },
    RecordUnrated { heading: Heading, unrated: Unrated },
    Close { heading: Heading },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened(Heading),
    Charged {
        charge: Charge,
        /// By how much this charge moves its line.
        amount: Decimal,
        postings: Vec<Posting>,
    },
    Unrated(Unrated),
    /// It came after the close and belongs to the next month's ledger.
    Deferred(Charge),
    Closed {
        lines: Vec<Line>,
        total: Total,
    },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("that is more than a ledger can count")]
    TooMuch,
    #[error("{0} uses have no price; the month stays open until they are rated")]
    HasUnrated(usize),
}

impl Ledger {
    /// The lines so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.values().cloned().collect()
    }

    /// What the lines come to.
    pub fn total(&self) -> Total {
        Total::of(self.lines.values())
    }

    /// Whose month it is.
    pub fn heading(&self) -> Option<&Heading> {
        self.opened.as_ref()
    }

    fn opening(&self, heading: Heading) -> Vec<Event> {
        if self.opened.is_some() { vec![] } else { vec![Event::Opened(heading)] }
    }

    fn charge(&self, heading: Heading, charge: Charge) -> Result<Vec<Event>, Error> {
        if self.charged.contains(&charge.source) {
            return Ok(vec![]);
        }
        if self.closed {
            return Ok(vec![Event::Deferred(charge)]);
        }
        let before = self.line(&charge);
        let after = before.plus(charge.quantity).ok_or(Error::TooMuch)?;
        let amount = after.amount - before.amount;
        let postings = vec![
            Posting { account: "receivable".into(), amount },
            Posting { account: format!("revenue.{}", charge.key.sku), amount: -amount },
        ];
        let mut events = self.opening(heading);
        events.push(Event::Charged { charge, amount, postings });
        Ok(events)
    }

    fn line(&self, charge: &Charge) -> Line {
        self.lines.get(&charge.key).cloned().unwrap_or_else(|| Line {
            key: charge.key.clone(),
            unit: charge.unit,
            price: charge.price,
            quantity: Quantity::default(),
            amount: Decimal::ZERO,
        })
    }
}

impl Aggregate for Ledger {
    const STREAM: &'static str = "ledger";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match command {
            Command::Charge { heading, charge } => self.charge(heading, charge),
            Command::RecordUnrated { unrated, .. } if self.unrated.contains(&unrated.source) => Ok(vec![]),
            Command::RecordUnrated { heading, unrated } => {
                let mut events = self.opening(heading);
                events.push(Event::Unrated(unrated));
                Ok(events)
            }
            Command::Close { .. } if self.closed => Ok(vec![]),
            Command::Close { .. } if !self.unrated.is_empty() => Err(Error::HasUnrated(self.unrated.len())),
            Command::Close { heading } => {
                let mut events = self.opening(heading);
                events.push(Event::Closed { lines: self.lines(), total: self.total() });
                Ok(events)
            }
        }
    }

    fn evolve(mut self, event: &Event) -> Self {
        match event {
            Event::Opened(heading) => self.opened = Some(heading.clone()),
            Event::Charged { charge, .. } => {
                if let Some(line) = self.line(charge).plus(charge.quantity) {
                    self.lines.insert(charge.key.clone(), line);
                }
                self.charged.insert(charge.source);
            }
            Event::Unrated(unrated) => {
                self.unrated.insert(unrated.source);
            }
            Event::Deferred(charge) => {
                self.charged.insert(charge.source);
            }
            Event::Closed { .. } => self.closed = true,
        }
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::TooMuch => "ledger.too_much",
            Self::HasUnrated(_) => "ledger.has_unrated",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::TooMuch => Kind::Invalid,
            Self::HasUnrated(_) => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fold;
    use crate::kernel::spec::bill_to;
    use crate::kernel::{Id, TenantId};

    fn heading() -> Heading {
        let to = bill_to();
        let month = "2026-11".parse().unwrap();
        Heading { customer: to.customer, tenant: TenantId::PLATFORM, month, zone: to.zone, currency: to.currency }
    }

    fn charge(name: &str, seconds: i64) -> Charge {
        let (id, to) = (TenantId::PLATFORM, bill_to());
        let from = chrono::DateTime::from_timestamp(0, 0).unwrap();
        let period = Period { from, to: from + chrono::TimeDelta::seconds(seconds) };
        Charge {
            source: Source { event: Id::derived(id, name), part: 0 },
            lease: Id::derived(id, name),
            job: Id::derived(id, name),
            period,
            key: LineKey { sku: to.sku, book: to.book, price_version: 1 },
            unit: Unit::CardHour,
            price: "80".parse().unwrap(),
            quantity: Quantity::held(1000, seconds * 1000).unwrap(),
        }
    }

    fn after(charges: &[Charge]) -> (Ledger, Vec<Event>) {
        charges.iter().fold((Ledger::default(), vec![]), |(ledger, mut all), charge| {
            let asked = Command::Charge { heading: heading(), charge: charge.clone() };
            let events = ledger.decide(asked).unwrap();
            let ledger = events.iter().fold(ledger, Ledger::evolve);
            all.extend(events);
            (ledger, all)
        })
    }

    #[test]
    fn a_charge_is_counted_once_and_every_posting_sums_to_zero() {
        let (ledger, events) = after(&[charge("a", 59), charge("a", 59), charge("b", 1)]);
        assert_eq!(ledger.lines()[0].amount.to_string(), "1.33333333");
        let amounts: Vec<Decimal> = events
            .iter()
            .filter_map(|event| {
                let Event::Charged { postings, .. } = event else { return None };
                Some(postings.iter().map(|posting| posting.amount).sum())
            })
            .collect();
        assert_eq!(amounts, [Decimal::ZERO, Decimal::ZERO]);
    }

    #[test]
    fn splitting_changes_nothing() {
        let whole = after(&[charge("a", 10_800)]).0.lines()[0].amount;
        let parts: Vec<_> = (0..108).map(|n| charge(&n.to_string(), 100)).collect();
        assert_eq!(after(&parts).0.lines()[0].amount, whole);
        assert_eq!(whole.to_string(), "240");
    }

    #[test]
    fn a_late_charge_is_deferred() {
        let (ledger, events) = after(&[charge("a", 59)]);
        let closed = ledger.decide(Command::Close { heading: heading() }).unwrap();
        let ledger: Ledger = fold(&[events, closed.clone()].concat());
        assert!(matches!(&closed[..], [Event::Closed { total, .. }] if total.total.to_string() == "1.31"));
        let late = Command::Charge { heading: heading(), charge: charge("b", 1) };
        assert_eq!(ledger.decide(late), Ok(vec![Event::Deferred(charge("b", 1))]));
        assert_eq!(ledger.decide(Command::Close { heading: heading() }), Ok(vec![]));
    }

    #[test]
    fn what_has_no_price_blocks_the_close() {
        let Charge { source, lease, job, period, quantity, .. } = charge("a", 59);
        let unrated = Unrated { source, lease, job, period, sku: "x".into(), quantity };
        let asked = Command::RecordUnrated { heading: heading(), unrated };
        let ledger: Ledger = fold(&Ledger::default().decide(asked.clone()).unwrap());
        assert_eq!(ledger.decide(asked), Ok(vec![]));
        assert_eq!(ledger.decide(Command::Close { heading: heading() }), Err(Error::HasUnrated(1)));
    }
}
