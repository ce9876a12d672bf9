//! An order: a tenant's request for capacity on agreed terms.
//!
//! Invariants: the terms never change; a requester never approves their own order; an approved order becomes active or
//! is refused with the reason; an order that is in use is not returned; every order ends at most once.

use crate::kernel::{Aggregate, Ancestors, BillTo, Kind, MILLI, MemberId, Rejection, Resource, TenantId};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

const UNITS_MAX: i64 = 1_000_000;
const REASON_LENGTH_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Order {
    #[default]
    Absent,
    Requested {
        by: MemberId,
        terms: Terms,
    },
    Approved {
        terms: Terms,
    },
    Active {
        terms: Terms,
    },
    /// A return was asked for; the quota has the word.
    Returning {
        terms: Terms,
    },
    Ended,
}

/// What is asked for, priced at the time of asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub tenant: TenantId,
    /// The nodes above the tenant, whose ceilings it counts against too.
    #[serde(default, skip_serializing_if = "Ancestors::is_empty")]
    pub above: Ancestors,
    pub bill_to: BillTo,
    pub resource: Resource,
    /// Thousandths of a card or core; whole units in this version.
    pub milli: i64,
    /// Per unit-hour, by the price version in force when it was asked.
    pub price: Decimal,
    pub price_version: u32,
}

#[derive(Debug, Clone)]
pub enum Command {
    Request { by: MemberId, terms: Terms },
    Approve { by: MemberId },
    Reject { by: MemberId, reason: String },
    Activate,
    Refuse { wanted_milli: i64, free_milli: i64, node: Option<TenantId> },
    Return { by: MemberId },
    ConfirmReturn,
    RefuseReturn { in_use_milli: i64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Requested {
        by: MemberId,
        terms: Terms,
    },
    Approved {
        by: MemberId,
    },
    Rejected {
        by: MemberId,
        reason: String,
    },
    Activated,
    /// It was approved, and the quota has no room for it.
    Refused {
        wanted_milli: i64,
        free_milli: i64,
        /// The tenant whose ceiling is short.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<TenantId>,
    },
    ReturnRequested {
        by: MemberId,
    },
    Returned,
    /// Jobs still use it.
    ReturnRefused {
        in_use_milli: i64,
    },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such order")]
    NotFound,
    #[error("the order already exists")]
    AlreadyExists,
    #[error("an order is for 1 to {UNITS_MAX} whole cards or cores")]
    BadQuantity,
    #[error("a reason has 1 to {REASON_LENGTH_MAX} characters")]
    BadReason,
    #[error("`{0}` asked for this order and may not approve it; another member must")]
    SelfApproval(MemberId),
    #[error("the order is {0}; this is not possible now")]
    WrongState(&'static str),
}

impl Order {
    /// Its state in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Requested { .. } => "requested",
            Self::Approved { .. } => "approved",
            Self::Active { .. } => "active",
            Self::Returning { .. } => "returning",
            Self::Ended => "ended",
        }
    }

    /// Whose it is.
    pub fn terms(&self) -> Option<&Terms> {
        match self {
            Self::Requested { terms, .. }
            | Self::Approved { terms }
            | Self::Active { terms }
            | Self::Returning { terms } => Some(terms),
            Self::Absent | Self::Ended => None,
        }
    }
}

fn whole_and_sane(milli: i64) -> bool {
    (MILLI..=UNITS_MAX * MILLI).contains(&milli) && milli % MILLI == 0
}

impl Aggregate for Order {
    const STREAM: &'static str = "order";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Request { terms, .. }) if !whole_and_sane(terms.milli) => Err(Error::BadQuantity),
            (Self::Absent, Command::Request { by, terms }) => Ok(vec![Event::Requested { by, terms }]),
            (Self::Requested { by: asker, .. }, Command::Approve { by }) if *asker == by => {
                Err(Error::SelfApproval(by))
            }
            (Self::Requested { .. }, Command::Approve { by }) => Ok(vec![Event::Approved { by }]),
            (Self::Requested { .. }, Command::Reject { reason, .. }) if bad_reason(&reason) => Err(Error::BadReason),
            (Self::Requested { .. }, Command::Reject { by, reason }) => Ok(vec![Event::Rejected { by, reason }]),
            (Self::Approved { .. }, Command::Activate) => Ok(vec![Event::Activated]),
            (Self::Approved { .. }, Command::Refuse { wanted_milli, free_milli, node }) => {
                Ok(vec![Event::Refused { wanted_milli, free_milli, node }])
            }
            (Self::Active { .. }, Command::Return { by }) => Ok(vec![Event::ReturnRequested { by }]),
            (Self::Returning { .. }, Command::ConfirmReturn) => Ok(vec![Event::Returned]),
            (Self::Returning { .. }, Command::RefuseReturn { in_use_milli }) => {
                Ok(vec![Event::ReturnRefused { in_use_milli }])
            }
            (Self::Absent, _) => Err(Error::NotFound),
            (_, Command::Request { .. }) => Err(Error::AlreadyExists),
            (state, _) => Err(Error::WrongState(state.word())),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Requested { by, terms }) => Self::Requested { by: *by, terms: terms.clone() },
            (Self::Requested { terms, .. }, Event::Approved { .. }) => Self::Approved { terms },
            (Self::Approved { terms }, Event::Activated) | (Self::Returning { terms }, Event::ReturnRefused { .. }) => {
                Self::Active { terms }
            }
            (Self::Active { terms }, Event::ReturnRequested { .. }) => Self::Returning { terms },
            (_, Event::Rejected { .. } | Event::Refused { .. } | Event::Returned) => Self::Ended,
            (
                state,
                Event::Approved { .. } | Event::Activated | Event::ReturnRequested { .. } | Event::ReturnRefused { .. },
            ) => state,
        }
    }
}

fn bad_reason(reason: &str) -> bool {
    reason.trim().is_empty() || reason.chars().count() > REASON_LENGTH_MAX
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "order.not_found",
            Self::AlreadyExists => "order.already_exists",
            Self::BadQuantity => "order.bad_quantity",
            Self::BadReason => "order.bad_reason",
            Self::SelfApproval(_) => "order.self_approval",
            Self::WrongState(_) => "order.wrong_state",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadQuantity | Self::BadReason => Kind::Invalid,
            Self::AlreadyExists | Self::SelfApproval(_) | Self::WrongState(_) => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::{bill_to, given, member};

    fn terms(milli: i64) -> Terms {
        Terms {
            tenant: TenantId::PLATFORM,
            above: Ancestors::NONE,
            bill_to: bill_to(),
            resource: "card.a100".parse().unwrap(),
            milli,
            price: "80".parse().unwrap(),
            price_version: 1,
        }
    }

    fn requested() -> Event {
        Event::Requested { by: member("li"), terms: terms(2000) }
    }

    fn approved() -> Event {
        Event::Approved { by: member("wang") }
    }

    #[test]
    fn is_requested_once() {
        let ask = || Command::Request { by: member("li"), terms: terms(2000) };
        given::<Order>([]).when(ask()).then([requested()]);
        given::<Order>([requested()]).when(ask()).then_refused(Error::AlreadyExists);
    }

    #[test]
    fn is_for_a_sane_number_of_whole_units() {
        for milli in [0, -1000, 1, 1500, UNITS_MAX * MILLI + MILLI, i64::MAX] {
            let ask = Command::Request { by: member("li"), terms: terms(milli) };
            given::<Order>([]).when(ask).then_refused(Error::BadQuantity);
        }
    }

    #[test]
    fn is_approved_by_another() {
        let approve = |by: &str| Command::Approve { by: member(by) };
        given::<Order>([requested()]).when(approve("wang")).then([approved()]);
        given::<Order>([requested()]).when(approve("li")).then_refused(Error::SelfApproval(member("li")));
        given::<Order>([]).when(approve("wang")).then_refused(Error::NotFound);
        given::<Order>([requested(), approved()]).when(approve("wang")).then_refused(Error::WrongState("approved"));
    }

    #[test]
    fn is_rejected_for_a_reason() {
        let reject = |reason: &str| Command::Reject { by: member("wang"), reason: reason.into() };
        let rejected = Event::Rejected { by: member("wang"), reason: "no budget".into() };
        given::<Order>([requested()]).when(reject("no budget")).then([rejected]);
        given::<Order>([requested()]).when(reject(" ")).then_refused(Error::BadReason);
    }

    #[test]
    fn becomes_active_or_is_refused_with_the_numbers() {
        given::<Order>([requested(), approved()]).when(Command::Activate).then([Event::Activated]);
        let refuse = Command::Refuse { wanted_milli: 2000, free_milli: 1000, node: None };
        let refused = Event::Refused { wanted_milli: 2000, free_milli: 1000, node: None };
        given::<Order>([requested(), approved()]).when(refuse).then([refused.clone()]);
        given::<Order>([requested(), approved(), refused])
            .when(Command::Activate)
            .then_refused(Error::WrongState("ended"));
    }

    #[test]
    fn is_returned_unless_it_is_in_use() {
        let active = [requested(), approved(), Event::Activated];
        let asked = Event::ReturnRequested { by: member("li") };
        given::<Order>(active.clone()).when(Command::Return { by: member("li") }).then([asked.clone()]);
        let returning = [&active[..], &[asked]].concat();
        given::<Order>(returning.clone()).when(Command::ConfirmReturn).then([Event::Returned]);
        let kept = Event::ReturnRefused { in_use_milli: 1000 };
        given::<Order>(returning.clone()).when(Command::RefuseReturn { in_use_milli: 1000 }).then([kept.clone()]);
        let still_active = [&returning[..], &[kept]].concat();
        given::<Order>(still_active)
            .when(Command::Return { by: member("li") })
            .then([Event::ReturnRequested { by: member("li") }]);
    }
}
