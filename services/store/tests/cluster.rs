//! A test's PostgreSQL is its own, and ends with it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use sqlx::{Connection, PgConnection};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use store::testing::{Cluster, Durability, postgres_url};

/// Tells a process of this test that it is the one to be killed.
const VICTIM: &str = "KASHI_TEST_VICTIM";
const PATIENCE: Duration = Duration::from_secs(20);

async fn setting(url: &str, name: &str) -> String {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar("select current_setting($1)").bind(name).fetch_one(&mut connection).await.unwrap()
}

/// Waits until a path is gone.
async fn gone(path: &Path) {
    let watch = async {
        let mut often = tokio::time::interval(Duration::from_millis(5));
        while path.exists() {
            often.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, watch).await.unwrap_or_else(|_| panic!("{} is still there", path.display()));
}

#[tokio::test]
async fn each_database_is_empty_and_sorts_by_code_point() {
    let (one, two) = (postgres_url().await, postgres_url().await);
    assert_ne!(one, two);
    let mut connection = PgConnection::connect(&one).await.unwrap();
    sqlx::query("create table mine (a text)").execute(&mut connection).await.unwrap();
    let mut connection = PgConnection::connect(&two).await.unwrap();
    let tables = "select count(*) from information_schema.tables where table_schema = 'public'";
    assert_eq!(sqlx::query_scalar::<_, i64>(tables).fetch_one(&mut connection).await.unwrap(), 0);
    let sorted = "select string_agg(a, '' order by a) from (values ('b'), ('a'), ('B'), ('_')) as letters (a)";
    assert_eq!(sqlx::query_scalar::<_, String>(sorted).fetch_one(&mut connection).await.unwrap(), "B_ab");
}

#[tokio::test]
async fn only_a_durable_cluster_waits_for_the_disk() {
    let durable = Cluster::start(Durability::Durable);
    let url = durable.database().await;
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(setting(&url, name).await, "on", "{name}");
    }
    assert_eq!(setting(&postgres_url().await, "fsync").await, "off");
    let folder = durable.folder().to_owned();
    drop(durable);
    assert!(!folder.exists());
}

/// Runs itself once more, with a cluster, and kills that process so that none of its code runs any more.
#[tokio::test]
async fn a_cluster_ends_when_its_process_is_killed() {
    if std::env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start(Durability::Fast);
        eprintln!("\n{}", cluster.folder().display());
        return std::future::pending().await;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_cluster_ends_when_its_process_is_killed", "--nocapture"])
        .env(VICTIM, "")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(victim.stderr.take().unwrap()).lines().map(Result::unwrap);
    let folder = said.find(|line| Path::new(line).is_dir()).unwrap();
    let folder = Path::new(&folder);
    let server = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let server = Path::new("/proc").join(server.lines().next().unwrap());
    assert!(server.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    gone(&server).await;
    gone(folder).await;
}
