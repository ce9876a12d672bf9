//! A log that is at times out of reach, and at times does what it was asked and does not say so.
//!
//! Owns: when it fails. Does not own: keeping events, which the log behind it does.

use crate::world::Between;
use domain::kernel::{CommandId, Recorded, StreamName};
use eventlog::{Append, Appended, EventLog, Log, LogError};
use futures::future::{BoxFuture, FutureExt, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::sync::watch;

/// How the log is to be reached, for every start of one platform.
#[derive(Debug, Clone, Default)]
pub struct Weather(Arc<Sky>);

#[derive(Debug, Default)]
struct Sky {
    /// Nothing is read or appended.
    away: AtomicBool,
    /// No stream is read; the log as a whole is.
    blind: AtomicBool,
    /// So many appends from now on have their effect, and their answer is lost.
    mute: AtomicI64,
    /// How many calls have failed.
    failed: AtomicI64,
}

impl Weather {
    /// The log is out of reach from now on, or again within reach.
    pub fn away(&self, away: bool) {
        self.0.away.store(away, Ordering::SeqCst);
    }

    /// No stream can be read from now on, or all again.
    pub fn blind(&self, blind: bool) {
        self.0.blind.store(blind, Ordering::SeqCst);
    }

    /// The answers to so many appends are lost.
    pub fn mute(&self, appends: i64) {
        self.0.mute.store(appends, Ordering::SeqCst);
    }

    /// How many calls have failed so far.
    pub fn failed(&self) -> i64 {
        self.0.failed.load(Ordering::SeqCst)
    }

    /// What stands between a platform and its log.
    pub fn between(&self) -> Between {
        let weather = self.clone();
        Arc::new(move |inner| Arc::new(Flaky { inner, weather: weather.clone() }))
    }

    fn reach(&self) -> Result<(), LogError> {
        if !self.0.away.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(self.lost("the database is away"))
    }

    fn lost(&self, why: &str) -> LogError {
        self.0.failed.fetch_add(1, Ordering::SeqCst);
        LogError::Unreachable(why.into())
    }

    fn is_muted(&self) -> bool {
        self.0.mute.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
    }
}

struct Flaky {
    inner: Log,
    weather: Weather,
}

impl Flaky {
    fn read<'a, T: Send + 'a>(
        &'a self,
        ask: impl FnOnce(&'a Log) -> BoxFuture<'a, Result<T, LogError>>,
    ) -> BoxFuture<'a, Result<T, LogError>> {
        match self.weather.reach() {
            Ok(()) => ask(&self.inner),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}

impl EventLog for Flaky {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, LogError>> {
        async move {
            self.weather.reach()?;
            let appended = self.inner.append(append).await?;
            if self.weather.is_muted() { Err(self.weather.lost("the answer was lost")) } else { Ok(appended) }
        }
        .boxed()
    }

    fn read_stream<'a>(
        &'a self,
        stream: &'a StreamName,
        from_revision: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        if self.weather.0.blind.load(Ordering::SeqCst) {
            return ready(Err(self.weather.lost("the stream cannot be read"))).boxed();
        }
        self.read(|log| log.read_stream(stream, from_revision, limit))
    }

    fn read_all(&self, after_position: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Recorded>, LogError>> {
        self.read(|log| log.read_all(after_position, limit))
    }

    fn read_category<'a>(
        &'a self,
        category: &'a str,
        after_position: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        self.read(|log| log.read_category(category, after_position, limit))
    }

    fn last_of(&self, correlation: CommandId) -> BoxFuture<'_, Result<i64, LogError>> {
        self.read(|log| log.last_of(correlation))
    }

    fn head(&self) -> watch::Receiver<i64> {
        self.inner.head()
    }
}
