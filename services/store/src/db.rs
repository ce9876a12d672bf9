//! The database: pools of either engine, and write transactions.
//!
//! Owns: how a database is opened, `Db`, `Tx`. Invariants: on SQLite one connection writes and the others cannot; every
//! write transaction takes its lock at the start, so that it never fails half-way for a lock (SQLITE_BUSY).

use crate::query::{On, Target};
use crate::{Error, Query, Result};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{PgPool, Postgres, SqlSafeStr, Sqlite, SqlitePool, Transaction};
use std::time::Duration;

const CONNECTIONS_MAX: u32 = 16;
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

/// A database of either engine. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Db(Pools);

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
    /// Opens `sqlite:PATH` or `postgres://…` and brings its schema up to date. A commit is on the disk when it answers.
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
        Ok(Tx(match &self.0 {
            Pools::Sqlite { write, .. } => Open::Sqlite(write.begin_with("begin immediate").await?),
            Pools::Postgres { pool, .. } => Open::Postgres(pool.begin().await?),
        }))
    }

    /// Begins to write after the transaction before has ended, for one task that writes group after group. On PostgreSQL
    /// all of them are on one connection, whose process has what it needs at hand; a pool would change between two.
    pub async fn begin_in_turn(&self) -> Result<Tx> {
        match &self.0 {
            // One connection writes there anyway.
            Pools::Sqlite { .. } => self.begin().await,
            Pools::Postgres { turn, .. } => match turn.begin().await {
                // Nobody looked whether its connection still is; the next is a new one.
                Err(sqlx::Error::Io(_)) => Ok(Tx(Open::Postgres(turn.begin().await?))),
                begun => Ok(Tx(Open::Postgres(begun?))),
            },
        }
    }

    /// A statement on its own. One that writes must be `run`; `… returning …` needs a transaction.
    pub fn sql(&self, text: impl SqlSafeStr) -> Query<'_> {
        Query(match &self.0 {
            Pools::Sqlite { read, write } => On::Sqlite(sqlx::query(text), Target::Pools { read, write }),
            Pools::Postgres { pool, .. } => On::Postgres(sqlx::query(text), Target::Pools { read: pool, write: pool }),
        })
    }

    /// Which engine it is.
    pub fn engine(&self) -> Engine {
        match self.0 {
            Pools::Sqlite { .. } => Engine::Sqlite,
            Pools::Postgres { .. } => Engine::Postgres,
        }
    }

    /// Closes every connection, also for the clones; waits for those in use. SQLite folds its journal into the file.
    pub async fn close(&self) {
        match &self.0 {
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

async fn sqlite(url: &str, migrations: &'static Migrator, durable: bool) -> Result<Db> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(Error::BadUrl("each connection would have a SQLite memory of its own"));
    }
    let options = url.parse::<SqliteConnectOptions>()?.foreign_keys(true).busy_timeout(BUSY_TIMEOUT);
    let writer = options.clone().create_if_missing(true).journal_mode(SqliteJournalMode::Wal).synchronous(if durable {
        SqliteSynchronous::Full
    } else {
        SqliteSynchronous::Normal
    });
    let writer = writer.pragma("wal_autocheckpoint", SQLITE_WAL_PAGES);
    let write = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false).connect_with(writer).await?;
    migrate_sqlite(&write, migrations).await?;
    let readers = options.pragma("query_only", "on");
    let read = SqlitePoolOptions::new().max_connections(SQLITE_READERS_MAX).connect_lazy_with(readers);
    Ok(Db(Pools::Sqlite { read, write }))
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
    let options = url.parse::<PgConnectOptions>()?.options([("synchronous_commit", commit)]);
    let turn = PgPoolOptions::new().max_connections(1).test_before_acquire(false).connect_lazy_with(options.clone());
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await?;
    migrations.run(&pool).await?;
    sqlx::raw_sql(JSON_EACH).execute(&pool).await?;
    Ok(Db(Pools::Postgres { pool, turn }))
}
