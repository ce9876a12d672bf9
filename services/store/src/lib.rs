//! SQLite and PostgreSQL behind one portable SQL text.
//!
//! Owns: where databases are (`Home`), the pool (`Db`), transactions (`Tx`), statements (`Query`), many rows at once
//! (`Cell`), pages, checkpoints, and the column types that let one struct be the SQL row, the GraphQL object and the
//! REST schema. Does not own: any table, nor any migration; each crate that has tables embeds its own
//! (`sqlx::migrate!`) and passes them to `Db::open`.
//!
//! Invariants: one text for both engines; what an engine does alone is written here and nowhere else. A state that is
//! kept as text (an enum of a row) is written `snake_case` in SQL and REST and by GraphQL's own custom (`SNAKE_CASE`).
//!
//! Portable SQL: time is BIGINT microseconds, money BIGINT at scale 8, ids TEXT, sums `cast(sum(x) as bigint)`; no
//! arrays, no auto-increment, no text or number functions that only one engine has.

mod checkpoint;
mod column;
mod db;
mod home;
mod insert;
mod page;
mod query;
#[cfg(feature = "testing")]
pub mod testing;

pub use checkpoint::{checkpoint, checkpoint_of, claim};
pub use column::{
    Amount, CommandId, ContractId, Currency, CustomerId, EventId, Id, JobId, KeyId, LeaseId, MemberId, Month, NodeId,
    OrderId, PoolId, PriceBookId, ProductId, Resource, StatementId, TenantId, Time, Zone,
};
pub use db::{Db, Engine, Tx};
pub use home::Home;
pub use insert::Cell;
pub use page::{Keyset, PAGE_DEFAULT, PAGE_MAX, Page, Slice};
pub use query::{Bind, Query, Row};

/// Why the store could not serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused or is out of reach.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error(transparent)]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// Not an address of a database. The address itself is not shown, since it may hold a password.
    #[error("not a database: {0}; write `sqlite:PATH` or `postgres://USER@HOST/NAME`")]
    BadUrl(&'static str),
    /// A page was asked for after something that is not a cursor of this list.
    #[error("`{0}` is not a cursor of this list; send `next_cursor` of the page before as it is, or none")]
    BadCursor(String),
    /// A page of no rows or of too many was asked for.
    #[error("a page has 1 to {PAGE_MAX} items; {0} were asked for")]
    BadLimit(u32),
    /// An event was applied that this projection already has.
    #[error("projection `{0}` is already at this position or past it")]
    AlreadyApplied(&'static str),
}

/// Of SQLite: busy, locked, an input or output error, and a full disk.
const SQLITE_MAY_PASS: &[u32] = &[5, 6, 10, 13];
/// Of PostgreSQL, the classes of: connections, rolled back for another's sake, short of resources, an operator's doing.
const POSTGRES_MAY_PASS: &[&str] = &["08", "40", "53", "57"];

impl Error {
    /// Whether it is the database's state and not what was asked of it: the same may succeed later.
    pub fn may_pass(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        let away = matches!(
            error,
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed
        );
        let code = error.as_database_error().and_then(|error| error.code());
        away || code.is_some_and(|code| match code.parse::<u32>() {
            // An extended code has the code itself in its last byte; those of PostgreSQL have five places.
            Ok(number) if code.len() < 5 => SQLITE_MAY_PASS.contains(&(number & 0xff)),
            Ok(_) | Err(_) => POSTGRES_MAY_PASS.iter().any(|class| code.starts_with(class)),
        })
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
