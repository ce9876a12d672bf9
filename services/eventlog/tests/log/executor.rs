//! Load, decide, append, with a small aggregate.

use crate::kit::{TENANT, each, meta};
use domain::kernel::{Aggregate, CommandId, Kind, Meta, Recorded, Rejection, StreamName};
use eventlog::{Append, Appended, Done, EventLog, Executor, Log, LogError, MemoryLog, Refused, digest};
use futures::future::{BoxFuture, FutureExt, join_all};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A jar that holds at most `MAX` sweets; each taking tells what is left.
#[derive(Debug, Clone, Default, PartialEq)]
struct Jar {
    sweets: i64,
}

const MAX: i64 = 1000;

#[derive(Debug, Clone)]
enum Command {
    Fill { to: i64 },
    Put { sweets: i64 },
    Empty,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    PutIn { sweets: i64, now: i64 },
    TakenOut { sweets: i64 },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0} sweets do not fit: a jar holds at most {MAX}")]
struct Full(i64);

impl Rejection for Full {
    fn code(&self) -> &'static str {
        "jar.full"
    }

    fn kind(&self) -> Kind {
        Kind::Exhausted
    }
}

impl Aggregate for Jar {
    const STREAM: &'static str = "jar";
    const SCHEMA: u32 = 3;
    type Command = Command;
    type Event = Event;
    type Error = Full;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Full> {
        match command {
            Command::Fill { to } if to <= self.sweets => Ok(vec![]),
            Command::Fill { to } => self.decide(Command::Put { sweets: to - self.sweets }),
            Command::Put { sweets } if self.sweets + sweets > MAX => Err(Full(sweets)),
            Command::Put { sweets } => Ok(vec![Event::PutIn { sweets, now: self.sweets + sweets }]),
            Command::Empty => Ok((0..self.sweets.min(3)).map(|_| Event::TakenOut { sweets: 1 }).collect()),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match event {
            Event::PutIn { sweets, .. } => Self { sweets: self.sweets + sweets },
            Event::TakenOut { sweets } => Self { sweets: self.sweets - sweets },
        }
    }
}

type Outcome = Result<Done<Event>, Refused<Full>>;

async fn put(executor: &Executor, meta: Meta, sweets: i64) -> Outcome {
    executor.execute::<Jar>("a", meta, Command::Put { sweets }).await
}

#[tokio::test]
async fn commands_to_one_stream_queue() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let executor = Executor::new(Arc::clone(&log));
        let all = join_all((0..50).map(|_| put(&executor, meta(), 2))).await;
        let nows: Vec<_> = all
            .into_iter()
            .map(|done| match done.unwrap().events[..] {
                [Event::PutIn { now, .. }] => now,
                ref events => panic!("{events:?}"),
            })
            .collect();
        assert_eq!(nows, (1..=50).map(|n| 2 * n).collect::<Vec<_>>(), "first come, first served");
        let jar = executor.load::<Jar>("a").await.unwrap();
        assert_eq!((jar.state.sweets, jar.events, jar.position), (100, 50, 50));
        let stored = &log.read_stream(&StreamName::new("jar", "a"), 0, 1).await.unwrap()[0];
        assert_eq!((stored.kind.as_str(), stored.schema, stored.meta.tenant), ("jar.put_in", 3, TENANT));
        assert_eq!(stored.payload, r#"{"type":"put_in","sweets":2,"now":2}"#);
    }
}

#[tokio::test]
async fn a_repeated_command_gets_its_first_answer() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let executor = Executor::new(Arc::clone(&log));
        put(&executor, meta(), 900).await.unwrap();
        let asked = meta();
        let first = executor.execute::<Jar>("a", asked.clone(), Command::Empty).await.unwrap();
        assert_eq!((first.events.len(), first.position, first.revision, first.replayed), (3, 4, 3, false));
        put(&executor, meta(), 100).await.unwrap();

        // A colleague without a cache, and one that would refuse it by now.
        for executor in [&executor, &Executor::new(Arc::clone(&log))] {
            let again = executor.execute::<Jar>("a", asked.clone(), Command::Put { sweets: MAX }).await.unwrap();
            assert_eq!(again, Done { replayed: true, ..first.clone() });
            let at = executor.execute_at::<Jar>("a", asked.clone(), Command::Empty, 1).await.unwrap();
            assert_eq!(at, again);
            let other = Meta { digest: digest(&["other"]), ..asked.clone() };
            assert_eq!(put(executor, other, 1).await, Err(Refused::CommandReused));
            let elsewhere = executor.execute::<Jar>("b", asked.clone(), Command::Put { sweets: 1 }).await;
            assert_eq!(elsewhere, Err(Refused::CommandReused));
        }
        assert_eq!(executor.load::<Jar>("a").await.unwrap().events, 5);
    }
}

#[tokio::test]
async fn the_log_answers_a_command_that_the_cache_does_not_know() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let (one, two) = (Executor::new(Arc::clone(&log)), Executor::new(log));
        put(&two, meta(), 1).await.unwrap();
        let asked = meta();
        let first = put(&one, asked.clone(), 5).await.unwrap();
        assert_eq!(put(&two, asked, 5).await.unwrap(), Done { replayed: true, ..first });
        assert_eq!(put(&two, meta(), 1).await.unwrap().events, [Event::PutIn { sweets: 1, now: 7 }]);
    }
}

#[tokio::test]
async fn two_executors_over_one_log_stay_right() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let (one, two) = (Executor::new(Arc::clone(&log)), Executor::new(log));
        put(&one, meta(), MAX).await.unwrap();
        assert_eq!(put(&two, meta(), 1).await, Err(Refused::Domain(Full(1))));
        one.execute::<Jar>("a", meta(), Command::Empty).await.unwrap();
        // What its own cache says is full, or filled, is looked up before it is answered.
        assert_eq!(put(&two, meta(), 3).await.unwrap().events, [Event::PutIn { sweets: 3, now: MAX }]);
        two.execute::<Jar>("a", meta(), Command::Empty).await.unwrap();
        let filled = one.execute::<Jar>("a", meta(), Command::Fill { to: MAX }).await.unwrap();
        assert_eq!(filled.events, [Event::PutIn { sweets: 3, now: MAX }]);
        let again = two.execute::<Jar>("a", meta(), Command::Fill { to: MAX }).await.unwrap();
        assert_eq!(again, Done { events: vec![], recorded: vec![], replayed: false, ..filled });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_executors_at_once_lose_no_command() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let executors = [Executor::new(Arc::clone(&log)), Executor::new(Arc::clone(&log))];
        join_all((0..60).map(|n| {
            let executor = executors[n % 2].clone();
            tokio::spawn(async move { put(&executor, meta(), 1).await.unwrap() })
        }))
        .await;
        for executor in executors {
            assert_eq!(executor.load::<Jar>("a").await.unwrap().state.sweets, 60);
        }
        assert_eq!(log.read_all(0, 100).await.unwrap().len(), 60);
    }
}

#[tokio::test]
async fn a_command_that_changes_nothing_tells_where_the_stream_is() {
    let executor = Executor::new(Arc::new(MemoryLog::default()));
    let nothing = executor.execute::<Jar>("a", meta(), Command::Empty).await.unwrap();
    assert_eq!((nothing.position, nothing.revision, nothing.replayed), (0, -1, false));
    put(&executor, meta(), 5).await.unwrap();
    let nothing = executor.execute::<Jar>("a", meta(), Command::Fill { to: 5 }).await.unwrap();
    assert_eq!((nothing.position, nothing.revision, nothing.events), (1, 0, vec![]));
}

#[tokio::test]
async fn a_command_at_a_revision_is_not_decided_anew() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let executor = Executor::new(log);
        let at = async |expected| {
            let command = Command::Put { sweets: 1 };
            executor.execute_at::<Jar>("a", meta(), command, expected).await.map(|done| done.revision)
        };
        assert_eq!(at(0).await, Ok(0));
        assert_eq!(at(0).await, Err(Refused::Log(LogError::Moved { actual: 1 })));
        assert_eq!(at(7).await, Err(Refused::Log(LogError::Moved { actual: 1 })));
        assert_eq!(at(1).await, Ok(1));
    }
}

#[tokio::test]
async fn a_state_is_loaded_as_of_a_position() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let executor = Executor::new(Arc::clone(&log));
        for sweets in 1..=4 {
            put(&executor, meta(), sweets).await.unwrap();
            executor.execute::<Jar>("b", meta(), Command::Put { sweets: 1 }).await.unwrap();
        }
        for executor in [executor, Executor::new(log)] {
            for (position, sweets) in [(0, 0), (1, 1), (2, 1), (3, 3), (6, 6), (7, 10), (99, 10)] {
                assert_eq!(executor.load_at::<Jar>("a", position).await.unwrap(), Jar { sweets }, "{position}");
            }
        }
    }
}

#[tokio::test]
async fn a_long_stream_is_folded_whole() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let payload = r#"{"type":"put_in","sweets":0,"now":0}"#;
        let event = || eventlog::NewEvent { kind: "jar.put_in".into(), schema: 3, payload: payload.into() };
        let events = (0..1001).map(|_| event()).collect();
        log.append(Append { stream: StreamName::new("jar", "a"), expected: 0, meta: meta(), events }).await.unwrap();
        let executor = Executor::new(log);
        assert_eq!(executor.load::<Jar>("a").await.unwrap().events, 1001);
        assert_eq!(put(&executor, meta(), 1).await.unwrap().revision, 1001);
    }
}

#[tokio::test]
async fn an_event_that_is_not_of_the_aggregate_stops_it() {
    let log: Log = Arc::new(MemoryLog::default());
    let events = vec![eventlog::NewEvent { kind: "jar.broken".into(), schema: 9, payload: "{}".into() }];
    log.append(Append { stream: StreamName::new("jar", "a"), expected: 0, meta: meta(), events }).await.unwrap();
    let refused = put(&Executor::new(log), meta(), 1).await.unwrap_err();
    assert!(refused.to_string().contains("`jar.broken` at revision 0 of `jar-a`"), "{refused}");
}

/// A log on which another writer is always first.
struct Contended(MemoryLog, AtomicUsize);

impl EventLog for Contended {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, LogError>> {
        async move {
            self.1.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err(LogError::Moved { actual: append.expected + 1 })
        }
        .boxed()
    }

    fn read_stream<'a>(
        &'a self,
        stream: &'a StreamName,
        from: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        self.0.read_stream(stream, from, limit)
    }

    fn read_all(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Recorded>, LogError>> {
        self.0.read_all(after, limit)
    }

    fn read_category<'a>(
        &'a self,
        category: &'a str,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        self.0.read_category(category, after, limit)
    }

    fn last_of(&self, correlation: CommandId) -> BoxFuture<'_, Result<i64, LogError>> {
        self.0.last_of(correlation)
    }

    fn head(&self) -> watch::Receiver<i64> {
        self.0.head()
    }
}

#[tokio::test]
async fn a_lost_race_is_decided_anew_until_the_deadline() {
    let log = Arc::new(Contended(MemoryLog::default(), AtomicUsize::new(0)));
    let executor = Executor::new(log.clone()).with_deadline(Duration::from_millis(50));
    assert_eq!(put(&executor, meta(), 1).await, Err(Refused::Log(LogError::Moved { actual: 1 })));
    assert!(log.1.load(Ordering::Relaxed) > 2);
}

proptest! {
    /// Random commands through two executors, some sent twice: the log folds to what a plain sum says.
    #[test]
    fn any_sequence_folds_to_the_sum(steps in prop::collection::vec((0_usize..2, 0_i64..300, any::<bool>()), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let log: Log = Arc::new(MemoryLog::default());
            let executors = [Executor::new(Arc::clone(&log)), Executor::new(log)];
            let mut sum = 0;
            for (who, sweets, twice) in steps {
                let asked = meta();
                let done = put(&executors[who], asked.clone(), sweets).await;
                prop_assert_eq!(done.is_ok(), sum + sweets <= MAX);
                sum += if done.is_ok() { sweets } else { 0 };
                if twice {
                    let again = put(&executors[1 - who], asked, sweets).await;
                    prop_assert_eq!(again.map(|done| done.position), done.map(|done| done.position));
                }
            }
            for executor in &executors {
                prop_assert_eq!(executor.load::<Jar>("a").await.unwrap().state.sweets, sum);
            }
            Ok(())
        })?;
    }
}
