//! What follows from what between contexts: an event here, a command there.
//!
//! Owns: which facts an event needs (`needs`) and which commands it calls for (`react`), one file per story. Does not
//! own: reading facts, giving commands, remembering how far it came (`services/control`).
//! Invariants: stateless and pure, the same event with the same facts always calls for the same actions; a command's id
//! follows from the event, the arm's name and the stream, so a repeated event repeats nothing and a new arm shifts no
//! other; every command of a flow is answered by an event, also when it is refused.

mod charging;
mod joining;
mod provisioning;
mod running;

pub use provisioning::{quota_key, quota_of, quota_stream};
pub use running::{lease_of, wallet_key};

use crate::kernel::{CommandId, Id, Recorded, StreamName, TenantId};
use crate::{Command, Event, Listed, State};
use std::collections::HashMap;
use std::fmt::Display;

/// A command that the platform gives itself.
#[derive(Debug, Clone)]
pub struct Action {
    /// The arm that asked for it, such as `hold_quota_for_order`; a stored name, never changed.
    pub arm: &'static str,
    /// Tells apart several commands of one arm to one stream, from 0.
    pub part: u32,
    /// Whose it is.
    pub tenant: TenantId,
    pub stream: StreamName,
    pub command: Command,
}

impl Action {
    fn new<A: Listed>(arm: &'static str, tenant: TenantId, key: impl Display, command: A::Command) -> Self {
        Self { arm, part: 0, tenant, stream: StreamName::new(A::STREAM, key), command: A::command(command) }
    }

    /// The id of this command: the same for the same event, arm, part and stream.
    pub fn command_id(&self, cause: &Recorded) -> CommandId {
        CommandId::derived(cause.event, &format!("{}/{}/{}", self.arm, self.part, self.stream))
    }
}

/// States of other streams, folded as of the event's position.
#[derive(Debug, Default)]
pub struct Facts(HashMap<StreamName, State>);

impl Facts {
    /// Adds a stream's state.
    pub fn know(&mut self, stream: StreamName, state: State) {
        self.0.insert(stream, state);
    }

    /// Whether a stream's state is known.
    pub fn knows(&self, stream: &StreamName) -> bool {
        self.0.contains_key(stream)
    }

    fn of<A: Listed>(&self, key: impl Display) -> Option<&A> {
        self.0.get(&StreamName::new(A::STREAM, key)).and_then(A::state)
    }
}

/// The streams whose states `react` must be given, as far as the facts so far tell: asked again with more facts, it may
/// name more, until all are known.
pub fn needs(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<StreamName> {
    let stories = [charging::needs, running::needs, provisioning::needs];
    stories.iter().flat_map(|needs| needs(cause, event, facts)).filter(|stream| !facts.knows(stream)).collect()
}

/// What an event calls for, in order.
pub fn react(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<Action> {
    [
        joining::react(cause, event),
        provisioning::react(cause, event, facts),
        running::react(cause, event, facts),
        charging::react(cause, event, facts),
    ]
    .concat()
}

/// The id that a stream of one id is about. `None` for a name that is not so written.
fn id_of<T: Id>(cause: &Recorded) -> Option<T> {
    cause.stream.key().parse().ok()
}
