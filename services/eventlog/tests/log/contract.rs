//! What every log promises, tried on each backend.

use crate::kit::{append, each, meta};
use chrono::{TimeDelta, Utc};
use domain::kernel::{Meta, StreamName, TenantId};
use eventlog::{Append, Log, LogError, Subscription, digest, event_id};
use futures::future::join_all;
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

async fn positions(log: &Log) -> Vec<i64> {
    log.read_all(0, 10_000).await.unwrap().iter().map(|event| event.position).collect()
}

#[tokio::test]
async fn an_event_is_read_as_it_was_appended() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let mut asked = append("a", 0, &["1", "卡 \\u0000 \\\" {}"]);
        asked.meta.trace = Some("4bf92f3577b34da6a3ce929d0e0e4736".into());
        asked.meta.causation = Some(event_id(crate::kit::TENANT, asked.meta.command, 9));
        let before = Utc::now() - TimeDelta::microseconds(1);
        let done = log.append(asked.clone()).await.unwrap();
        assert_eq!((done.first_position, done.position, done.revision, done.replayed), (1, 2, 1, false));
        let read = log.read_all(0, 10).await.unwrap();
        assert_eq!(read, done.recorded);
        assert_eq!(read, log.read_stream(&asked.stream, 0, 10).await.unwrap());
        for (index, (event, new)) in read.iter().zip(&asked.events).enumerate() {
            assert_eq!(event.event, event_id(crate::kit::TENANT, asked.meta.command, index));
            assert_eq!((&event.stream, &event.meta), (&asked.stream, &asked.meta));
            assert_eq!((&event.kind, event.schema, &event.payload), (&new.kind, new.schema, &new.payload));
            assert_eq!((event.revision, event.position), (index as i64, index as i64 + 1));
            assert!(before <= event.recorded_at && event.recorded_at <= Utc::now());
            assert_eq!(event.recorded_at.timestamp_subsec_nanos() % 1000, 0, "whole microseconds");
        }
    }
}

#[tokio::test]
async fn a_command_is_done_once() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let first = append("a", 0, &["1", "2"]);
        let done = log.append(first.clone()).await.unwrap();
        assert_eq!(log.append(append("a", 2, &["3"])).await.unwrap().position, 3);
        let again = log.append(first.clone()).await.unwrap();
        assert!(again.replayed);
        assert_eq!(again.recorded, done.recorded);
        assert_eq!((again.first_position, again.position, again.revision), (1, 2, 1));

        let mut decided_anew = append("a", 3, &["4"]);
        decided_anew.meta = first.meta.clone();
        assert_eq!(log.append(decided_anew).await.unwrap().recorded, done.recorded);
        let mut elsewhere = append("b", 0, &["1", "2"]);
        elsewhere.meta = first.meta.clone();
        assert_eq!(log.append(elsewhere).await, Err(LogError::CommandReused));
        let mut other = first.clone();
        other.meta.digest = digest(&["something else"]);
        assert_eq!(log.append(other).await, Err(LogError::CommandReused));
        let mut of_another = append("b", 0, &["1"]);
        of_another.meta = first.meta;
        of_another.meta.tenant = TenantId::PLATFORM;
        assert!(!log.append(of_another).await.unwrap().replayed);
        assert_eq!(positions(&log).await, [1, 2, 3, 4]);
    }
}

/// As a client does that was cut off and sends all again.
#[tokio::test]
async fn many_commands_that_come_again_get_their_first_answers() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let asked: Vec<_> = (0..90)
            .map(|n| append(&format!("s{}", n % 60), n / 60 * (1 + n % 2), &["1", "2"][..1 + n as usize % 2]))
            .collect();
        let answers = |replayed: bool| {
            let log = &log;
            let asked = &asked;
            async move {
                let mut answers = vec![];
                for append in asked.chunks(60) {
                    answers.extend(join_all(append.iter().map(|append| log.append(append.clone()))).await);
                }
                assert!(answers.iter().all(|answer| answer.as_ref().unwrap().replayed == replayed));
                answers.into_iter().map(|answer| answer.unwrap().recorded).collect::<Vec<_>>()
            }
        };
        let first = answers(false).await;
        assert_eq!(answers(true).await, first);
    }
}

#[tokio::test]
async fn the_same_command_at_the_same_time_is_done_once() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let asked = append("a", 0, &["1", "2"]);
        let replies = join_all((0..8).map(|_| log.append(asked.clone()))).await;
        let done: Vec<_> = replies.into_iter().map(Result::unwrap).collect();
        assert_eq!(done.iter().filter(|done| !done.replayed).count(), 1);
        assert!(done.iter().all(|one| one.recorded == done[0].recorded));
        assert_eq!(positions(&log).await, [1, 2]);
    }
}

#[tokio::test]
async fn a_stream_that_moved_on_is_refused() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let rivals = join_all((0..8).map(|_| log.append(append("a", 0, &["1"])))).await;
        assert_eq!(rivals.iter().filter(|reply| reply.is_ok()).count(), 1);
        assert_eq!(rivals.iter().filter(|reply| **reply == Err(LogError::Moved { actual: 1 })).count(), 7);
        assert_eq!(log.append(append("a", 5, &["1"])).await, Err(LogError::Moved { actual: 1 }));
        assert_eq!(positions(&log).await, [1]);
    }
}

#[tokio::test]
async fn a_bad_append_does_not_fail_the_others() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let appends = (0..60).map(|n| match n % 3 {
            0 => append(&format!("s{n}"), 0, &["1"]),
            1 => append(&format!("s{n}"), 9, &["1"]),
            _ => Append { events: vec![], ..append(&format!("s{n}"), 0, &[]) },
        });
        let replies = join_all(appends.map(|append| log.append(append))).await;
        for (n, reply) in replies.iter().enumerate() {
            match n % 3 {
                0 => assert!(reply.is_ok(), "{reply:?}"),
                1 => assert_eq!(*reply, Err(LogError::Moved { actual: 0 })),
                _ => assert!(matches!(reply, Err(LogError::Malformed(_)))),
            }
        }
        assert_eq!(positions(&log).await, (1..=20).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_is_not_well_formed_is_refused_with_a_reason() {
    let (logs, _scratch) = each().await;
    for log in logs {
        type Change = fn(&mut Append);
        let changes: [(&str, Change); 8] = [
            ("not a stream name", |append| append.stream = StreamName::stored("test".into())),
            ("not a stream name", |append| append.stream = StreamName::new("", "a")),
            ("0 or more", |append| append.expected = -1),
            ("no events", |append| append.events.clear()),
            ("no kind", |append| append.events[0].kind.clear()),
            ("control character", |append| append.meta.actor = "a\0b".into()),
            ("not a JSON object", |append| append.events[0].payload = "{".into()),
            ("not a JSON object", |append| append.events[0].payload = "[1]".into()),
        ];
        for (reason, change) in changes {
            let mut bad = append("a", 0, &["1"]);
            change(&mut bad);
            let refused = log.append(bad).await.unwrap_err();
            assert!(matches!(&refused, LogError::Malformed(why) if why.contains(reason)), "{refused}");
        }
        assert!(positions(&log).await.is_empty());
    }
}

#[tokio::test]
async fn occurred_at_does_not_go_back_within_a_stream() {
    let (logs, _scratch) = each().await;
    for log in logs {
        let start = crate::kit::meta().occurred_at;
        let mut happened = vec![];
        for (expected, (key, seconds)) in [("a", 10), ("a", 5), ("a", 20), ("b", 1)].into_iter().enumerate() {
            let mut append = append(key, if key == "a" { expected as i64 } else { 0 }, &["1"]);
            append.meta.occurred_at = start + TimeDelta::seconds(seconds) + TimeDelta::nanoseconds(7);
            happened.push((log.append(append).await.unwrap().recorded[0].meta.occurred_at - start).num_microseconds());
        }
        assert_eq!(happened, [10, 10, 20, 1].map(|seconds| Some(seconds * 1_000_000)));
    }
}

#[tokio::test]
async fn pages_start_and_end_where_they_are_asked_to() {
    let (logs, _scratch) = each().await;
    for log in logs {
        log.append(append("a", 0, &["1", "2", "3"])).await.unwrap();
        log.append(append("b", 0, &["4"])).await.unwrap();
        let a = StreamName::new("test", "a");
        let of = async |from, limit| -> Vec<i64> {
            log.read_stream(&a, from, limit).await.unwrap().iter().map(|event| event.revision).collect()
        };
        assert_eq!(of(1, 1).await, [1]);
        assert_eq!(of(1, 9).await, [1, 2]);
        assert_eq!(of(3, 9).await, [0; 0]);
        assert!(log.read_stream(&StreamName::new("test", "none"), 0, 9).await.unwrap().is_empty());
        assert_eq!(log.read_all(2, 1).await.unwrap()[0].position, 3);
        assert!(log.read_all(4, 9).await.unwrap().is_empty());
        assert_eq!(*log.head().borrow(), 4);
        let other = Append { stream: StreamName::new("tests", "a"), ..append("a", 0, &["5"]) };
        log.append(other).await.unwrap();
        log.append(append("a", 3, &["6"])).await.unwrap();
        let of = async |after, limit| -> Vec<i64> {
            log.read_category("test", after, limit).await.unwrap().iter().map(|event| event.position).collect()
        };
        assert_eq!(of(2, 9).await, [3, 4, 6]);
        assert_eq!(of(3, 1).await, [4]);
        assert_eq!(of(6, 9).await, [0; 0]);
        let correlation = log.read_all(5, 1).await.unwrap()[0].meta.correlation;
        assert_eq!(log.last_of(correlation).await, Ok(6));
        let follows = Append { meta: Meta { correlation, ..meta() }, ..append("b", 1, &["7"]) };
        let position = log.append(follows).await.unwrap().position;
        assert_eq!(log.last_of(correlation).await, Ok(position));
        assert_eq!(log.last_of(meta().correlation).await, Ok(0));
    }
}

#[tokio::test]
async fn a_subscription_wakes_at_a_commit_and_misses_none() {
    let (logs, _scratch) = each().await;
    for log in logs {
        log.append(append("a", 0, &["0"])).await.unwrap();
        let mut subscription = Subscription::after(Arc::clone(&log), 0);
        let follower = tokio::spawn(async move {
            let mut seen = vec![];
            while seen.len() < 1201 {
                let page = subscription.next().await.unwrap();
                assert!((1..=500).contains(&page.len()));
                seen.extend(page.iter().map(|event| event.position));
                assert_eq!(Some(&subscription.position()), seen.last());
            }
            seen
        });
        join_all((0..600).map(|n| log.append(append(&format!("s{n}"), 0, &["1", "2"])))).await;
        let seen = tokio::time::timeout(PATIENCE, follower).await.unwrap().unwrap();
        assert!(seen.into_iter().eq(1..=1201));
        let mut later = Subscription::after(log, 1200);
        assert_eq!(later.next().await.unwrap()[0].position, 1201);
    }
}

#[test]
fn digests_and_event_ids_tell_what_they_are_of() {
    assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    assert_ne!(digest(&["a"]), digest(&["a", ""]));
    assert_eq!(digest(&["a"]).len(), 64);
    let command = crate::kit::meta().command;
    let id = |tenant: u128, index| event_id(TenantId(Uuid::from_u128(tenant)), command, index);
    assert_eq!(id(1, 0), id(1, 0));
    assert!(id(1, 0) != id(1, 1) && id(1, 0) != id(2, 0));
}
