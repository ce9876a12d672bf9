//! The order-to-bill story goes on through seeded faults; `FAULTS=n SEED=s` tells another one, and a failure names its
//! seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use domain::allocation::{Lease, lease};
use domain::kernel::{CommandId, Id, Meta};
use serde_json::json;
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::faults::weather::Weather;
use system_tests::faults::{asked_for, real, story};
use system_tests::lab::Lab;
use system_tests::world::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_left_over_in_one_process() {
    let (faults, seed) = asked_for(24);
    eprintln!("SEED={seed} FAULTS={faults}");
    let (account, tried) = story::tell(seed, faults).await;
    eprintln!("{account:?} {tried:?}");
    assert!(account.jobs > 0 && account.quantity > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_left_over_in_real_processes() {
    let (faults, seed) = asked_for(6);
    eprintln!("SEED={seed} FAULTS={faults}");
    let (account, tried) = real::tell(seed, faults).await;
    eprintln!("{account:?} {tried:?}");
    assert!(account.jobs > 0);
}

#[tokio::test]
async fn the_flows_outlive_a_log_whose_streams_cannot_be_read_for_a_while() {
    let weather = Weather::default();
    let mut world = World::through(Engine::Sqlite, weather.between(), "2026-11-10T01:00:00Z").await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    let wanted = agent.asked_to_run(&job).await;
    world.settled().await;
    weather.blind(true);
    let (node, generation, at) = (agent.node().parse().unwrap(), wanted.generation, world.now());
    let command = CommandId::derived(wanted.lease, "start");
    let meta = Meta {
        tenant: lab.tenant.parse().unwrap(),
        actor: "test".into(),
        command,
        digest: "start".into(),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: at,
    };
    // The executor has the stream in its memory, and needs no look at it.
    let start = lease::Command::ReportStart { node, generation, at };
    world.kit.executor.execute::<Lease>(wanted.lease, meta, start).await.unwrap();
    until("the flows to look in vain", || async { weather.failed() > 0 }).await;
    weather.blind(false);
    world.settled().await;
    world.is_up();
    agent.ended(&wanted, at, at + TimeDelta::seconds(36), Exit::Code { code: 0 }).await;
    world.settled().await;
    let charges = lab.engineer.get(&format!("/api/v1/jobs/{job}/charges")).await.body;
    assert_eq!(charges["items"][0]["amount"], json!("0.8"));
}
