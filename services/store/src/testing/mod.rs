//! Databases for tests: an empty one of either engine for each test, none shared, all gone afterwards.
//!
//! Owns: folders of SQLite files (`Scratch`), private PostgreSQL clusters (`Cluster`). Invariants: nothing is skipped
//! where PostgreSQL is missing, the test fails and says what to do; what a test leaves ends with its process, also when
//! that is killed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod cluster;

use crate::Db;
pub use cluster::{Cluster, Durability};
use sqlx::migrate::Migrator;
use std::sync::LazyLock;
use tempfile::TempDir;

/// The cluster of this process's tests. It is not durable: a test that ends the server needs one of its own.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(Durability::Fast));

/// A folder for the files of one test, deleted when this is dropped: keep it as long as its databases.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// An empty folder.
    #[expect(clippy::new_without_default, reason = "it makes a folder on the disk")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The folder.
    pub fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// The URL of the SQLite database of this name, for tests that open one twice.
    pub fn url(&self, name: &str) -> String {
        format!("sqlite:{}/{name}.db", self.0.path().display())
    }
}

/// An empty SQLite database with these migrations, and the folder to keep while it is used.
pub async fn sqlite(migrations: &'static Migrator) -> (Db, Scratch) {
    let scratch = Scratch::new();
    let db = Db::open_relaxed(&scratch.url("test"), migrations).await.unwrap();
    (db, scratch)
}

/// An empty PostgreSQL database with these migrations.
pub async fn postgres(migrations: &'static Migrator) -> Db {
    Db::open_relaxed(&postgres_url().await, migrations).await.unwrap()
}

/// The URL of an empty PostgreSQL database, for tests that open one twice.
pub async fn postgres_url() -> String {
    CLUSTER.database().await
}

/// An empty database of each engine with these migrations, and the folder to keep while they are used.
pub async fn both(migrations: &'static Migrator) -> ([Db; 2], Scratch) {
    let (sqlite, scratch) = sqlite(migrations).await;
    ([sqlite, postgres(migrations).await], scratch)
}

/// The URL of an empty database of each engine, for tests that open one twice, and the folder to keep.
pub async fn urls() -> ([String; 2], Scratch) {
    let scratch = Scratch::new();
    ([scratch.url("test"), postgres_url().await], scratch)
}
