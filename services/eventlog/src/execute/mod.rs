//! Load, decide, append: the same few steps for every aggregate.
//!
//! Owns: `Executor`, the queue of each stream, the cache of folds, idempotency before deciding. Does not own: any rule
//! of an aggregate. Invariants: an answer never rests on a stale fold alone (the append's expected revision, or a look
//! at the stream's tail, confirms it); a command that was done is answered with its first events, whatever the state is.

mod cache;
mod fold;
mod queue;

use crate::{Append, Appended, Log, LogError};
use cache::Cache;
use domain::kernel::{Aggregate, Meta, Recorded, Rejection, StreamName};
use fold::{Fold, decode, encode};
use queue::Queues;
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// How long a command waits for its turn and decides anew, unless it is said.
const DEADLINE: Duration = Duration::from_secs(10);
/// How many events are read at once.
const PAGE: usize = 500;

/// Runs commands against a log. Clones share queues and cache, so one per log and process.
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
    deadline: Duration,
}

struct Shared {
    log: Log,
    queues: Queues,
    cache: Cache,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done<E> {
    /// What happened; nothing, where what was asked for was so already.
    pub events: Vec<E>,
    /// The same as they are stored.
    pub recorded: Vec<Recorded>,
    /// The position of the last of them, or else of the stream's last event (0 if it has none).
    pub position: i64,
    /// The revision of the last of them, or else of the stream's last event (-1 if it has none).
    pub revision: i64,
    /// The command had been done before, and this is its first answer.
    pub replayed: bool,
}

/// An aggregate as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<A> {
    pub state: A,
    /// How many events it has.
    pub events: i64,
    /// The position of the last of them; 0 if there is none.
    pub position: i64,
}

/// Why a command had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused<E: Rejection> {
    /// The aggregate refused it.
    #[error(transparent)]
    Domain(E),
    /// The log could not serve.
    #[error(transparent)]
    Log(LogError),
    /// The command id was used for something else.
    #[error("the command id was used for something else before; a new command needs a new id")]
    CommandReused,
}

impl<E: Rejection> From<LogError> for Refused<E> {
    fn from(error: LogError) -> Self {
        match error {
            LogError::CommandReused => Self::CommandReused,
            LogError::Moved { .. } | LogError::Malformed(_) | LogError::Unreachable(_) | LogError::Unreadable(_) => {
                Self::Log(error)
            }
        }
    }
}

type Outcome<A> = Result<Done<<A as Aggregate>::Event>, Refused<<A as Aggregate>::Error>>;

impl Executor {
    /// An executor of this log.
    pub fn new(log: Log) -> Self {
        let shared = Shared { log, queues: Queues::default(), cache: Cache::default() };
        Self { shared: Arc::new(shared), deadline: DEADLINE }
    }

    /// The same executor, with another time for a command to wait for its turn and to decide anew.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// Runs one command against the stream with this key, and decides anew while others are first.
    pub async fn execute<A: Aggregate>(&self, key: impl fmt::Display, meta: Meta, command: A::Command) -> Outcome<A> {
        let stream = StreamName::new(A::STREAM, key);
        let deadline = Instant::now() + self.deadline;
        let _turn = self.turn(&stream, deadline).await?;
        let mut known = self.shared.cached::<A>(&stream);
        loop {
            let (fold, fresh) = match known.take() {
                Some(fold) => (fold, false),
                None => (self.shared.fresh::<A>(&stream).await?, true),
            };
            match self.attempt(&stream, fold, &meta, command.clone()).await {
                // What the log did not confirm may rest on old events.
                Ok(done) if done.recorded.is_empty() && !fresh => {}
                Err(Refused::Domain(_)) if !fresh => {}
                Err(Refused::Log(LogError::Moved { .. })) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs one command against the stream with this key if it has `expected` events; else `LogError::Moved`.
    pub async fn execute_at<A: Aggregate>(
        &self,
        key: impl fmt::Display,
        meta: Meta,
        command: A::Command,
        expected: i64,
    ) -> Outcome<A> {
        let stream = StreamName::new(A::STREAM, key);
        let _turn = self.turn(&stream, Instant::now() + self.deadline).await?;
        let fold = self.shared.fresh::<A>(&stream).await?;
        if fold.events != expected && fold.did(meta.tenant, meta.command).is_none() {
            return Err(Refused::Log(LogError::Moved { actual: fold.events }));
        }
        self.attempt(&stream, fold, &meta, command).await
    }

    /// An aggregate with all events that the log has now.
    pub async fn load<A: Aggregate>(&self, key: impl fmt::Display) -> Result<Loaded<A>, LogError> {
        let fold = self.shared.fresh::<A>(&StreamName::new(A::STREAM, key)).await?;
        Ok(Loaded { state: fold.state.clone(), events: fold.events, position: fold.position })
    }

    /// An aggregate as it was at a position: with its events up to there and none after.
    pub async fn load_at<A: Aggregate>(&self, key: impl fmt::Display, position: i64) -> Result<A, LogError> {
        let stream = StreamName::new(A::STREAM, key);
        let cached = self.shared.cached::<A>(&stream).filter(|fold| fold.position <= position);
        let (fold, _) = self.shared.extend(&stream, cached.unwrap_or_default(), position).await?;
        Ok(Arc::unwrap_or_clone(fold).state)
    }

    async fn turn<'a>(&'a self, stream: &'a StreamName, deadline: Instant) -> Result<queue::Turn<'a>, LogError> {
        let waited = |_| LogError::Unreachable(format!("`{stream}` was busy for {} s", self.deadline.as_secs()));
        timeout_at(deadline, self.shared.queues.turn(stream)).await.map_err(waited)
    }

    /// Answers from the fold, or decides and appends.
    async fn attempt<A: Aggregate>(
        &self,
        stream: &StreamName,
        fold: Arc<Fold<A>>,
        meta: &Meta,
        command: A::Command,
    ) -> Outcome<A> {
        if let Some(did) = fold.did(meta.tenant, meta.command) {
            if did.digest != meta.digest {
                return Err(Refused::CommandReused);
            }
            let recorded = self.shared.log.read_stream(stream, did.from_revision, did.events).await?;
            return answer::<A>(Appended::of(recorded, true));
        }
        let events = fold.state.decide(command).map_err(Refused::Domain)?;
        if events.is_empty() {
            let (position, revision) = (fold.position, fold.events - 1);
            return Ok(Done { events, recorded: vec![], position, revision, replayed: false });
        }
        let new = events.iter().map(encode::<A>).collect::<Result<_, _>>()?;
        let append = Append { stream: stream.clone(), expected: fold.events, meta: meta.clone(), events: new };
        let appended = self.shared.log.append(append).await?;
        if appended.replayed {
            return answer::<A>(appended);
        }
        self.shared.follow(stream, fold, &appended.recorded, &events);
        let Appended { position, revision, recorded, replayed, .. } = appended;
        Ok(Done { events, recorded, position, revision, replayed })
    }
}

/// The first answer again, from what is stored.
fn answer<A: Aggregate>(appended: Appended) -> Outcome<A> {
    let events = appended.recorded.iter().map(decode::<A>).collect::<Result<_, _>>()?;
    let Appended { position, revision, recorded, replayed, .. } = appended;
    Ok(Done { events, recorded, position, revision, replayed })
}

impl Shared {
    fn cached<A: Aggregate>(&self, stream: &StreamName) -> Option<Arc<Fold<A>>> {
        self.cache.get(stream)
    }

    /// The fold of a stream with all events that the log has now.
    async fn fresh<A: Aggregate>(&self, stream: &StreamName) -> Result<Arc<Fold<A>>, LogError> {
        let cached = self.cached::<A>(stream).unwrap_or_default();
        let (fold, changed) = self.extend(stream, cached, i64::MAX).await?;
        if changed {
            self.cache.put(stream, Arc::clone(&fold));
        }
        Ok(fold)
    }

    /// The fold with the stream's later events up to a position, and whether there were any.
    async fn extend<A: Aggregate>(
        &self,
        stream: &StreamName,
        mut fold: Arc<Fold<A>>,
        position: i64,
    ) -> Result<(Arc<Fold<A>>, bool), LogError> {
        let known = fold.events;
        loop {
            let page = self.log.read_stream(stream, fold.events, PAGE).await?;
            let wanted = page.iter().take_while(|event| event.position <= position);
            let mut added = 0;
            for event in wanted {
                Arc::make_mut(&mut fold).add(event, &decode::<A>(event)?);
                added += 1;
            }
            if added < PAGE {
                let changed = fold.events != known;
                return Ok((fold, changed));
            }
        }
    }

    /// Keeps the fold with the events that were just appended to it, changed in place unless someone reads it.
    fn follow<A: Aggregate>(
        &self,
        stream: &StreamName,
        mut fold: Arc<Fold<A>>,
        stored: &[Recorded],
        events: &[A::Event],
    ) {
        self.cache.forget(stream);
        let changed = Arc::make_mut(&mut fold);
        stored.iter().zip(events).for_each(|(stored, event)| changed.add(stored, event));
        self.cache.put(stream, fold);
    }
}
