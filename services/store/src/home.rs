//! Where the databases of one platform are: files in one folder, or schemas of one PostgreSQL database.
//!
//! Owns: the address of each by its name, copying tables between two, dropping one. Does not own: which there are.
//! Invariants: an address, which may hold a password, is never shown; what somebody still uses is not dropped.

use crate::db::{IN_USE, SCHEMA};
use crate::{Db, Engine, Error, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The place of a platform's databases.
#[derive(Clone)]
pub struct Home(Place);

#[derive(Clone)]
enum Place {
    Folder(PathBuf),
    /// The address of the database, without a schema.
    Postgres(String),
}

impl Home {
    /// SQLite files in this folder.
    pub fn folder(path: &Path) -> Self {
        Self(Place::Folder(path.to_owned()))
    }

    /// Schemas of the PostgreSQL database at `postgres://…`. `Error::BadUrl` if it is no such address.
    pub fn postgres(url: &str) -> Result<Self> {
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(Error::BadUrl("its address does not start with `postgres://`"));
        }
        if url.contains(SCHEMA) {
            return Err(Error::BadUrl("its address names a schema, and each database gets one of its own"));
        }
        url.parse::<PgConnectOptions>()?;
        Ok(Self(Place::Postgres(url.to_owned())))
    }

    /// Which engine it is.
    pub fn engine(&self) -> Engine {
        match self.0 {
            Place::Folder(_) => Engine::Sqlite,
            Place::Postgres(_) => Engine::Postgres,
        }
    }

    /// The address of the database with this name, which has small letters, digits and `_` only.
    pub fn url(&self, name: &str) -> String {
        match &self.0 {
            Place::Folder(folder) => format!("sqlite:{}", file(folder, name, "").display()),
            Place::Postgres(url) => format!("{url}{}{SCHEMA}{name}", if url.contains('?') { '&' } else { '?' }),
        }
    }

    /// Drops the database with this name, if there is one. Says whether it is gone: on PostgreSQL it stays while any
    /// process is connected to it; a SQLite file must be closed before.
    pub async fn remove(&self, name: &str) -> Result<bool> {
        match &self.0 {
            Place::Folder(folder) => remove_files(folder, name).await.map(|()| true),
            Place::Postgres(url) => drop_schema(url, name).await,
        }
    }

    /// Copies the rows of these tables out of the database with this name into one of the same tables, all as of one
    /// instant. Whoever writes there goes on meanwhile.
    pub async fn copy(&self, from: &str, into: &Db, tables: &[&'static str]) -> Result<()> {
        if let Place::Folder(folder) = &self.0 {
            // Only read, so that the transaction below does not lock it.
            let attach = format!("attach database $1 as {from}");
            into.sql(AssertSqlSafe(attach)).bind(read_only(&file(folder, from, ""))).run().await?;
        }
        let copied = copy_attached(self.engine(), from, into, tables).await;
        if self.engine() == Engine::Sqlite {
            into.sql(AssertSqlSafe(format!("detach database {from}"))).run().await?;
        }
        copied
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Folder(folder) => write!(f, "Home({})", folder.display()),
            Place::Postgres(_) => f.write_str("Home(postgres)"),
        }
    }
}

async fn copy_attached(engine: Engine, from: &str, into: &Db, tables: &[&'static str]) -> Result<()> {
    let mut tx = into.begin().await?;
    if engine == Engine::Postgres {
        tx.sql("set transaction isolation level repeatable read").run().await?;
    }
    for table in tables {
        let copy = format!("insert into {table} select * from {from}.{table}");
        tx.sql(AssertSqlSafe(copy)).run().await?;
    }
    tx.commit().await
}

fn file(folder: &Path, name: &str, suffix: &str) -> PathBuf {
    folder.join(format!("{name}.db{suffix}"))
}

/// The URI of a file that is not written.
fn read_only(file: &Path) -> String {
    let path = file.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?mode=ro")
}

async fn remove_files(folder: &Path, name: &str) -> Result<()> {
    // The database itself goes first: a journal without it is never read into another.
    for suffix in ["", "-wal", "-shm"] {
        match tokio::fs::remove_file(file(folder, name, suffix)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::Sql(error.into())),
            Err(_) | Ok(()) => {}
        }
    }
    Ok(())
}

async fn drop_schema(url: &str, name: &str) -> Result<bool> {
    let mut connection = PgConnection::connect_with(&url.parse::<PgConnectOptions>()?).await?;
    let dropped = drop_unless_used(&mut connection, name).await;
    connection.close().await?;
    dropped
}

async fn drop_unless_used(connection: &mut PgConnection, name: &str) -> Result<bool> {
    let mut tx = connection.begin().await?;
    let alone = sqlx::query_scalar("select pg_try_advisory_xact_lock($1, hashtext($2))");
    let alone: bool = alone.bind(IN_USE).bind(name).fetch_one(&mut *tx).await?;
    if alone {
        sqlx::raw_sql(AssertSqlSafe(format!("drop schema if exists {name} cascade"))).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    Ok(alone)
}
