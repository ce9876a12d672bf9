//! Read models: each file is one subject, the fold that fills its tables, and the questions that they answer.
//!
//! Owns: the read tables. Does not own: reading the log and deciding when to apply (`services/control`).
//! Invariants: events are applied in order, each with the checkpoint in the same transaction; nothing but a fold writes
//! a read table; every table can be dropped and made again from the log, equal row by row.

pub mod api_keys;
pub mod charges;
mod digest;
pub mod jobs;
pub mod leases;
pub mod members;
pub mod meters;
pub mod nodes;
pub mod orders;
pub mod prices;
pub mod quotas;
pub mod statements;
pub mod tenants;
pub mod wallets;

pub use digest::digest;

use domain::Event;
use domain::kernel::Recorded;
use store::{Result, Tx};

/// The schema of the read models.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/read");

macro_rules! projections {
    ($($name:ident: [$($table:literal),+];)+) => {
        /// Every projection by name, with its tables.
        pub const ALL: &[(&str, &[&str])] = &[$((stringify!($name), &[$($table),+]),)+];

        /// Applies one event to the projection of this name.
        pub async fn apply(name: &str, tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
            match name {
                $(stringify!($name) => $name::apply(tx, stored, event).await,)+
                _ => Ok(()),
            }
        }
    };
}

projections! {
    api_keys: ["api_keys"];
    charges: ["charges"];
    jobs: ["jobs"];
    leases: ["leases"];
    members: ["members"];
    meters: ["meters"];
    nodes: ["nodes", "pools"];
    orders: ["orders"];
    prices: ["products", "prices", "price_books"];
    quotas: ["quotas", "quota_holds"];
    statements: ["statements", "statement_lines"];
    tenants: ["tenants"];
    wallets: ["wallets", "wallet_holds"];
}
