//! A log in memory, for tests and simulations. It keeps every promise but to outlive the process.

use crate::{Append, Appended, EventLog, LogError, book::Book};
use chrono::Utc;
use domain::kernel::{CommandId, Recorded, StreamName};
use futures::future::{BoxFuture, FutureExt, ready};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A log in memory.
#[derive(Debug)]
pub struct MemoryLog {
    kept: Mutex<Kept>,
    head: watch::Sender<i64>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Its `added` are all events: position 1 is the first.
    book: Book,
    /// The positions of each stream's events, by revision.
    streams: HashMap<StreamName, Vec<i64>>,
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self { kept: Mutex::default(), head: watch::Sender::new(0) }
    }
}

impl MemoryLog {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, append: &Append) -> Result<Appended, LogError> {
        append.check()?;
        let mut kept = self.kept();
        let place = kept.book.decide(append, Utc::now())?;
        let recorded = kept.book.added[index(place.first - 1)..index(place.last)].to_vec();
        if !place.replayed {
            kept.streams.entry(append.stream.clone()).or_default().extend(place.first..=place.last);
            // Told before the lock is released, so that the head never goes back.
            self.head.send_replace(place.last);
        }
        Ok(Appended::of(recorded, place.replayed))
    }
}

impl EventLog for MemoryLog {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, LogError>> {
        async move { self.add(&append) }.boxed()
    }

    fn read_stream<'a>(
        &'a self,
        stream: &'a StreamName,
        from_revision: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        let kept = self.kept();
        let positions = kept.streams.get(stream).into_iter().flatten().skip(index(from_revision)).take(limit);
        let page = positions.map(|position| kept.book.added[index(position - 1)].clone()).collect();
        ready(Ok(page)).boxed()
    }

    fn read_all(&self, after_position: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Recorded>, LogError>> {
        let page = self.kept().book.added.iter().skip(index(after_position)).take(limit).cloned().collect();
        ready(Ok(page)).boxed()
    }

    fn read_category<'a>(
        &'a self,
        category: &'a str,
        after_position: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        let kept = self.kept();
        let after = kept.book.added.iter().skip(index(after_position));
        let page = after.filter(|stored| stored.stream.category() == category).take(limit).cloned().collect();
        ready(Ok(page)).boxed()
    }

    fn last_of(&self, correlation: CommandId) -> BoxFuture<'_, Result<i64, LogError>> {
        let kept = self.kept();
        let last = kept.book.added.iter().rev().find(|stored| stored.meta.correlation == correlation);
        ready(Ok(last.map_or(0, |stored| stored.position))).boxed()
    }

    fn head(&self) -> watch::Receiver<i64> {
        self.head.subscribe()
    }
}

/// Positions and revisions count from 0 up; one before is the beginning.
fn index(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}
