//! A stream folded into its aggregate, with what must be known to add to it; and events as text.
//!
//! Owns: `Fold`, how an event becomes a payload and back. Does not own: reading and appending.

use crate::{LogError, NewEvent};
use domain::kernel::{Aggregate, CommandId, Recorded, TenantId};
use serde::Deserialize;
use std::{borrow::Cow, collections::HashMap};

/// An aggregate as of a revision.
#[derive(Debug, Clone)]
pub(super) struct Fold<A> {
    pub(super) state: A,
    /// How many events it contains.
    pub(super) events: i64,
    /// The position of the last of them; 0 if there is none.
    pub(super) position: i64,
    pub(super) commands: HashMap<(TenantId, CommandId), Did>,
}

/// What a command of this stream did.
#[derive(Debug, Clone)]
pub(super) struct Did {
    pub(super) digest: String,
    /// The revision of its first event.
    pub(super) from_revision: i64,
    pub(super) events: usize,
}

impl<A: Default> Default for Fold<A> {
    fn default() -> Self {
        Self { state: A::default(), events: 0, position: 0, commands: HashMap::new() }
    }
}

impl<A: Aggregate> Fold<A> {
    /// Adds the stream's next event.
    pub(super) fn add(&mut self, stored: &Recorded, event: &A::Event) {
        self.state = std::mem::take(&mut self.state).evolve(event);
        self.events = stored.revision + 1;
        self.position = stored.position;
        let key = (stored.meta.tenant, stored.meta.command);
        let new = || Did { digest: stored.meta.digest.clone(), from_revision: stored.revision, events: 0 };
        self.commands.entry(key).or_insert_with(new).events += 1;
    }

    /// What this command did, if it did.
    pub(super) fn did(&self, tenant: TenantId, command: CommandId) -> Option<&Did> {
        self.commands.get(&(tenant, command))
    }
}

/// The tag that an event's serde form carries.
#[derive(Deserialize)]
struct Tagged<'a> {
    #[serde(rename = "type", borrow)]
    tag: Cow<'a, str>,
}

/// An event on its way into the log.
pub(super) fn encode<A: Aggregate>(event: &A::Event) -> Result<NewEvent, LogError> {
    let malformed = |error: serde_json::Error| {
        LogError::Malformed(format!("an event of `{}` is not a JSON object with a `type`: {error}", A::STREAM))
    };
    let payload = serde_json::to_string(event).map_err(malformed)?;
    let kind = {
        let Tagged { tag } = serde_json::from_str(&payload).map_err(malformed)?;
        format!("{}.{tag}", A::STREAM)
    };
    Ok(NewEvent { kind, schema: A::SCHEMA, payload })
}

/// An event out of the log.
pub(super) fn decode<A: Aggregate>(stored: &Recorded) -> Result<A::Event, LogError> {
    serde_json::from_str(&stored.payload).map_err(|error| {
        let Recorded { stream, revision, kind, .. } = stored;
        LogError::Unreadable(format!("`{kind}` at revision {revision} of `{stream}`: {error}"))
    })
}
