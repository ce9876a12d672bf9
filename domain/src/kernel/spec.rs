//! `given(history).when(command).then(events)`: how every aggregate is tested.

use super::{Aggregate, fold};
use std::fmt::Debug;

/// A history.
pub struct Given<A>(A);

/// What came of a command.
pub struct When<A: Aggregate>(Result<Vec<A::Event>, A::Error>);

/// Starts from a history.
pub fn given<A: Aggregate>(history: impl AsRef<[A::Event]>) -> Given<A> {
    Given(fold(history.as_ref()))
}

impl<A: Aggregate> Given<A> {
    /// Asks.
    pub fn when(self, command: A::Command) -> When<A> {
        When(self.0.decide(command))
    }
}

impl<A: Aggregate> When<A>
where
    A::Error: Debug + PartialEq,
{
    /// Expects exactly these events.
    #[track_caller]
    pub fn then(self, events: impl Into<Vec<A::Event>>) {
        assert_eq!(self.0, Ok(events.into()));
    }

    /// Expects this refusal.
    #[track_caller]
    pub fn then_refused(self, error: A::Error) {
        assert_eq!(self.0, Err(error));
    }
}

/// A member, for tests.
pub fn member(handle: &str) -> super::MemberId {
    super::Id::derived(super::TenantId::PLATFORM, handle)
}

/// Somebody's account, for tests.
pub fn bill_to() -> super::BillTo {
    use super::{BillTo, Currency, Id, TenantId, Zone};
    let id = TenantId::PLATFORM;
    BillTo {
        contract: Id::derived(id, "contract"),
        customer: Id::derived(id, "customer"),
        book: Id::derived(id, "book"),
        sku: "a100.card".into(),
        zone: Zone::default(),
        currency: Currency::Cny,
    }
}
