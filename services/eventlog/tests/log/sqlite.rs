//! What the SQL log promises beyond one process's life, on SQLite: several writers, restarts, a database that refuses.

use crate::kit::append;
use eventlog::{Log, LogError, MIGRATIONS, SqlLog, Subscription};
use futures::future::join_all;
use std::{sync::Arc, time::Duration};
use store::{Db, testing::Scratch};

const PATIENCE: Duration = Duration::from_secs(60);
const PRODUCERS: i64 = 32;
const APPENDS: i64 = 10;

async fn produce(log: &Log, writer: usize, producer: i64) {
    for expected in 0..APPENDS {
        log.append(append(&format!("{writer}-{producer}"), expected, &["x"])).await.unwrap();
    }
}

/// Two writers on their own connections, as two processes would be; each producer owns a stream; a reader follows each.
#[tokio::test(flavor = "multi_thread")]
async fn readers_miss_nothing_beside_two_writers() {
    let scratch = Scratch::new();
    let mut logs: Vec<Log> = vec![];
    for _ in 0..2 {
        logs.push(Arc::new(SqlLog::open(&scratch.url("log")).await.unwrap()));
    }
    let total = 2 * PRODUCERS * APPENDS;
    let follow = |log: &Log| {
        let mut subscription = Subscription::after(Arc::clone(log), 0);
        tokio::spawn(async move {
            let mut seen = vec![];
            while seen.last() != Some(&total) {
                seen.extend(subscription.next().await.unwrap().iter().map(|event| event.position));
            }
            seen
        })
    };
    let readers: Vec<_> = logs.iter().map(follow).collect();
    let producers = logs.iter().enumerate().flat_map(|(writer, log)| (0..PRODUCERS).map(move |n| (log, writer, n)));
    join_all(producers.map(|(log, writer, n)| produce(log, writer, n))).await;
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.unwrap().unwrap();
        assert!(seen.into_iter().eq(1..=total), "every position once, in order, without a hole");
    }
}

#[tokio::test]
async fn a_log_goes_on_after_a_restart() {
    let scratch = Scratch::new();
    let first = append("a", 0, &["1", "2"]);
    let db = Db::open(&scratch.url("log"), &MIGRATIONS).await.unwrap();
    let log = SqlLog::start(db.clone()).await.unwrap();
    let log: Log = Arc::new(log);
    let done = log.append(first.clone()).await.unwrap();
    drop(log);
    db.close().await;

    let log: Log = Arc::new(SqlLog::open(&scratch.url("log")).await.unwrap());
    assert_eq!(*log.head().borrow(), 2);
    let again = log.append(first).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.recorded, done.recorded);
    let next = log.append(append("a", 2, &["3"])).await.unwrap();
    assert_eq!((next.position, next.revision), (3, 2));
}

#[tokio::test]
async fn what_the_database_refuses_does_not_fail_its_group() {
    let scratch = Scratch::new();
    let db = Db::open(&scratch.url("log"), &MIGRATIONS).await.unwrap();
    let trigger = "create trigger poison before insert on events when new.kind = 'test.poison'
        begin select raise(abort, 'poison'); end";
    db.sql(trigger).run().await.unwrap();
    let log: Log = Arc::new(SqlLog::start(db).await.unwrap());
    let appends = (0..30).map(|n| {
        let mut append = append(&format!("s{n}"), 0, &["1"]);
        if n % 10 == 3 {
            append.events[0].kind = "test.poison".into();
        }
        append
    });
    let replies = join_all(appends.map(|append| log.append(append))).await;
    for (n, reply) in replies.iter().enumerate() {
        match reply {
            Err(LogError::Unreachable(why)) => assert!(n % 10 == 3 && why.contains("poison"), "{n}: {why}"),
            reply => assert!(n % 10 != 3 && reply.is_ok(), "{n}: {reply:?}"),
        }
    }
    let positions: Vec<_> = log.read_all(0, 100).await.unwrap().iter().map(|event| event.position).collect();
    assert_eq!(positions, (1..=27).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stored_event_that_makes_no_sense_is_told_from_an_outage() {
    let scratch = Scratch::new();
    let db = Db::open(&scratch.url("log"), &MIGRATIONS).await.unwrap();
    let log: Log = Arc::new(SqlLog::start(db.clone()).await.unwrap());
    log.append(append("a", 0, &["1"])).await.unwrap();
    db.sql("update events set tenant = 'nobody'").run().await.unwrap();
    assert!(matches!(log.read_all(0, 1).await, Err(LogError::Unreadable(why)) if why.contains("nobody")));
    db.close().await;
    assert!(matches!(log.read_all(0, 1).await, Err(LogError::Unreachable(_))));
    assert!(matches!(log.append(append("b", 0, &["1"])).await, Err(LogError::Unreachable(_))));
}
