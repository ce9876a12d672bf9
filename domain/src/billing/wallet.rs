//! A customer's wallet: what may still be spent.
//!
//! Invariants: granted = available + held + consumed at every event; a hold is for one job and never larger than what
//! is available with the credit line; a charge is consumed once, by its source, and always (use that has happened is
//! never refused): the wallet then shows arrears.

use crate::billing::ledger::Source;
use crate::kernel::{Aggregate, Currency, JobId, Kind, MemberId, Rejection};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const AMOUNT_MAX: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wallet {
    open: bool,
    granted: Decimal,
    credit: Decimal,
    consumed: Decimal,
    holds: BTreeMap<JobId, Decimal>,
    sources: BTreeSet<Source>,
}

#[derive(Debug, Clone)]
pub enum Command {
    Open {
        currency: Currency,
    },
    TopUp {
        amount: Decimal,
        by: MemberId,
        reference: String,
    },
    SetCredit {
        amount: Decimal,
        by: MemberId,
    },
    /// For the first hour of a job; asked again for a job, up to this amount.
    Hold {
        job: JobId,
        amount: Decimal,
    },
    Consume {
        source: Source,
        job: JobId,
        amount: Decimal,
    },
    Release {
        job: JobId,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened { currency: Currency },
    ToppedUp { amount: Decimal, by: MemberId, reference: String },
    CreditSet { amount: Decimal, by: MemberId },
    Held { job: JobId, amount: Decimal },
    HoldRefused { job: JobId, wanted: Decimal, available: Decimal },
    Consumed { source: Source, job: JobId, amount: Decimal },
    Released { job: JobId, amount: Decimal },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such wallet")]
    NotFound,
    #[error("an amount is above 0 and at most {AMOUNT_MAX}, with at most two decimal places")]
    BadAmount,
}

impl Wallet {
    /// What is neither held nor spent; below zero: arrears.
    pub fn available(&self) -> Decimal {
        self.granted - self.consumed - self.held()
    }

    /// What is held for jobs.
    pub fn held(&self) -> Decimal {
        self.holds.values().sum()
    }

    fn hold(&self, job: JobId, amount: Decimal) -> Vec<Event> {
        let held = self.holds.get(&job).copied().unwrap_or_default();
        let available = self.available() + self.credit;
        if amount <= held {
            vec![Event::Held { job, amount: held }]
        } else if amount - held <= available {
            vec![Event::Held { job, amount }]
        } else {
            vec![Event::HoldRefused { job, wanted: amount - held, available }]
        }
    }
}

fn sane(amount: Decimal) -> bool {
    amount <= AMOUNT_MAX && amount.normalize().scale() <= 2
}

impl Aggregate for Wallet {
    const STREAM: &'static str = "wallet";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match command {
            Command::Open { .. } if self.open => Ok(vec![]),
            Command::Open { currency } => Ok(vec![Event::Opened { currency }]),
            Command::TopUp { amount, .. } if amount <= Decimal::ZERO || !sane(amount) => Err(Error::BadAmount),
            Command::SetCredit { amount, .. } if amount < Decimal::ZERO || !sane(amount) => Err(Error::BadAmount),
            Command::TopUp { .. } | Command::SetCredit { .. } if !self.open => Err(Error::NotFound),
            Command::TopUp { amount, by, reference } => Ok(vec![Event::ToppedUp { amount, by, reference }]),
            Command::SetCredit { amount, .. } if amount == self.credit => Ok(vec![]),
            Command::SetCredit { amount, by } => Ok(vec![Event::CreditSet { amount, by }]),
            Command::Hold { job, amount } => Ok(self.hold(job, amount)),
            Command::Consume { source, .. } if self.sources.contains(&source) => Ok(vec![]),
            Command::Consume { source, job, amount } => Ok(vec![Event::Consumed { source, job, amount }]),
            Command::Release { job } => {
                let amount = self.holds.get(&job).copied().unwrap_or_default();
                Ok(vec![Event::Released { job, amount }])
            }
        }
    }

    fn evolve(mut self, event: &Event) -> Self {
        match event {
            Event::Opened { .. } => self.open = true,
            Event::ToppedUp { amount, .. } => self.granted += amount,
            Event::CreditSet { amount, .. } => self.credit = *amount,
            Event::Held { job, amount } => {
                self.holds.insert(*job, *amount);
            }
            Event::Consumed { source, job, amount } => {
                self.consumed += amount;
                self.sources.insert(*source);
                if let Some(hold) = self.holds.get_mut(job) {
                    *hold = (*hold - *amount).clamp(Decimal::ZERO, *hold);
                }
            }
            Event::Released { job, .. } => {
                self.holds.remove(job);
            }
            Event::HoldRefused { .. } => {}
        }
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "wallet.not_found",
            Self::BadAmount => "wallet.bad_amount",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadAmount => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::{given, member};
    use crate::kernel::{Id, TenantId};

    fn money(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn job(name: &str) -> JobId {
        Id::derived(TenantId::PLATFORM, name)
    }

    fn opened() -> Event {
        Event::Opened { currency: Currency::Cny }
    }

    fn topped_up(amount: &str) -> Event {
        Event::ToppedUp { amount: money(amount), by: member("wang"), reference: "bank".into() }
    }

    fn held(name: &str, amount: &str) -> Event {
        Event::Held { job: job(name), amount: money(amount) }
    }

    fn consumed(name: &str, amount: &str) -> Event {
        let source = Source { event: Id::derived(TenantId::PLATFORM, name), part: 0 };
        Event::Consumed { source, job: job(name), amount: money(amount) }
    }

    #[test]
    fn holds_no_more_than_there_is() {
        let hold = |name: &str, amount: &str| Command::Hold { job: job(name), amount: money(amount) };
        let history = [opened(), topped_up("100"), held("a", "80")];
        given::<Wallet>(history.clone()).when(hold("b", "20")).then([held("b", "20")]);
        let refused = Event::HoldRefused { job: job("b"), wanted: money("21"), available: money("20") };
        given::<Wallet>(history.clone()).when(hold("b", "21")).then([refused]);
        given::<Wallet>(history.clone()).when(hold("a", "80")).then([held("a", "80")]);
        let credit = Event::CreditSet { amount: money("1"), by: member("wang") };
        given::<Wallet>([&history[..], &[credit]].concat()).when(hold("b", "21")).then([held("b", "21")]);
    }

    #[test]
    fn granted_is_available_and_held_and_consumed_at_every_event() {
        let history =
            [opened(), topped_up("100"), held("a", "80"), consumed("a", "30"), consumed("b", "90"), held("a", "60")];
        let released = Event::Released { job: job("a"), amount: money("60") };
        let mut wallet = Wallet::default();
        for event in history.iter().chain([&released]) {
            wallet = wallet.evolve(event);
            assert_eq!(wallet.granted, wallet.available() + wallet.held() + wallet.consumed);
        }
        assert_eq!(wallet.available(), money("-20"));
    }

    #[test]
    fn a_charge_is_consumed_once() {
        let Event::Consumed { source, job, amount } = consumed("a", "30") else { return };
        given::<Wallet>([consumed("a", "30")]).when(Command::Consume { source, job, amount }).then([]);
    }

    #[test]
    fn amounts_are_sane() {
        for amount in ["0", "-1", "0.001", "1000000001"] {
            let top_up = Command::TopUp { amount: money(amount), by: member("wang"), reference: String::new() };
            given::<Wallet>([opened()]).when(top_up).then_refused(Error::BadAmount);
        }
    }
}
