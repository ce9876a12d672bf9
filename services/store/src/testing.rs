//! Databases for tests: SQLite files in a folder that is deleted with its `Scratch`.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use crate::Db;
use sqlx::migrate::Migrator;
use tempfile::TempDir;

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

/// An empty database with these migrations, and the folder to keep while it is used.
pub async fn sqlite(migrations: &'static Migrator) -> (Db, Scratch) {
    let scratch = Scratch::new();
    let db = Db::open_relaxed(&scratch.url("test"), migrations).await.unwrap();
    (db, scratch)
}
