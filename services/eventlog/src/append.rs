//! What is asked of the log, and what it answers.
//!
//! Owns: `Append` and what makes it well formed, derived event ids, digests. Invariant: the ids of a command's events
//! are determined by tenant, command and index, so that a repeated command never makes a second event.

use crate::LogError;
use domain::kernel::{CommandId, EventId, Id, Meta, Recorded, StreamName, TenantId};
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

/// What one command adds to one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub stream: StreamName,
    /// How many events the stream has.
    pub expected: i64,
    pub meta: Meta,
    /// At least one.
    pub events: Vec<NewEvent>,
}

/// An event before it has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Category and variant, such as `order.requested`.
    pub kind: String,
    /// The version of the payload's form.
    pub schema: u32,
    /// The event as a JSON object.
    pub payload: String,
}

/// What came of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The position of its first event.
    pub first_position: i64,
    /// The position of its last event.
    pub position: i64,
    /// The revision of its last event.
    pub revision: i64,
    /// Its events as they are stored.
    pub recorded: Vec<Recorded>,
    /// The command had been done before, and this is its first answer.
    pub replayed: bool,
}

impl Append {
    /// Refuses what could never be stored or read on some backend.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        let malformed = |why: String| Err(LogError::Malformed(why));
        if self.stream.category().is_empty() || self.stream.key().is_empty() {
            return malformed(format!("`{}` is not a stream name, which is `<category>-<key>`", self.stream));
        }
        if self.expected < 0 {
            return malformed(format!("{} events are expected; a stream has 0 or more", self.expected));
        }
        if self.events.is_empty() {
            return malformed("it has no events; a command that changes nothing appends nothing".into());
        }
        let texts =
            [self.stream.as_str(), &self.meta.actor, &self.meta.digest, self.meta.trace.as_deref().unwrap_or("")];
        let kinds = self.events.iter().map(|event| event.kind.as_str());
        if let Some(text) = texts.into_iter().chain(kinds).find(|text| text.contains(char::is_control)) {
            return malformed(format!("{text:?} has a control character"));
        }
        for event in &self.events {
            if event.kind.is_empty() {
                return malformed("an event has no kind, which is written like `order.requested`".into());
            }
            if let Err(error) = serde_json::from_str::<IgnoredAny>(&event.payload) {
                return malformed(format!("the payload of `{}` is not a JSON object: {error}", event.kind));
            }
            if !event.payload.trim_start().starts_with('{') {
                return malformed(format!("the payload of `{}` is not a JSON object", event.kind));
            }
        }
        Ok(())
    }
}

impl Appended {
    /// The answer to an append, from its stored events.
    pub(crate) fn of(recorded: Vec<Recorded>, replayed: bool) -> Self {
        let first_position = recorded.first().map_or(0, |event| event.position);
        let (position, revision) = recorded.last().map_or((0, -1), |event| (event.position, event.revision));
        Self { first_position, position, revision, recorded, replayed }
    }
}

/// The id of a command's event at this index, from 0.
pub fn event_id(tenant: TenantId, command: CommandId, index: usize) -> EventId {
    EventId::derived(command, &format!("{tenant}/{index}"))
}

/// A digest of what was asked, in 64 hex digits: the same parts give the same digest, and no two lists of parts share
/// their bytes.
pub fn digest(parts: &[&str]) -> String {
    let hash = parts
        .iter()
        .fold(Sha256::new(), |hash, part| hash.chain_update(u64::to_le_bytes(part.len() as u64)).chain_update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
