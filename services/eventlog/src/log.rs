//! The seam to the store: append to a stream, read a stream, read everything, know how far it is.
//!
//! Owns: `EventLog`, `LogError`. Does not own: deciding what to append (`execute`).

use crate::{Append, Appended};
use domain::kernel::{CommandId, Recorded, StreamName};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::watch;

/// The log, as everyone holds it.
pub type Log = Arc<dyn EventLog>;

/// A log of events in streams.
pub trait EventLog: Send + Sync + 'static {
    /// Adds to a stream that has `expected` events; answers when it is durable.
    ///
    /// The same command again (tenant, id and digest) gets its first answer, wherever the stream is by now. A call that
    /// is dropped may still have its effect; sending it again tells.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, LogError>>;

    /// The events of a stream from a revision on (0 is the first), oldest first, at most `limit`.
    fn read_stream<'a>(
        &'a self,
        stream: &'a StreamName,
        from_revision: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>>;

    /// The events after a position (0 is before the first), oldest first, at most `limit`.
    fn read_all(&self, after_position: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Recorded>, LogError>>;

    /// The events of all streams of a category after a position, oldest first, at most `limit`.
    fn read_category<'a>(
        &'a self,
        category: &'a str,
        after_position: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>>;

    /// The position of the last event with a correlation; 0 if there is none.
    fn last_of(&self, correlation: CommandId) -> BoxFuture<'_, Result<i64, LogError>>;

    /// The last position as this process knows it; wakes at every commit of this process, not of others.
    fn head(&self) -> watch::Receiver<i64>;
}

/// Why the log did not do what was asked. Nothing was appended, except perhaps where it is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Another was first; load again and decide again.
    #[error("the stream moved on: it has {actual} events, which is not what was expected")]
    Moved { actual: i64 },
    /// A command id names one thing that was asked once.
    #[error("the command id was used for something else before; a new command needs a new id")]
    CommandReused,
    /// An append that no log takes.
    #[error("the append is not well formed: {0}")]
    Malformed(String),
    /// The store did not answer; whether an append had its effect is seen by sending it again.
    #[error("the log is out of reach: {0}")]
    Unreachable(String),
    /// A stored event that this build does not understand.
    #[error("a stored event cannot be read: {0}")]
    Unreadable(String),
}
