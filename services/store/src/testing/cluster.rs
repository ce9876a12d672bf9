//! A private PostgreSQL server for tests and measurements.
//!
//! Owns: starting and ending it (the script beside this file does both), its databases. Invariants: it listens on a unix
//! socket in a folder of its own, so that nothing is shared and no port is taken; it ends when this process does, since
//! the script then reads the end of its standard input; the script is in a process group of its own, so that what kills
//! the test's group does not keep it from tidying up.

use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

const SCRIPT: &str = include_str!("postgres.sh");

/// A private PostgreSQL server.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    script: Child,
    databases: AtomicU32,
}

/// What a server does at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It does not wait for the disk: a power cut would lose the database, and tests are quick.
    Fast,
    /// As in production: a commit is on the disk when it answers, if the connection wants that.
    Durable,
}

impl Cluster {
    /// Starts a server, in some 150 ms; longer if this user has started none of this version before. Installs
    /// PostgreSQL where it is missing and this is root; else stops the test with what to do.
    pub fn start(durability: Durability) -> Self {
        // The script deletes it: it lives longer than this process may.
        let folder = TempDir::with_prefix("pg").unwrap().keep();
        let mut log = tempfile::tempfile().unwrap();
        let mut script = Command::new("sh")
            .args(["-c", SCRIPT, SCRIPT])
            .arg(&folder)
            .arg(if durability == Durability::Fast { "fast" } else { "durable" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone().unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said != "ready\n" {
            let _ = (script.wait(), std::fs::remove_dir_all(&folder));
            log.rewind().unwrap();
            log.read_to_string(&mut said).unwrap();
            panic!("no PostgreSQL for the test: {said}");
        }
        Self { folder, script, databases: AtomicU32::new(0) }
    }

    /// Where its socket is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The URL of a new, empty database.
    pub async fn database(&self) -> String {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let admin = sqlx::PgPool::connect(&self.url("postgres")).await.unwrap();
        // Copying the template's files is quicker than writing them to the log of changes.
        let create = format!("create database {name} strategy file_copy");
        sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(&admin).await.unwrap();
        admin.close().await;
        self.url(&name)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user=postgres", self.folder.display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
