//! The one shape that every aggregate has.
//!
//! Owns: `Aggregate`, `Rejection` and `fold`. Does not own: loading, appending or retrying (`eventlog`).
//! Invariant: both functions of an aggregate are pure, synchronous and total over history.

use serde::{Serialize, de::DeserializeOwned};

/// A consistency boundary, folded from its own events.
///
/// What a decision needs beyond the aggregate's own history (the time, a price, who asks) is looked up at the edge
/// or by a flow, and carried by the command.
pub trait Aggregate: Default + Clone + Send + Sync + 'static {
    /// The stream category; a stored name, never changed, without a dash.
    const STREAM: &'static str;
    /// The version of the events' JSON form that this build writes.
    const SCHEMA: u32 = 1;
    /// What may be asked.
    type Command: Clone + Send + Sync;
    /// What has happened.
    type Event: Serialize + DeserializeOwned + Clone + PartialEq + std::fmt::Debug + Send + Sync;
    /// Why a command is refused.
    type Error: Rejection;

    /// Turns a command into events, or refuses it. No event means that what was asked for is so already.
    fn decide(&self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Error>;

    /// The state after one event. Total: history is never refused.
    fn evolve(self, event: &Self::Event) -> Self;
}

/// Folds a history into the present.
pub fn fold<'a, A: Aggregate>(history: impl IntoIterator<Item = &'a A::Event>) -> A
where
    A::Event: 'a,
{
    history.into_iter().fold(A::default(), A::evolve)
}

/// A refusal that an edge can turn into a reply without knowing the aggregate.
pub trait Rejection: std::error::Error + Send + Sync + 'static {
    /// A stable, documented code such as `order.self_approval`.
    fn code(&self) -> &'static str;
    /// Which class of reply it is.
    fn kind(&self) -> Kind;
}

/// The classes of refusal; the edge maps each to one HTTP status, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request can never succeed as written.
    Invalid,
    /// Who asks may not do this.
    Forbidden,
    /// There is no such thing, or not for this tenant.
    NotFound,
    /// Not in the present state.
    Conflict,
    /// There is not enough of something.
    Exhausted,
}
