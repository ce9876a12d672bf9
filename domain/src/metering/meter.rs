//! The meter of one lease: readings that tile the time from its start to its end.
//!
//! Invariants: readings follow each other without gap or overlap; their quantities sum to what the whole span holds, so
//! cutting anywhere changes nothing; it closes once. Times count to the millisecond.

use crate::kernel::{Aggregate, BillTo, JobId, Kind, LeaseId, Period, Quantity, Rejection, Resource, TenantId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Meter {
    #[default]
    Absent,
    Open {
        subject: Subject,
        until: DateTime<Utc>,
    },
    Closed(Subject),
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    pub lease: LeaseId,
    pub job: JobId,
    pub tenant: TenantId,
    pub bill_to: BillTo,
    pub resource: Resource,
    /// How many thousandths of the resource are held.
    pub milli: i64,
}

#[derive(Debug, Clone)]
pub enum Command {
    Open {
        subject: Subject,
        from: DateTime<Utc>,
    },
    /// Reads it, for example at the end of a month.
    Cut {
        at: DateTime<Utc>,
    },
    Close {
        at: DateTime<Utc>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened {
        subject: Subject,
        from: DateTime<Utc>,
    },
    Measured {
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        quantity: Quantity,
    },
    /// The last reading. Where `to` is before `from` the quantity is negative: what was read too much.
    Closed {
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        quantity: Quantity,
    },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such meter")]
    NotFound,
    #[error("the meter already exists")]
    AlreadyExists,
    #[error("that is more than a meter can count")]
    TooMuch,
}

impl Meter {
    /// What it measures.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Absent => None,
            Self::Open { subject, .. } | Self::Closed(subject) => Some(subject),
        }
    }
}

fn reading(milli: i64, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Quantity, Error> {
    Quantity::held(milli, Period { from, to }.ms()).ok_or(Error::TooMuch)
}

impl Aggregate for Meter {
    const STREAM: &'static str = "meter";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Open { subject, from }) => Ok(vec![Event::Opened { subject, from }]),
            (_, Command::Open { .. }) => Err(Error::AlreadyExists),
            (Self::Absent, _) => Err(Error::NotFound),
            (Self::Open { until, .. }, Command::Cut { at }) if at <= *until => Ok(vec![]),
            (Self::Open { subject, until }, Command::Cut { at }) => {
                Ok(vec![Event::Measured { from: *until, to: at, quantity: reading(subject.milli, *until, at)? }])
            }
            (Self::Open { subject, until }, Command::Close { at }) => {
                Ok(vec![Event::Closed { from: *until, to: at, quantity: reading(subject.milli, *until, at)? }])
            }
            (Self::Closed(_), Command::Cut { .. } | Command::Close { .. }) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Opened { subject, from }) => Self::Open { subject: subject.clone(), until: *from },
            (Self::Open { subject, .. }, Event::Measured { to, .. }) => Self::Open { subject, until: *to },
            (Self::Open { subject, .. }, Event::Closed { .. }) => Self::Closed(subject),
            (state, Event::Measured { .. } | Event::Closed { .. }) => state,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "meter.not_found",
            Self::AlreadyExists => "meter.already_exists",
            Self::TooMuch => "meter.too_much",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists => Kind::Conflict,
            Self::TooMuch => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Id;
    use crate::kernel::spec::{bill_to, given};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn opened() -> Event {
        let id = TenantId::PLATFORM;
        let subject = Subject {
            lease: Id::derived(id, "lease"),
            job: Id::derived(id, "job"),
            tenant: id,
            bill_to: bill_to(),
            resource: Resource::Core,
            milli: 2000,
        };
        Event::Opened { subject, from: at(0) }
    }

    fn measured(from: i64, to: i64) -> Event {
        Event::Measured { from: at(from), to: at(to), quantity: Quantity(2_000_000 * (to - from)) }
    }

    #[test]
    fn reads_follow_each_other() {
        given::<Meter>([opened()]).when(Command::Cut { at: at(60) }).then([measured(0, 60)]);
        let cut = [opened(), measured(0, 60)];
        given::<Meter>(cut.clone()).when(Command::Cut { at: at(60) }).then([]);
        let closed = Event::Closed { from: at(60), to: at(90), quantity: Quantity(60_000_000) };
        given::<Meter>(cut.clone()).when(Command::Close { at: at(90) }).then([closed.clone()]);
        given::<Meter>([&cut[..], &[closed]].concat()).when(Command::Close { at: at(99) }).then([]);
    }

    #[test]
    fn what_was_read_too_much_is_given_back() {
        let back = Event::Closed { from: at(60), to: at(50), quantity: Quantity(-20_000_000) };
        given::<Meter>([opened(), measured(0, 60)]).when(Command::Close { at: at(50) }).then([back]);
    }
}
