//! The log in a SQL database: SQLite (embedded) or PostgreSQL, from one text.
//!
//! Owns: the log's tables. Does not own: the rules of appending (`book`). Invariant: only the holder of the row of
//! `log_head` appends, so a reader never passes a position that could still commit, whichever process commits it.

mod batch;
mod group;
mod writer;

use crate::{Append, Appended, EventLog, LogError};
use batch::Row;
use domain::kernel::{CommandId, Recorded, StreamName};
use futures::future::{BoxFuture, FutureExt};
use sqlx::migrate::Migrator;
use store::Db;
use tokio::sync::{mpsc, oneshot, watch};
use writer::Job;

/// The log's tables.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/log");

/// How many appends may wait for the writer.
const QUEUE_MAX: usize = 4096;

/// The log of one database. Its writer task ends, after what is queued, when this is dropped.
#[derive(Debug)]
pub struct SqlLog {
    db: Db,
    queue: mpsc::Sender<Job>,
    head: watch::Receiver<i64>,
}

impl SqlLog {
    /// Opens the log of `sqlite:PATH` or `postgres://…`, brings its schema up to date and starts its writer. The
    /// database holds nothing else.
    pub async fn open(url: &str) -> store::Result<Self> {
        Self::start(Db::open(url, &MIGRATIONS).await?).await
    }

    /// Starts the writer of a database that was opened with `MIGRATIONS`.
    pub async fn start(db: Db) -> store::Result<Self> {
        let (position,) = db.sql("select position from log_head where id = 1").one::<(i64,)>().await?;
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let (committed, head) = watch::channel(position);
        tokio::spawn(writer::run(db.clone(), jobs, committed));
        Ok(Self { db, queue, head })
    }

    async fn add(&self, append: Append) -> Result<Appended, LogError> {
        append.check()?;
        let gone = |_| LogError::Unreachable("the writer has ended".into());
        let (reply, answer) = oneshot::channel();
        self.queue.send(Job { append, reply }).await.map_err(|_| gone(()))?;
        answer.await.map_err(|_| gone(()))?
    }
}

impl EventLog for SqlLog {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, LogError>> {
        self.add(append).boxed()
    }

    fn read_stream<'a>(
        &'a self,
        stream: &'a StreamName,
        from_revision: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        let select = "select * from events where stream = $1 and revision >= $2 order by revision limit $3";
        let query = self.db.sql(select).bind(stream.as_str()).bind(from_revision).bind(rows(limit));
        read(query).boxed()
    }

    fn read_all(&self, after_position: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Recorded>, LogError>> {
        let select = "select * from events where position > $1 order by position limit $2";
        read(self.db.sql(select).bind(after_position).bind(rows(limit))).boxed()
    }

    fn read_category<'a>(
        &'a self,
        category: &'a str,
        after_position: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, LogError>> {
        let select = "select * from events where category = $1 and position > $2 order by position limit $3";
        read(self.db.sql(select).bind(category).bind(after_position).bind(rows(limit))).boxed()
    }

    fn last_of(&self, correlation: CommandId) -> BoxFuture<'_, Result<i64, LogError>> {
        let select = "select position from events where correlation = $1 order by position desc limit 1";
        let query = self.db.sql(select).bind(store::Id(correlation));
        async move { Ok(query.optional::<(i64,)>().await.map_err(read_error)?.map_or(0, |(position,)| position)) }
            .boxed()
    }

    fn head(&self) -> watch::Receiver<i64> {
        self.head.clone()
    }
}

async fn read(query: store::Query<'_>) -> Result<Vec<Recorded>, LogError> {
    let rows: Vec<Row> = query.all().await.map_err(read_error)?;
    rows.into_iter().map(Row::recorded).collect()
}

/// A row that does not decode is there but not understood; anything else is the database's.
fn read_error(error: store::Error) -> LogError {
    use sqlx::Error::{ColumnDecode, ColumnNotFound, Decode};
    if let store::Error::Sql(ColumnDecode { .. } | Decode(_) | ColumnNotFound(_)) = error {
        LogError::Unreadable(error.to_string())
    } else {
        LogError::Unreachable(error.to_string())
    }
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
