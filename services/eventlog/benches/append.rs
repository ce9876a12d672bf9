//! `make bench-log`: how many events a second the log takes on each engine, beside what a plain table takes.
//!
//! Prints one line of JSON: medians of three interleaved rounds. 256 producers append one event of 300 bytes at a time
//! and wait for it to be on the disk. `naive` is one insert per event with a serial position, without revisions or
//! idempotency; `locked` gives what the log gives, by one transaction and one advisory lock per event: the revision is
//! checked, and a command is done once. Both use 64
//! connections; all PostgreSQL figures are of one server with its own settings.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use domain::kernel::{CommandId, Meta, StreamName, TenantId};
use eventlog::{Append, EventLog, NewEvent, SqlLog};
use sqlx::{PgPool, postgres::PgPoolOptions};
use std::time::{Duration, Instant};
use store::testing::{Cluster, Durability, Scratch};
use uuid::Uuid;

const ROUNDS: usize = 3;
const RUN: Duration = Duration::from_secs(3);
const PRODUCERS: usize = 256;
const CONNECTIONS: u32 = 64;
/// A stream is left for the next one after so many events.
const STREAM_EVENTS: usize = 10;
const PAYLOAD_BYTES: usize = 300;
const TENANT: TenantId = TenantId(Uuid::from_u128(7));

/// What one run came to.
#[derive(Debug, Clone, Copy)]
struct Run {
    events_per_s: u128,
    p99_us: u128,
}

/// What takes the events.
enum Sink {
    Log(SqlLog),
    Naive(PgPool),
    Locked(PgPool),
}

const TABLE: &str =
    "create table events (position bigserial primary key, stream text not null, revision bigint not null,
    kind text not null, payload text not null)";
const INSERT: &str = "insert into events (stream, revision, kind, payload) values ($1, $2, 'meter.read', $3)";
const LOCKED_TABLE: &str =
    "alter table events add command text not null, add unique (stream, revision), add unique (command)";
const LOCKED_SEEN: &str = "select (select max(revision) from events where stream = $1),
    (select position from events where command = $2)";
const LOCKED_INSERT: &str =
    "insert into events (stream, revision, kind, payload, command) values ($1, $2, 'meter.read', $3, $4)";

impl Sink {
    async fn plain(url: &str) -> PgPool {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).min_connections(CONNECTIONS);
        let pool = pool.acquire_timeout(Duration::from_secs(60)).connect(url).await.unwrap();
        sqlx::raw_sql(TABLE).execute(&pool).await.unwrap();
        pool
    }

    async fn locked(url: &str) -> Self {
        let pool = Self::plain(url).await;
        sqlx::raw_sql(LOCKED_TABLE).execute(&pool).await.unwrap();
        Self::Locked(pool)
    }

    /// Appends one event of `PAYLOAD_BYTES`; `revision` is the stream's next.
    async fn append(&self, stream: String, revision: i64, payload: String) {
        match self {
            Self::Log(log) => {
                let events = vec![NewEvent { kind: "meter.read".into(), schema: 1, payload }];
                let append = Append { stream: StreamName::stored(stream), expected: revision, meta: meta(), events };
                log.append(append).await.unwrap();
            }
            Self::Naive(pool) => {
                sqlx::query(INSERT).bind(stream).bind(revision).bind(payload).execute(pool).await.unwrap();
            }
            Self::Locked(pool) => {
                let mut tx = pool.begin().await.unwrap();
                sqlx::query("select pg_advisory_xact_lock(1)").execute(&mut *tx).await.unwrap();
                let command = meta().command.to_string();
                let seen = sqlx::query_as(LOCKED_SEEN).bind(&stream).bind(&command).fetch_one(&mut *tx).await;
                let (last, done): (Option<i64>, Option<i64>) = seen.unwrap();
                assert_eq!((last.map_or(0, |last| last + 1), done), (revision, None));
                let insert = sqlx::query(LOCKED_INSERT).bind(stream).bind(revision).bind(payload).bind(command);
                insert.execute(&mut *tx).await.unwrap();
                tx.commit().await.unwrap();
            }
        }
    }

    async fn close(&self) {
        match self {
            // Its writer ends with it.
            Self::Log(_) => {}
            Self::Naive(pool) | Self::Locked(pool) => pool.close().await,
        }
    }
}

fn meta() -> Meta {
    let command = CommandId(Uuid::now_v7());
    Meta {
        tenant: TENANT,
        actor: "nod_01JDZZZZZZZZZZZZZZZZZZZZZZ".into(),
        command,
        digest: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8".into(),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: chrono::Utc::now(),
    }
}

fn payload(producer: usize, n: usize) -> String {
    let start = format!(r#"{{"type":"read","card":"card.a100","producer":{producer},"n":{n},"note":""#);
    format!("{start}{}\"}}", "x".repeat(PAYLOAD_BYTES - start.len() - 2))
}

async fn measure(sink: Sink) -> Run {
    let sink = std::sync::Arc::new(sink);
    let start = Instant::now();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let sink = std::sync::Arc::clone(&sink);
            tokio::spawn(async move {
                let mut took_us = vec![];
                while start.elapsed() < RUN {
                    let n = took_us.len();
                    let stream = format!("meter-{producer}-{}", n / STREAM_EVENTS);
                    let revision = i64::try_from(n % STREAM_EVENTS).unwrap();
                    let payload = payload(producer, n);
                    let begun = Instant::now();
                    sink.append(stream, revision, payload).await;
                    took_us.push(begun.elapsed().as_micros());
                }
                took_us
            })
        })
        .collect();
    let mut took_us = vec![];
    for producer in producers {
        took_us.append(&mut producer.await.unwrap());
    }
    let elapsed_ms = start.elapsed().as_millis();
    sink.close().await;
    took_us.sort_unstable();
    Run { events_per_s: took_us.len() as u128 * 1000 / elapsed_ms, p99_us: took_us[took_us.len() * 99 / 100] }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> u128) -> u128 {
    let mut figures: Vec<_> = runs.iter().map(of).collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

#[tokio::main]
async fn main() {
    let cluster = Cluster::start(Durability::Durable);
    let mut runs: [Vec<Run>; 4] = Default::default();
    for round in 1..=ROUNDS {
        let scratch = Scratch::new();
        runs[0].push(measure(Sink::Log(SqlLog::open(&scratch.url("log")).await.unwrap())).await);
        runs[1].push(measure(Sink::Log(SqlLog::open(&cluster.database().await).await.unwrap())).await);
        runs[2].push(measure(Sink::Naive(Sink::plain(&cluster.database().await).await)).await);
        runs[3].push(measure(Sink::locked(&cluster.database().await).await).await);
        eprintln!("round {round} of {ROUNDS}: {:?}", runs.each_ref().map(|runs| runs[round - 1]));
    }
    let rate = |sink: usize| median(&runs[sink], |run| run.events_per_s);
    let p99_ms = |sink: usize| {
        let p99_us = median(&runs[sink], |run| run.p99_us);
        format!("{}.{}", p99_us / 1000, p99_us % 1000 / 100)
    };
    println!(
        r#"{{"sqlite_events_per_s":{},"sqlite_p99_ms":{},"postgres_events_per_s":{},"postgres_p99_ms":{},"naive_postgres_events_per_s":{},"locked_postgres_events_per_s":{}}}"#,
        rate(0),
        p99_ms(0),
        rate(1),
        p99_ms(1),
        rate(2),
        rate(3)
    );
}
