//! A statement (账单): what a customer is told about one month.
//!
//! Invariants: a draft shows the open ledger; once issued it never changes; its number comes from the series. The tax
//! invoice (发票) is another thing.

use crate::billing::ledger::Heading;
use crate::billing::line::{Line, Total};
use crate::kernel::{Aggregate, CustomerId, Id, Kind, Month, Rejection, StatementId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Statement {
    #[default]
    Absent,
    Draft(Heading),
    Issued(Heading),
}

#[derive(Debug, Clone)]
pub enum Command {
    Draft(Heading),
    Issue { number: String, lines: Vec<Line>, total: Total },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Drafted(Heading),
    Issued { number: String, lines: Vec<Line>, total: Total },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such statement")]
    NotFound,
}

/// The id of a customer's statement of a month.
pub fn statement_of(customer: CustomerId, month: Month) -> StatementId {
    Id::derived(customer, &month.to_string())
}

/// The key of a customer's ledger of a month.
pub fn ledger_key(customer: CustomerId, month: Month) -> String {
    format!("{customer}-{month}")
}

/// Whose ledger a stream's key names, and of which month. `None` for a key that is not so written.
pub fn ledger_of(key: &str) -> Option<(CustomerId, Month)> {
    let (customer, month) = key.split_once('-')?;
    Some((customer.parse().ok()?, month.parse().ok()?))
}

impl Statement {
    /// Whose month it is.
    pub fn heading(&self) -> Option<&Heading> {
        match self {
            Self::Absent => None,
            Self::Draft(heading) | Self::Issued(heading) => Some(heading),
        }
    }
}

impl Aggregate for Statement {
    const STREAM: &'static str = "statement";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Draft(heading)) => Ok(vec![Event::Drafted(heading)]),
            (Self::Draft(_), Command::Issue { number, lines, total }) => {
                Ok(vec![Event::Issued { number, lines, total }])
            }
            (Self::Absent, Command::Issue { .. }) => Err(Error::NotFound),
            (Self::Draft(_) | Self::Issued(_), Command::Draft(_)) | (Self::Issued(_), Command::Issue { .. }) => {
                Ok(vec![])
            }
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Drafted(heading)) => Self::Draft(heading.clone()),
            (Self::Draft(heading), Event::Issued { .. }) => Self::Issued(heading),
            (state, Event::Issued { .. }) => state,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        "statement.not_found"
    }

    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::{bill_to, given};
    use crate::kernel::{Currency, TenantId};
    use rust_decimal::Decimal;

    #[test]
    fn is_issued_once() {
        let to = bill_to();
        let month = "2026-11".parse().unwrap();
        let tenant = TenantId::PLATFORM;
        let heading = Heading { customer: to.customer, tenant, month, zone: to.zone, currency: Currency::Cny };
        let total = Total { total: Decimal::ZERO, rounding: Decimal::ZERO };
        let issue = Command::Issue { number: "1".into(), lines: vec![], total: total.clone() };
        let issued = Event::Issued { number: "1".into(), lines: vec![], total };
        let drafted = Event::Drafted(heading.clone());
        given::<Statement>([]).when(Command::Draft(heading)).then([drafted.clone()]);
        given::<Statement>([drafted.clone()]).when(issue.clone()).then([issued.clone()]);
        given::<Statement>([drafted, issued]).when(issue.clone()).then([]);
        given::<Statement>([]).when(issue).then_refused(Error::NotFound);
    }
}
