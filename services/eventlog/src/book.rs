//! The rules of appending, without storage: what both backends decide alike.
//!
//! Owns: idempotency, expected revisions, positions, ids and times of new events. Does not own: where the known
//! streams and commands come from, or where new events go. Pure but for the time that it is given.

use crate::{Append, LogError, append::event_id};
use chrono::{DateTime, SubsecRound, Utc};
use domain::kernel::{CommandId, Meta, Recorded, StreamName, TenantId};
use std::collections::HashMap;

/// How many streams a book remembers from group to group.
const STREAMS_MAX: usize = 16_384;

/// What is known of the streams and commands that are appended to.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The last position.
    pub(crate) head: i64,
    /// Every stream that is appended to and has events.
    pub(crate) streams: HashMap<StreamName, Tail>,
    /// Every command that comes again.
    pub(crate) done: HashMap<(TenantId, CommandId), Once>,
    /// The new events, in order.
    pub(crate) added: Vec<Recorded>,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    pub(crate) events: i64,
    pub(crate) occurred_at: DateTime<Utc>,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Once {
    pub(crate) digest: String,
    pub(crate) stream: StreamName,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// Where the events of an append are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) replayed: bool,
}

impl Place {
    /// How many events it has.
    pub(crate) fn events(self) -> usize {
        usize::try_from(self.last + 1 - self.first).unwrap_or(0)
    }
}

impl Book {
    /// Before the next group. Another writer moves the head with all that it does, so what is known of the streams is
    /// still so if the head is where this book left it.
    pub(crate) fn turn_to(&mut self, head: i64) {
        if self.head != head || self.streams.len() > STREAMS_MAX {
            self.streams.clear();
        }
        self.head = head;
        self.done.clear();
    }

    /// The same command again gets its first answer; else the stream must be where the command saw it.
    pub(crate) fn decide(&mut self, append: &Append, now: DateTime<Utc>) -> Result<Place, LogError> {
        let Append { stream, expected, meta, events } = append;
        let key = (meta.tenant, meta.command);
        if let Some(once) = self.done.get(&key) {
            return if once.digest == meta.digest && once.stream == *stream {
                Ok(Place { first: once.first, last: once.last, replayed: true })
            } else {
                Err(LogError::CommandReused)
            };
        }
        let tail = self.streams.get(stream).copied();
        let actual = tail.map_or(0, |tail| tail.events);
        if actual != *expected {
            return Err(LogError::Moved { actual });
        }
        let said = meta.occurred_at.trunc_subsecs(6);
        let occurred_at = tail.map_or(said, |tail| said.max(tail.occurred_at));
        let first = self.head + 1;
        for ((index, event), revision) in events.iter().enumerate().zip(actual..) {
            self.head += 1;
            self.added.push(Recorded {
                event: event_id(meta.tenant, meta.command, index),
                stream: stream.clone(),
                revision,
                position: self.head,
                kind: event.kind.clone(),
                schema: event.schema,
                meta: Meta { occurred_at, ..meta.clone() },
                recorded_at: now.trunc_subsecs(6),
                payload: event.payload.clone(),
            });
        }
        let last = self.head;
        self.streams.insert(stream.clone(), Tail { events: actual + (last + 1 - first), occurred_at });
        self.done.insert(key, Once { digest: meta.digest.clone(), stream: stream.clone(), first, last });
        Ok(Place { first, last, replayed: false })
    }
}
