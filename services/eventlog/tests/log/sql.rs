//! What the SQL log promises beyond one process's life, on both engines: several writers, restarts, a database that
//! refuses or drops its connections.

use crate::kit::{append, open};
use eventlog::{Log, LogError, MIGRATIONS, SqlLog, Subscription};
use futures::future::join_all;
use std::{sync::Arc, time::Duration};
use store::{Db, Engine, testing};

const PATIENCE: Duration = Duration::from_secs(60);
const PRODUCERS: i64 = 32;
const APPENDS: i64 = 10;

async fn produce(log: &Log, writer: usize, producer: i64) {
    for expected in 0..APPENDS {
        log.append(append(&format!("{writer}-{producer}"), expected, &["x"])).await.unwrap();
    }
}

async fn positions(log: &Log) -> Vec<i64> {
    log.read_all(0, 10_000).await.unwrap().iter().map(|event| event.position).collect()
}

/// Two writers on their own connections; each producer owns a stream; a reader follows each.
#[tokio::test(flavor = "multi_thread")]
async fn readers_miss_nothing_beside_two_writers() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let logs = [open(&url).await, open(&url).await];
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
            assert!(seen.into_iter().eq(1..=total), "{url}: every position once, in order, without a hole");
        }
    }
}

/// What a writer remembers of a stream is not what another has made of it meanwhile.
#[tokio::test]
async fn a_writer_sees_what_another_has_appended() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let [one, two] = [open(&url).await, open(&url).await];
        assert_eq!(one.append(append("a", 0, &["1"])).await.unwrap().position, 1);
        let mut late = append("a", 1, &["2"]);
        late.meta.occurred_at += Duration::from_secs(9);
        let happened = two.append(late.clone()).await.unwrap().recorded[0].meta.occurred_at;
        assert_eq!(one.append(append("a", 1, &["3"])).await, Err(LogError::Moved { actual: 2 }), "{url}");
        assert!(one.append(late).await.unwrap().replayed, "{url}");
        let next = one.append(append("a", 2, &["3"])).await.unwrap();
        assert_eq!((next.position, next.recorded[0].meta.occurred_at), (3, happened), "{url}");
        assert_eq!(two.append(append("b", 0, &["4"])).await.unwrap().position, 4);
        assert_eq!(one.append(append("b", 1, &["5"])).await.unwrap().position, 5);
    }
}

#[tokio::test]
async fn a_log_goes_on_after_a_restart() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let first = append("a", 0, &["1", "2"]);
        let db = Db::open(&url, &MIGRATIONS).await.unwrap();
        let log: Log = Arc::new(SqlLog::start(db.clone()).await.unwrap());
        let done = log.append(first.clone()).await.unwrap();
        drop(log);
        db.close().await;

        let log = open(&url).await;
        assert_eq!(*log.head().borrow(), 2);
        let again = log.append(first).await.unwrap();
        assert!(again.replayed);
        assert_eq!(again.recorded, done.recorded);
        let next = log.append(append("a", 2, &["3"])).await.unwrap();
        assert_eq!((next.position, next.revision), (3, 2), "{url}");
    }
}

/// Makes the database refuse events of the kind `test.poison`.
async fn poison(db: &Db) {
    let statements: &[&'static str] = match db.engine() {
        Engine::Sqlite => &["create trigger poison before insert on events when new.kind = 'test.poison'
            begin select raise(abort, 'poison'); end"],
        Engine::Postgres => &[
            "create function poison() returns trigger language plpgsql as 'begin raise exception ''poison''; end'",
            "create trigger poison before insert on events for each row when (new.kind = 'test.poison')
                execute function poison()",
        ],
    };
    for statement in statements {
        db.sql(*statement).run().await.unwrap();
    }
}

#[tokio::test]
async fn what_the_database_refuses_does_not_fail_its_group() {
    let (databases, _scratch) = testing::both(&MIGRATIONS).await;
    for db in databases {
        poison(&db).await;
        let engine = db.engine();
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
        assert_eq!(positions(&log).await, (1..=27).collect::<Vec<_>>(), "{engine:?}");
        // Nothing is left of what was refused.
        for n in [3, 13, 23] {
            assert_eq!(log.append(append(&format!("s{n}"), 0, &["1"])).await.unwrap().revision, 0, "{engine:?}");
        }
    }
}

#[tokio::test]
async fn a_stored_event_that_makes_no_sense_is_told_from_an_outage() {
    let (databases, _scratch) = testing::both(&MIGRATIONS).await;
    for db in databases {
        let log: Log = Arc::new(SqlLog::start(db.clone()).await.unwrap());
        log.append(append("a", 0, &["1"])).await.unwrap();
        db.sql("update events set tenant = 'nobody'").run().await.unwrap();
        assert!(matches!(log.read_all(0, 1).await, Err(LogError::Unreadable(why)) if why.contains("nobody")));
        db.close().await;
        assert!(matches!(log.read_all(0, 1).await, Err(LogError::Unreachable(_))));
        assert!(matches!(log.append(append("b", 0, &["1"])).await, Err(LogError::Unreachable(_))));
    }
}

/// A server that restarts, or an operator, ends connections. What is sent again is done once.
#[tokio::test]
async fn a_log_outlives_its_connections() {
    let url = testing::postgres_url().await;
    let (log, other) = (open(&url).await, Db::open(&url, &MIGRATIONS).await.unwrap());
    for n in 0..5 {
        let asked = append("a", n, &["1"]);
        let send = || log.append(asked.clone());
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        let (first, ended) = tokio::join!(send(), other.sql(end).one::<(i64,)>());
        assert!(ended.is_ok());
        assert!(matches!(first, Ok(_) | Err(LogError::Unreachable(_))), "{first:?}");
        let mut answer = send().await;
        if answer.is_err() {
            answer = send().await;
        }
        assert_eq!(answer.unwrap().revision, n);
    }
    assert_eq!(positions(&log).await, [1, 2, 3, 4, 5]);
}

/// A server that stands still in the middle of a transaction has the head's lock; the others get it all the same.
#[tokio::test]
async fn a_writer_that_stands_still_stops_nobody_for_long() {
    let url = testing::postgres_url().await;
    let log = open(&url).await;
    let still = Db::open(&url, &MIGRATIONS).await.unwrap();
    let mut tx = still.begin().await.unwrap();
    tx.sql("update log_head set position = position").run().await.unwrap();
    let appended = tokio::time::timeout(PATIENCE, log.append(append("a", 0, &["1"]))).await.unwrap();
    assert_eq!(appended.unwrap().position, 1);
    assert!(tx.commit().await.is_err(), "it finds out when it goes on");
}

/// Each stream and command is looked up by its key, however many there are and whatever the planner believes of them.
#[tokio::test]
async fn postgres_finds_what_it_looks_up_without_reading_a_table() {
    let url = testing::postgres_url().await;
    let (db, other) = (Db::open(&url, &MIGRATIONS).await.unwrap(), Db::open(&url, &MIGRATIONS).await.unwrap());
    let log: Log = Arc::new(SqlLog::start(db.clone()).await.unwrap());
    for round in 0..8 {
        let asked: Vec<_> = (0..100).map(|n| append(&format!("s{round}-{n}"), 0, &["1"])).collect();
        for replayed in [false, true] {
            let answers = join_all(asked.iter().map(|append| log.append(append.clone()))).await;
            assert!(answers.into_iter().all(|answer| answer.unwrap().replayed == replayed));
        }
    }
    // The server counts what a connection did when it ends.
    db.close().await;
    let counted = async {
        let select = "select cast(sum(n_tup_ins) as bigint), cast(sum(seq_tup_read) as bigint)
            from pg_stat_user_tables where relname = 'events'";
        let mut often = tokio::time::interval(Duration::from_millis(10));
        loop {
            often.tick().await;
            if let (800, read) = other.sql(select).one::<(i64, i64)>().await.unwrap() {
                return read;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, counted).await.unwrap(), 0);
}
