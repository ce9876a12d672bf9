//! Writers in processes of their own, as several servers are: this test binary runs itself again as a writer.
//!
//! Invariants tried: what was acknowledged is stored, once; positions have no hole; an append is stored whole or not at
//! all, also when its process is killed.

use crate::kit::{append, open};
use domain::kernel::Recorded;
use eventlog::Subscription;
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::testing;

/// The log that a writer writes to, its name, and how often each of its producers appends.
const ROLE: [&str; 3] = ["KASHI_TEST_LOG", "KASHI_TEST_WRITER", "KASHI_TEST_APPENDS"];
const PRODUCERS: i64 = 64;
const APPENDS: i64 = 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a writer, whose output is a line for each append that was acknowledged, and others.
fn start(url: &str, writer: &str, appends: i64) -> Child {
    let appends = appends.to_string();
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "processes::a_writer_of_the_other_tests", "--nocapture"])
        .envs(ROLE.into_iter().zip([url, writer, &appends]))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The positions in a writer's output.
fn acknowledged(writer: &mut Child) -> impl Iterator<Item = i64> + use<> {
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
}

/// Does nothing unless it is started by one of the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_of_the_other_tests() {
    let [Ok(url), Ok(writer), Ok(appends)] = ROLE.map(env::var) else { return };
    let appends: i64 = appends.parse().unwrap();
    let log = open(&url).await;
    let said = std::io::stdout();
    writeln!(&said).unwrap();
    join_all((0..PRODUCERS).map(async |producer| {
        for n in 0..appends {
            let done = log.append(append(&format!("{writer}-{producer}"), 2 * n, &["1", "2"])).await.unwrap();
            writeln!(&said, "acknowledged {}", done.position).unwrap();
        }
    }))
    .await;
}

/// Every event once, in order, without a hole; and each stream's revisions likewise.
fn assert_whole(events: &[Recorded]) {
    assert!(events.iter().map(|event| event.position).eq(1..=events.len() as i64));
    let mut streams = BTreeMap::<_, Vec<i64>>::new();
    for event in events {
        streams.entry(event.stream.as_str()).or_default().push(event.revision);
    }
    for (stream, revisions) in streams {
        assert!(revisions.len() % 2 == 0, "{stream} has half an append");
        assert!(revisions.iter().copied().eq(0..revisions.len() as i64), "{stream}: {revisions:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_misses_nothing_beside_two_writing_processes() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let mut subscription = Subscription::after(open(&url).await, 0);
        let writers = ["one", "two"].map(|writer| {
            let mut child = start(&url, writer, APPENDS);
            tokio::task::spawn_blocking(move || {
                let acknowledged: Vec<i64> = acknowledged(&mut child).collect();
                assert!(child.wait().unwrap().success());
                acknowledged
            })
        });
        let total = 2 * 2 * PRODUCERS * APPENDS;
        let reader = async {
            let mut seen = vec![];
            while seen.len() < total as usize {
                seen.extend(subscription.next().await.unwrap());
            }
            seen
        };
        let seen = tokio::time::timeout(PATIENCE, reader).await.unwrap();
        assert_eq!(seen.len(), total as usize, "{url}");
        assert_whole(&seen);
        let acknowledged = join_all(writers).await.into_iter().flat_map(Result::unwrap).collect::<BTreeSet<_>>();
        assert!(acknowledged.into_iter().eq((1..=total / 2).map(|n| 2 * n)), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_writer_has_lost_nothing_that_it_acknowledged() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let log = open(&url).await;
        let mut known = vec![];
        for round in 0..3 {
            let mut writer = start(&url, &format!("w{round}"), 100_000);
            let acknowledged = acknowledged(&mut writer);
            let said = tokio::task::spawn_blocking(move || {
                let mut said: Vec<i64> = vec![];
                for position in acknowledged {
                    said.push(position);
                    if said.len() == 300 {
                        writer.kill().unwrap();
                    }
                }
                writer.wait().unwrap();
                said
            });
            known.extend(said.await.unwrap());
        }
        assert!(known.len() >= 900, "{url}");
        // Takes the lock after what the killed ones may have left to the server.
        log.append(append("last", 0, &["1", "2"])).await.unwrap();
        let stored = log.read_all(0, 1_000_000).await.unwrap();
        assert_whole(&stored);
        assert!(known.iter().all(|position| (1..=stored.len() as i64).contains(position)), "{url}");
        let next = log.append(append("more", 0, &["1", "2"])).await.unwrap();
        assert_eq!(next.first_position, stored.len() as i64 + 1, "{url}");
    }
}
