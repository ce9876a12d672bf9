//! A SQLite disk that is full for a while: what did not fit was never there, and what comes after it is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use sqlx::migrate::Migrator;
use store::testing::sqlite;
use store::{Db, Result};

static MIGRATIONS: Migrator = sqlx::migrate!("tests/migrations");

/// Adds owners with names of 4,000 letters, as if the disk had so many pages.
async fn add(db: &Db, from: u32, owners: u32, pages_max: u32) -> Result<()> {
    let mut tx = db.begin().await?;
    let limit = sqlx::AssertSqlSafe(format!("pragma max_page_count = {pages_max}"));
    // It says which limit there is now.
    tx.sql(limit).all::<(i64,)>().await?;
    for owner in from..from + owners {
        tx.sql("insert into owners (id) values ($1)").bind(format!("{owner}{:0>4000}", "")).run().await?;
    }
    tx.commit().await
}

async fn owners(db: &Db) -> i64 {
    db.sql("select count(*) from owners").all::<(i64,)>().await.unwrap()[0].0
}

#[tokio::test]
async fn a_full_disk_refuses_and_is_forgotten_when_there_is_room() {
    let (db, _scratch) = sqlite(&MIGRATIONS).await;
    for round in 0..3 {
        let refused = add(&db, 1000, 1000, 64).await.unwrap_err();
        assert!(refused.may_pass(), "{refused}");
        assert_eq!(owners(&db).await, round);
        add(&db, u32::try_from(round).unwrap(), 1, 1_000_000).await.unwrap();
        assert_eq!(owners(&db).await, round + 1);
    }
}
