//! SQLite and PostgreSQL behind one portable SQL text.
//!
//! Owns: the pool (`Db`), transactions (`Tx`), statements (`Query`), many rows at once (`Cell`), pages, checkpoints, and
//! the column types that let one struct be the SQL row, the GraphQL object and the REST schema. Does not own: any table,
//! nor any migration; each crate that has tables embeds its own (`sqlx::migrate!`) and passes them to `Db::open`.
//!
//! Invariants: one text for both engines; what an engine does alone is written here and nowhere else. A state that is
//! kept as text (an enum of a row) is written `snake_case` in SQL and REST and by GraphQL's own custom (`SNAKE_CASE`).
//!
//! Portable SQL: time is BIGINT microseconds, money BIGINT at scale 8, ids TEXT, sums `cast(sum(x) as bigint)`; no
//! arrays, no auto-increment, no text or number functions that only one engine has.

mod checkpoint;
mod column;
mod db;
mod insert;
mod page;
mod query;
#[cfg(feature = "testing")]
pub mod testing;

pub use checkpoint::{checkpoint, checkpoint_of};
pub use column::{
    Amount, CommandId, ContractId, Currency, CustomerId, EventId, Id, JobId, KeyId, LeaseId, MemberId, Month, NodeId,
    OrderId, PoolId, PriceBookId, ProductId, Resource, StatementId, TenantId, Time, Zone,
};
pub use db::{Db, Engine, Tx};
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

pub type Result<T, E = Error> = std::result::Result<T, E>;
