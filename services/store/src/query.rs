//! A statement with its parameters, on either engine. `db.sql("…").bind(id).all::<Order>().await`.
//!
//! Owns: binding, running, reading rows. Invariant: the engines are told apart in one macro.

use crate::Result;
use sqlx::{Database, Encode, FromRow, Pool, Postgres, Sqlite, Type, postgres::PgRow, query, sqlite::SqliteRow};

/// A statement with its parameters and the place where it runs.
#[must_use = "a statement does nothing until it is run"]
pub struct Query<'c>(pub(crate) On<'c>);

pub(crate) enum On<'c> {
    Sqlite(Statement<Sqlite>, Target<'c, Sqlite>),
    Postgres(Statement<Postgres>, Target<'c, Postgres>),
}

type Statement<DB> = query::Query<'static, DB, <DB as Database>::Arguments>;

/// Any connection of the pool, or the one of a transaction.
pub(crate) enum Target<'c, DB: Database> {
    Pools { read: Pool<DB>, write: Pool<DB> },
    Connection(&'c mut DB::Connection),
}

/// What both engines take as a parameter.
pub trait Bind<'q>: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres> {}
impl<'q, T: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres>> Bind<'q> for T {}

/// What both engines give back: a struct with `#[derive(sqlx::FromRow)]`, or a tuple.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}
impl<T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin> Row for T {}

/// The only place where the engines are told apart: `$run` is compiled once for each.
macro_rules! on_either {
    ($query:expr, $pool:ident, |$statement:ident, $target:ident| $run:expr) => {
        match $query.0 {
            On::Sqlite($statement, Target::Pools { $pool: pool, .. }) => {
                let $target = &pool;
                $run
            }
            On::Sqlite($statement, Target::Connection($target)) => $run,
            On::Postgres($statement, Target::Pools { $pool: pool, .. }) => {
                let $target = &pool;
                $run
            }
            On::Postgres($statement, Target::Connection($target)) => $run,
        }
    };
}

impl Query<'_> {
    /// The next parameter, `$1` first.
    pub fn bind<'q>(self, value: impl Bind<'q>) -> Self {
        Self(match self.0 {
            On::Sqlite(statement, target) => On::Sqlite(statement.bind(value), target),
            On::Postgres(statement, target) => On::Postgres(statement.bind(value), target),
        })
    }

    /// Runs it and says how many rows it changed. The only way for a statement outside a transaction to write.
    pub async fn run(self) -> Result<u64> {
        Ok(on_either!(self, write, |statement, target| statement.execute(target).await?.rows_affected()))
    }

    /// The one row there must be.
    pub async fn one<T: Row>(self) -> Result<T> {
        Ok(on_either!(self, read, |statement, target| {
            statement.try_map(|row| T::from_row(&row)).fetch_one(target).await?
        }))
    }

    /// The row, if there is one.
    pub async fn optional<T: Row>(self) -> Result<Option<T>> {
        Ok(on_either!(self, read, |statement, target| {
            statement.try_map(|row| T::from_row(&row)).fetch_optional(target).await?
        }))
    }

    /// Every row.
    pub async fn all<T: Row>(self) -> Result<Vec<T>> {
        Ok(on_either!(self, read, |statement, target| {
            statement.try_map(|row| T::from_row(&row)).fetch_all(target).await?
        }))
    }
}
