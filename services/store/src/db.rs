//! The database: pools of either engine, and write transactions.
//!
//! Owns: how a database is opened, `Db`, `Tx`. Invariants: on SQLite one connection writes and the others cannot; every
//! write transaction takes its lock at the start, so that it never fails half-way for a lock (SQLITE_BUSY); a statement
//! or transaction ends in the database where it began, also when another is put in its place meanwhile.

use crate::query::{On, Target};
use crate::{Error, Query, Result};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, PgPool, Postgres, SqlSafeStr, Sqlite, SqlitePool, Transaction};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Two servers with four databases each, and read models that both put in place of others, fit into PostgreSQL's usual 100.
const CONNECTIONS_MAX: u32 = 8;
/// What a session of PostgreSQL bears, so that a server that stands still or lost its network in the middle of a
/// transaction does not keep the others from writing: it loses the transaction, and finds out when it goes on.
const PATIENCE: [(&str, &str); 6] = [
    ("idle_in_transaction_session_timeout", "5s"),
    ("lock_timeout", "20s"),
    ("tcp_user_timeout", "15s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "2"),
];
const SQLITE_READERS_MAX: u32 = 8;
/// When SQLite copies what was written into its file, in pages of 4 KiB: a page that was changed often meanwhile is copied
/// once.
const SQLITE_WAL_PAGES: &str = "4000";
/// How long a writer waits for another process's SQLite transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes PostgreSQL understand `select value ->> 'key' from json_each($1)` as SQLite does, for a text parameter.
/// Not strict and not volatile, so that the planner inlines it; `jsonb`, so that each row is parsed once. The lock is
/// for two processes that start at once: they would change the function's catalog row together.
const JSON_EACH: &str = "select pg_advisory_xact_lock(20261130);
    create or replace function json_each(items text) returns table (value jsonb) immutable
    language sql rows 100 as 'select jsonb_array_elements(items::jsonb)'";

/// What says in an address which schema of a PostgreSQL database it is.
pub(crate) const SCHEMA: &str = "options[search_path]=";
/// Held shared by each connection to a schema, and alone by who drops it; the second key is the schema's name.
pub(crate) const IN_USE: i32 = 20_261_130;

/// A database of either engine. Clones share its connections, and whatever is put in its place (`switch`).
#[derive(Debug, Clone)]
pub struct Db(Arc<RwLock<Pools>>);

#[derive(Debug, Clone)]
enum Pools {
    Sqlite {
        read: SqlitePool,
        write: SqlitePool,
    },
    /// `turn` has one connection, which is made when it is used first.
    Postgres {
        pool: PgPool,
        turn: PgPool,
    },
}

/// A write transaction. Dropped without `commit`, it never was.
#[derive(Debug)]
pub struct Tx(pub(crate) Open);

#[derive(Debug)]
pub(crate) enum Open {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

/// Which engine it is, for the few statements that cannot be one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

impl Db {
    /// Opens `sqlite:PATH` or `postgres://…` and brings its schema up to date; of PostgreSQL the schema that
    /// `options[search_path]` names, if it does, which is made if need be. A commit is on the disk when it answers.
    pub async fn open(url: &str, migrations: &'static Migrator) -> Result<Self> {
        Self::open_as(url, migrations, true).await
    }

    /// The same for data that can be made again (read models, runtime state): a power cut may lose the last commits,
    /// never the order of commits or the file.
    pub async fn open_relaxed(url: &str, migrations: &'static Migrator) -> Result<Self> {
        Self::open_as(url, migrations, false).await
    }

    async fn open_as(url: &str, migrations: &'static Migrator, durable: bool) -> Result<Self> {
        if url.starts_with("sqlite:") {
            sqlite(url, migrations, durable).await
        } else if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            postgres(url, migrations, durable).await
        } else {
            Err(Error::BadUrl("its address starts neither with `sqlite:` nor with `postgres:`"))
        }
    }

    /// Begins to write. SQLite takes its write lock at once, since a later upgrade fails without waiting.
    pub async fn begin(&self) -> Result<Tx> {
        Ok(Tx(match self.pools() {
            Pools::Sqlite { write, .. } => Open::Sqlite(begin_sqlite(&write).await?),
            Pools::Postgres { pool, .. } => Open::Postgres(pool.begin().await?),
        }))
    }

    /// Begins to write after the transaction before has ended, for one task that writes group after group. On PostgreSQL
    /// all of them are on one connection, whose process has what it needs at hand; a pool would change between two.
    pub async fn begin_in_turn(&self) -> Result<Tx> {
        match self.pools() {
            // One connection writes there anyway.
            Pools::Sqlite { .. } => self.begin().await,
            Pools::Postgres { turn, .. } => match turn.begin().await {
                Err(error @ (sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)) => Err(error.into()),
                // Nobody looked whether its connection still is; the next is a new one.
                Err(_) => Ok(Tx(Open::Postgres(turn.begin().await?))),
                Ok(begun) => Ok(Tx(Open::Postgres(begun))),
            },
        }
    }

    /// Puts another database in this one's place, for all clones at once; gives back what was there. What has begun
    /// there goes on, so it is closed a little later.
    pub fn switch(&self, to: &Self) -> Self {
        let to = to.pools();
        let mut pools = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Self::of(std::mem::replace(&mut pools, to))
    }

    fn of(pools: Pools) -> Self {
        Self(Arc::new(RwLock::new(pools)))
    }

    fn pools(&self) -> Pools {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A statement on its own. One that writes must be `run`; `… returning …` needs a transaction.
    pub fn sql(&self, text: impl SqlSafeStr) -> Query<'_> {
        Query(match self.pools() {
            Pools::Sqlite { read, write } => On::Sqlite(sqlx::query(text), Target::Pools { read, write }),
            Pools::Postgres { pool, .. } => {
                On::Postgres(sqlx::query(text), Target::Pools { read: pool.clone(), write: pool })
            }
        })
    }

    /// Takes out of the files what was deleted from a table or written over: SQLite empties its journal, PostgreSQL
    /// writes the table anew. Who reads a SQLite database meanwhile may keep the journal; doing it again helps.
    pub async fn scrub(&self, table: &'static str) -> Result<()> {
        match self.pools() {
            Pools::Sqlite { write, .. } => {
                sqlx::query("pragma wal_checkpoint(truncate)").execute(&write).await?;
            }
            Pools::Postgres { pool, .. } => {
                sqlx::raw_sql(AssertSqlSafe(format!("vacuum full {table}"))).execute(&pool).await?;
            }
        }
        Ok(())
    }

    /// Which engine it is.
    pub fn engine(&self) -> Engine {
        match self.pools() {
            Pools::Sqlite { .. } => Engine::Sqlite,
            Pools::Postgres { .. } => Engine::Postgres,
        }
    }

    /// Closes every connection, also for the clones; waits for those in use. SQLite folds its journal into the file.
    pub async fn close(&self) {
        match self.pools() {
            Pools::Sqlite { read, write } => {
                read.close().await;
                write.close().await;
            }
            Pools::Postgres { pool, turn } => {
                pool.close().await;
                turn.close().await;
            }
        }
    }
}

impl Tx {
    /// A statement of this transaction.
    pub fn sql(&mut self, text: impl SqlSafeStr) -> Query<'_> {
        Query(match &mut self.0 {
            Open::Sqlite(tx) => On::Sqlite(sqlx::query(text), Target::Connection(&mut **tx)),
            Open::Postgres(tx) => On::Postgres(sqlx::query(text), Target::Connection(&mut **tx)),
        })
    }

    /// Makes it durable.
    pub async fn commit(self) -> Result<()> {
        match self.0 {
            Open::Sqlite(tx) => tx.commit().await?,
            Open::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
}

/// Where SQLite has rolled a transaction back by itself (a full disk, an input or output error), the connection counts it
/// as open for ever and begins no other: it is replaced.
async fn begin_sqlite(write: &SqlitePool) -> Result<Transaction<'static, Sqlite>> {
    const BEGIN: &str = "begin immediate";
    match write.begin_with(BEGIN).await {
        Err(sqlx::Error::InvalidSavePointStatement) => {
            write.acquire().await?.close().await?;
            Ok(write.begin_with(BEGIN).await?)
        }
        begun => Ok(begun?),
    }
}

async fn sqlite(url: &str, migrations: &'static Migrator, durable: bool) -> Result<Db> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(Error::BadUrl("each connection would have a SQLite memory of its own"));
    }
    let options = url.parse::<SqliteConnectOptions>()?.foreign_keys(true).busy_timeout(BUSY_TIMEOUT);
    let synchronous = if durable { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
    let writer = options.clone().create_if_missing(true).journal_mode(SqliteJournalMode::Wal).synchronous(synchronous);
    // What is deleted or written over is overwritten with zeros in the file.
    let writer = writer.pragma("secure_delete", "on");
    let writer = writer.pragma("wal_autocheckpoint", SQLITE_WAL_PAGES);
    let write = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false).connect_with(writer).await?;
    migrate_sqlite(&write, migrations).await?;
    let readers = options.pragma("query_only", "on");
    let read = SqlitePoolOptions::new().max_connections(SQLITE_READERS_MAX).connect_lazy_with(readers);
    Ok(Db::of(Pools::Sqlite { read, write }))
}

/// SQLite has no lock for a whole migration, as PostgreSQL has: of two processes that start at once, one finds the tables
/// that the other has just made. It looks again, and at most once for each step that the other may have taken.
async fn migrate_sqlite(pool: &SqlitePool, migrations: &'static Migrator) -> Result<()> {
    for _ in migrations.iter() {
        match migrations.run(pool).await {
            Err(MigrateError::ExecuteMigration(..)) => {}
            done => return Ok(done?),
        }
    }
    Ok(migrations.run(pool).await?)
}

async fn postgres(url: &str, migrations: &'static Migrator, durable: bool) -> Result<Db> {
    let commit = if durable { "on" } else { "off" };
    let options = url.parse::<PgConnectOptions>()?.options([("synchronous_commit", commit)]).options(PATIENCE);
    let mut pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX);
    let schema = url.split_once(SCHEMA).and_then(|(_, rest)| rest.split('&').next());
    if schema.is_some() {
        pool = pool.after_connect(|connection, _| {
            Box::pin(async move {
                // What is being dropped is waited for, and is gone then.
                let held = sqlx::query("select pg_advisory_lock_shared($1, hashtext(current_setting('search_path')))");
                held.bind(IN_USE).execute(connection).await.map(drop)
            })
        });
    }
    // A pool would try for half a minute, and would not say what the matter is.
    let mut first = PgConnection::connect_with(&options).await?;
    if let Some(schema) = schema {
        // Two processes that start at once would both make it.
        let make = format!("select pg_advisory_xact_lock({IN_USE}); create schema if not exists {schema}");
        sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut first).await?;
    }
    first.close().await?;
    let turn = pool.clone().max_connections(1).test_before_acquire(false).connect_lazy_with(options.clone());
    let pool = pool.connect_with(options).await?;
    migrations.run(&pool).await?;
    sqlx::raw_sql(JSON_EACH).execute(&pool).await?;
    Ok(Db::of(Pools::Postgres { pool, turn }))
}
