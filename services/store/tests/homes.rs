//! Where databases are, and putting one in another's place, on both engines.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use sqlx::migrate::Migrator;
use store::testing::{self, Scratch};
use store::{Db, Error, Home, checkpoint, checkpoint_of, claim};

static MIGRATIONS: Migrator = sqlx::migrate!("tests/migrations");

/// A home of each engine, and the folder to keep.
async fn homes() -> ([Home; 2], Scratch) {
    let scratch = Scratch::new();
    ([Home::folder(scratch.path()), Home::postgres(&testing::postgres_url().await).unwrap()], scratch)
}

async fn open(home: &Home, name: &str) -> Db {
    Db::open_relaxed(&home.url(name), &MIGRATIONS).await.unwrap()
}

async fn add(db: &Db, owner: &str) {
    db.sql("insert into owners (id) values ($1)").bind(owner.to_owned()).run().await.unwrap();
}

async fn owners(db: &Db) -> Vec<String> {
    let rows: Vec<(String,)> = db.sql("select id from owners order by id").all().await.unwrap();
    rows.into_iter().map(|(id,)| id).collect()
}

#[tokio::test]
async fn each_name_is_a_database_of_its_own() {
    let (homes, _scratch) = homes().await;
    for home in homes {
        let (read, log) = (open(&home, "read").await, open(&home, "log").await);
        add(&read, "a").await;
        add(&log, "b").await;
        assert_eq!((owners(&read).await, owners(&log).await), (vec!["a".into()], vec!["b".into()]));
        read.close().await;
        assert_eq!(owners(&open(&home, "read").await).await, ["a"], "it is there again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_may_open_a_new_database_at_once() {
    let home = Home::postgres(&testing::postgres_url().await).unwrap();
    let opened = futures::future::join_all((0..4).map(|_| open(&home, "read"))).await;
    add(&opened[0], "a").await;
    assert_eq!(owners(&opened[3]).await, ["a"]);
}

#[tokio::test]
async fn what_is_used_is_not_dropped() {
    let (homes, _scratch) = homes().await;
    for home in homes {
        assert!(home.remove("read_2").await.unwrap(), "there is none");
        let db = open(&home, "read_2").await;
        add(&db, "a").await;
        if home.engine() == store::Engine::Postgres {
            assert!(!home.remove("read_2").await.unwrap());
            assert_eq!(owners(&db).await, ["a"]);
        }
        db.close().await;
        assert!(home.remove("read_2").await.unwrap());
        assert_eq!(owners(&open(&home, "read_2").await).await, [""; 0]);
    }
}

#[tokio::test]
async fn clones_follow_to_another_database() {
    let (homes, _scratch) = homes().await;
    for home in homes {
        let (read, next) = (open(&home, "read").await, open(&home, "read_2").await);
        let clone = read.clone();
        add(&read, "old").await;
        add(&next, "new").await;
        let mut begun = clone.begin().await.unwrap();
        let left = read.switch(&next);
        assert_eq!((owners(&read).await, owners(&clone).await), (vec!["new".into()], vec!["new".into()]));
        assert_eq!(owners(&left).await, ["old"]);
        begun.sql("insert into owners (id) values ('begun')").run().await.unwrap();
        begun.commit().await.unwrap();
        assert_eq!(owners(&left).await, ["begun", "old"], "it ended where it began");
        left.close().await;
        assert_eq!(owners(&clone).await, ["new"]);
    }
}

#[tokio::test]
async fn tables_are_copied_while_they_are_written() {
    let (homes, _scratch) = homes().await;
    for home in homes {
        let (read, next) = (open(&home, "read").await, open(&home, "read_2").await);
        add(&read, "a").await;
        let mut tx = read.begin().await.unwrap();
        checkpoint(&mut tx, "owners", 7).await.unwrap();
        tx.commit().await.unwrap();
        // Not committed yet, and in nobody's way.
        let mut writing = read.begin().await.unwrap();
        writing.sql("insert into owners (id) values ('b')").run().await.unwrap();
        home.copy("read", &next, &["owners", "checkpoints"]).await.unwrap();
        writing.commit().await.unwrap();
        assert_eq!((owners(&read).await.len(), owners(&next).await), (2, vec!["a".into()]));
        assert_eq!(checkpoint_of(&next, "owners").await.unwrap(), 7);
        assert!(home.copy("read", &next, &["owners"]).await.is_err(), "the row is there already");
        assert_eq!(owners(&next).await, ["a"]);
        add(&next, "c").await;
    }
}

#[tokio::test]
async fn a_claimed_checkpoint_is_where_it_was_left() {
    let (homes, _scratch) = homes().await;
    for home in homes {
        let db = open(&home, "read").await;
        for expected in [0, 5, 5] {
            let mut tx = db.begin().await.unwrap();
            assert_eq!(claim(&mut tx, "owners").await.unwrap(), expected);
            if expected == 0 {
                checkpoint(&mut tx, "owners", 5).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        claim(&mut tx, "owners").await.unwrap();
        assert!(matches!(checkpoint(&mut tx, "owners", 5).await, Err(Error::AlreadyApplied("owners"))));
    }
}

#[test]
fn an_address_is_checked_and_never_shown() {
    let secret = "postgres://kashi:hunter2@localhost/kashi";
    let home = Home::postgres(secret).unwrap();
    assert!(!format!("{home:?}").contains("hunter2"));
    assert_eq!(home.url("log"), format!("{secret}?options[search_path]=log"));
    let with = Home::postgres(&format!("{secret}?sslmode=require")).unwrap();
    assert_eq!(with.url("read_2"), format!("{secret}?sslmode=require&options[search_path]=read_2"));
    for bad in ["", "hunter2", "sqlite:hunter2", "postgres://kashi:hunter2@localhost:port/kashi", &home.url("log")] {
        let error = Home::postgres(bad).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
