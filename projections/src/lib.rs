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
pub mod profiles;
pub mod quotas;
pub mod statements;
pub mod tenants;
pub mod wallets;
mod whose;

pub use digest::digest;
pub use profiles::Opener;
pub use whose::Whose;

use domain::Event;
use domain::kernel::Recorded;
use store::{Result, Tx};

/// The schema of the read models.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/read");

macro_rules! projections {
    (opening { $($opening:ident: [$($kept:literal),+];)+ } $($name:ident: [$($table:literal),+];)+) => {
        /// Every projection by name, with its tables.
        pub const ALL: &[(&str, &[&str])] = &[
            $((stringify!($opening), &[$($kept),+]),)+
            $((stringify!($name), &[$($table),+]),)+
        ];

        /// Applies one event to the projection of this name. Personal data is opened with `open`.
        pub async fn apply(
            name: &str,
            tx: &mut Tx,
            stored: &Recorded,
            event: &Event,
            open: &Opener,
        ) -> Result<()> {
            match name {
                $(stringify!($opening) => $opening::apply(tx, stored, event, open).await,)+
                $(stringify!($name) => $name::apply(tx, stored, event).await,)+
                _ => Ok(()),
            }
        }
    };
}

projections! {
    opening {
        profiles: ["member_profiles"];
    }
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
    tenants: ["tenants", "tenant_tree"];
    wallets: ["wallets", "wallet_holds"];
}
