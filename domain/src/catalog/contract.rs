//! A contract: the terms on which the use of a tenant, and of all below it that have none, is billed to a customer.
//!
//! Invariants: one contract per tenant (its id follows from the tenant); currency, zone and price book are fixed in
//! this version.

use crate::kernel::{Aggregate, ContractId, Currency, CustomerId, Id, Kind, PriceBookId, Rejection, TenantId, Zone};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Contract {
    #[default]
    Absent,
    Signed(Terms),
}

/// What was agreed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub tenant: TenantId,
    pub customer: CustomerId,
    pub book: PriceBookId,
    /// Whose months the statements follow.
    pub zone: Zone,
    pub currency: Currency,
}

#[derive(Debug, Clone)]
pub enum Command {
    Sign(Terms),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Signed(Terms),
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the tenant has a contract already")]
    AlreadyExists,
}

impl Contract {
    /// What was agreed, once it is signed.
    pub fn terms(&self) -> Option<&Terms> {
        match self {
            Self::Absent => None,
            Self::Signed(terms) => Some(terms),
        }
    }
}

/// The id of a tenant's contract.
pub fn contract_of(tenant: TenantId) -> ContractId {
    Id::derived(tenant, "contract")
}

impl Aggregate for Contract {
    const STREAM: &'static str = "contract";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Sign(terms)) => Ok(vec![Event::Signed(terms)]),
            (Self::Signed(known), Command::Sign(terms)) if *known == terms => Ok(vec![]),
            (Self::Signed(_), Command::Sign(_)) => Err(Error::AlreadyExists),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        let Event::Signed(terms) = event;
        Self::Signed(terms.clone())
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        "contract.already_exists"
    }

    fn kind(&self) -> Kind {
        Kind::Conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::{bill_to, given};

    #[test]
    fn is_signed_once() {
        let to = bill_to();
        let terms = Terms {
            tenant: TenantId::PLATFORM,
            customer: to.customer,
            book: to.book,
            zone: to.zone,
            currency: Currency::Cny,
        };
        let signed = Event::Signed(terms.clone());
        given::<Contract>([]).when(Command::Sign(terms.clone())).then([signed.clone()]);
        given::<Contract>([signed.clone()]).when(Command::Sign(terms.clone())).then([]);
        let other = Terms { currency: Currency::Usd, ..terms };
        given::<Contract>([signed]).when(Command::Sign(other)).then_refused(Error::AlreadyExists);
    }
}
