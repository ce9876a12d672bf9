//! The envelope: a stored event with its place in the log, its time, who caused it and why.
//!
//! Owns: `Recorded`, stream names. Does not own: what the payload means (`registry`), how it is stored (`eventlog`).
//! Invariants: positions are gapless from 1 in commit order; revisions are gapless from 0 within a stream; the category
//! is the text before the first dash; a stream name holds no user text.

use super::{CommandId, EventId, TenantId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a stream: `<category>-<key>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamName(String);

impl StreamName {
    /// The stream of an aggregate's category with this key: an id, or an id and a period.
    pub fn new(category: &str, key: impl fmt::Display) -> Self {
        Self(format!("{category}-{key}"))
    }

    /// A name as stored.
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    /// The text before the first dash: the aggregate's `STREAM`.
    pub fn category(&self) -> &str {
        self.0.split_once('-').map_or(self.0.as_str(), |(category, _)| category)
    }

    /// The text after the first dash.
    pub fn key(&self) -> &str {
        self.0.split_once('-').map_or("", |(_, key)| key)
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who or what gave a command, with all that is stored about it beside the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Whose it is; `TenantId::PLATFORM` for what belongs to no tenant.
    pub tenant: TenantId,
    /// A member, key or node by its id, `flow:<name>`, or `system`.
    pub actor: String,
    /// The same id with the same digest has one effect.
    pub command: CommandId,
    /// Of what was asked, so that an id is not used for two things.
    pub digest: String,
    /// What all that follows from one request shares.
    pub correlation: CommandId,
    /// The event that a flow answered.
    pub causation: Option<EventId>,
    /// W3C trace id of the request.
    pub trace: Option<String>,
    /// When it happened, to the microsecond.
    pub occurred_at: DateTime<Utc>,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    pub event: EventId,
    pub stream: StreamName,
    /// Its place in the stream, from 0.
    pub revision: i64,
    /// Its place in the log, from 1.
    pub position: i64,
    /// Category and variant, such as `order.requested`.
    pub kind: String,
    /// The version of the payload's form.
    pub schema: u32,
    pub meta: Meta,
    /// When the log stored it, to the microsecond.
    pub recorded_at: DateTime<Utc>,
    /// The event as JSON.
    pub payload: String,
}
