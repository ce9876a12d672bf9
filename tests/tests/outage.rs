//! The server is away, the agent is killed, or both: running work is not touched, and every second of it counts once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use chrono::TimeDelta;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use store::Engine;
use system_tests::faults::audit::{Span, Spans, of_world};
use system_tests::faults::client::{Acks, Ask};
use system_tests::faults::dice::Dice;
use system_tests::faults::node::Node;
use system_tests::faults::real::Platform;
use system_tests::lab::Lab;
use system_tests::processes::{leases, until};
use system_tests::world::{Person, World, first_pool};

system_tests::on_both! {
    a_server_that_was_away_for_hours_hears_of_every_second_once,
}

/// An address where nobody listens.
const NOBODY_THERE: &str = "http://127.0.0.1:1";

async fn a_server_that_was_away_for_hours_hears_of_every_second_once(engine: Engine) {
    let mut world = World::new(engine, "2026-11-10T01:00:00Z").await;
    let mut lab = Lab::found(&world, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let mut node = Node::join(&lab.operator, &world.nobody(), &first_pool().to_string(), "a").await;
    let mut dice = Dice::new(7);
    let away = Person::at(NOBODY_THERE);
    let mut jobs = vec![];
    for _ in 0..3 {
        jobs.push(lab.submit(1).await);
        jobs.push(lab.submit(2).await);
        world.settled().await;
        node.pass(&world.nobody(), world.now(), &mut dice).await;
        world = world.restarted().await;
        (lab.operator, lab.engineer) = (world.again(&lab.operator), world.again(&lab.engineer));
        for _ in 0..6 {
            world.pass(TimeDelta::minutes(45));
            node.pass(&away, world.now(), &mut dice).await;
            node.kill();
        }
        node.repeat(&world.nobody()).await;
        node.pass(&world.nobody(), world.now(), &mut dice).await;
    }
    for _ in 0..40 {
        world.settled().await;
        node.pass(&world.nobody(), world.now(), &mut dice).await;
        world.pass(TimeDelta::minutes(45));
    }
    world.settled().await;
    let span = |ran: &system_tests::faults::node::Ran| Span {
        started_at: ran.started_at,
        ended_at: ran.ended.as_ref().map(|(at, _)| *at),
    };
    let spans: Spans = node.record.iter().map(|(lease, ran)| (*lease, span(ran))).collect();
    let account = of_world(&world, &Acks::default(), &spans).await;
    assert_eq!((account.jobs, account.lost), (jobs.len(), 0));
    assert!(account.quantity > 0);
}

fn waits_for_go() -> Ask {
    let script = "echo begun; until test -e $KASHI_CHECKPOINT_DIR/go; do sleep 0.02; done; exit 4";
    let body = json!({
        "name": "waits", "command": ["/bin/sh", "-c", script], "milli_cores": 100, "memory_mib": 16,
        "cards": { "model": "sim-a100", "count": 1 },
    });
    Ask { key: "waits".into(), path: "/api/v1/jobs".into(), body, of: "job", or: &[] }
}

/// The process of the one job that runs.
fn running(platform: &Platform) -> Option<i32> {
    let (_, folder) = leases(&platform.agent_data).pop()?;
    Some(kashi_agent::run::Folder::at(folder).started().ok()??.pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_outlives_both_programs_is_adopted_and_billed_by_the_agents_record() {
    let mut platform = Platform::begin().await;
    let engineer = platform.engineer.clone();
    let job = platform.acks.insist(&engineer, &waits_for_go()).await.unwrap();
    until("the job to run", || async { running(&platform).is_some() }).await;
    let pid = running(&platform).unwrap();
    platform.kill_server().await;
    platform.kill_agent().await;
    assert_eq!(running(&platform), Some(pid));
    platform.start_agent();
    platform.kill_agent().await;
    platform.start_server().await;
    platform.start_agent();
    let status = async |platform: &Platform| {
        platform.engineer.get(&format!("/api/v1/jobs/{job}")).await.body["status"].as_str().unwrap().to_owned()
    };
    until("the job to be seen to run", || async { status(&platform).await == "running" }).await;
    assert_eq!(running(&platform), Some(pid), "it was adopted and not started again");
    platform.kill_server().await;
    platform.kill_agent().await;
    let checkpoints: BTreeSet<_> = fs::read_dir(platform.agent_data.join("checkpoints"))
        .unwrap()
        .collect::<Result<Vec<_>, _>>()
        .unwrap()
        .iter()
        .map(fs::DirEntry::path)
        .collect();
    assert_eq!(checkpoints.len(), 1);
    fs::write(checkpoints.first().unwrap().join("go"), "").unwrap();
    let (_, folder) = leases(&platform.agent_data).pop().unwrap();
    until("the job to end while nobody is there", || async { folder.join("exit.json").exists() }).await;
    platform.start_agent();
    platform.start_server().await;
    until("the job's end to be heard", || async { status(&platform).await == "failed" }).await;
    until("its checkpoints to go", || async { !checkpoints.first().unwrap().exists() }).await;
    let account = platform.end().await;
    assert_eq!((account.jobs, account.leases), (1, 1));
    assert!(account.quantity > 0);
}
