//! A node is lost: its leases end once, at the last proof of its life; its jobs start elsewhere or fail; and when it
//! comes back, what it says of old leases counts for nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::{DesiredLease, Exit};
use chrono::{DateTime, TimeDelta, Utc};
use control::{SILENCE_MAX, Watch};
use serde_json::{Value, json};
use store::Engine;
use system_tests::fake_agent::{FakeAgent, running};
use system_tests::lab::Lab;
use system_tests::world::{World, until};

system_tests::on_both! {
    a_job_on_a_lost_node_fails_and_is_billed_up_to_the_last_proof_of_life,
    a_job_that_may_starts_again_once_the_node_is_back_and_its_old_lease_counts_for_nothing,
    a_node_keeps_what_a_job_left_there_until_the_job_is_over,
    a_node_is_given_up_after_ten_minutes_of_silence_and_not_before,
    silence_does_not_count_while_the_platform_itself_was_away_or_its_clock_jumped,
}

const START: &str = "2026-11-10T01:00:00Z";

async fn world(engine: Engine) -> (World, Lab, FakeAgent) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    (world, lab, agent)
}

async fn submit(lab: &Lab, restarts: u32) -> String {
    let cards = json!({ "model": "sim-a100", "count": 1 });
    let job = json!({ "name": "train", "command": ["train"], "cards": cards, "restarts": restarts });
    lab.engineer.made("/api/v1/jobs", job).await["id"].as_str().unwrap().to_owned()
}

async fn begun(world: &World, lab: &Lab, agent: &FakeAgent, restarts: u32) -> (String, DesiredLease, DateTime<Utc>) {
    let job = submit(lab, restarts).await;
    let lease = agent.asked_to_run(&job).await;
    let from = world.now();
    agent.started(&lease, from).await;
    world.settled().await;
    (job, lease, from)
}

async fn lose(lab: &Lab, agent: &FakeAgent) {
    let path = format!("/api/v1/nodes/{}/lose", agent.node());
    lab.operator.made(&path, json!({ "reason": "no power" })).await;
}

async fn job(lab: &Lab, job: &str) -> Value {
    lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body
}

/// Waits until a job stands so; what it is then.
async fn becomes(world: &World, lab: &Lab, id: &str, status: &str) -> Value {
    until(status, || async { job(lab, id).await["status"] == status }).await;
    world.settled().await;
    job(lab, id).await
}

async fn charged(lab: &Lab, job: &str) -> Value {
    lab.engineer.get(&format!("/api/v1/jobs/{job}/charges")).await.body["items"].clone()
}

/// What is held of cards, in cards.
async fn held(lab: &Lab) -> i64 {
    let quotas = lab.engineer.get("/api/v1/quotas").await.body;
    let of_cards = |quota: &&Value| quota["resource"] == "card.sim-a100";
    quotas["items"].as_array().unwrap().iter().find(of_cards).unwrap()["in_use"].as_i64().unwrap()
}

async fn a_job_on_a_lost_node_fails_and_is_billed_up_to_the_last_proof_of_life(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let (lost, lease, from) = begun(&world, &lab, &agent, 0).await;
    world.pass(TimeDelta::minutes(9));
    agent.report(vec![running(&lease, from)]).await;
    world.pass(TimeDelta::hours(5));
    lose(&lab, &agent).await;
    let seen = becomes(&world, &lab, &lost, "failed").await;
    assert_eq!((&seen["status"], seen["detail"].as_str().unwrap().split(':').next()), (&json!("failed"), Some("lost")));
    let charges = charged(&lab, &lost).await;
    assert_eq!((charges.as_array().unwrap().len(), &charges[0]["amount"]), (1, &json!("12")));
    assert_eq!(held(&lab).await, 0);
    let node = &lab.operator.get("/api/v1/nodes").await.body["items"][0];
    assert_eq!(node["lost_reason"], "no power");
    let again = format!("/api/v1/nodes/{}/lose", agent.node());
    assert_eq!(lab.engineer.post(&again, json!({ "reason": "mine" })).await.status, 403);
}

async fn a_job_that_may_starts_again_once_the_node_is_back_and_its_old_lease_counts_for_nothing(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let (again, old, from) = begun(&world, &lab, &agent, 1).await;
    world.pass(TimeDelta::minutes(9));
    agent.report(vec![running(&old, from)]).await;
    lose(&lab, &agent).await;
    let waits = becomes(&world, &lab, &again, "queued").await;
    assert_eq!((&waits["status"], &waits["restarts"]), (&json!("queued"), &json!(1)), "{waits}");
    assert_eq!(held(&lab).await, 1, "it keeps its quota");
    let why = lab.engineer.get(&format!("/api/v1/jobs/{again}/why?lang=en")).await.body;
    assert!(!why["text"].as_str().unwrap().is_empty());
    assert_eq!(agent.desired(-1).await.leases, [], "a lost node gets nothing new");
    // It was only cut off, and its work went on.
    world.pass(TimeDelta::minutes(30));
    assert_eq!(agent.report(vec![running(&old, from)]).await.stale, [old.lease]);
    let late = agent.ended(&old, from, world.now(), Exit::Code { code: 0 }).await;
    assert_eq!(late.stale, [old.lease]);
    let new = agent.asked_to_run(&again).await;
    assert_ne!(new.lease, old.lease);
    assert_eq!(new.work.env.get("KASHI_RESTART").map(String::as_str), Some("1"));
    assert_eq!(old.work.env.get("KASHI_RESTART"), None);
    let start = world.now();
    agent.started(&new, start).await;
    agent.ended(&new, start, start + TimeDelta::minutes(3), Exit::Code { code: 0 }).await;
    world.settled().await;
    assert_eq!(job(&lab, &again).await["status"], "succeeded");
    let charges = charged(&lab, &again).await;
    let amounts: Vec<_> = charges.as_array().unwrap().iter().map(|charge| charge["amount"].clone()).collect();
    assert_eq!(amounts, [json!("12"), json!("4")]);
    assert_eq!(held(&lab).await, 0);
    assert_eq!(agent.desired(-1).await.jobs, [], "what it kept there may go");
}

async fn a_node_keeps_what_a_job_left_there_until_the_job_is_over(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let (kept, lease, _) = begun(&world, &lab, &agent, 1).await;
    assert_eq!(agent.desired(-1).await.jobs, [lease.job]);
    lose(&lab, &agent).await;
    becomes(&world, &lab, &kept, "queued").await;
    let lost = agent.desired(-1).await;
    assert_eq!((lost.leases.len(), lost.jobs), (0, vec![lease.job]));
    lab.engineer.made(&format!("/api/v1/jobs/{kept}/cancel"), json!({})).await;
    world.settled().await;
    assert_eq!(agent.desired(-1).await.jobs, []);
}

/// Minutes pass, and the platform looks each time.
async fn minutes(world: &World, watch: &mut Watch, minutes: u32) -> Vec<String> {
    let mut lost = vec![];
    for _ in 0..minutes {
        world.pass(TimeDelta::minutes(1));
        lost.extend(watch.look(&world.kit, &world.fleets).await.unwrap());
    }
    lost.iter().map(ToString::to_string).collect()
}

async fn a_node_is_given_up_after_ten_minutes_of_silence_and_not_before(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let (silent, _, _) = begun(&world, &lab, &agent, 0).await;
    let mut watch = Watch::new(&world.kit, SILENCE_MAX);
    assert_eq!(minutes(&world, &mut watch, 10).await, Vec::<String>::new());
    assert_eq!(minutes(&world, &mut watch, 2).await, [agent.node()]);
    becomes(&world, &lab, &silent, "failed").await;
    assert_eq!(charged(&lab, &silent).await, json!([]), "it was last heard of when it began");
    assert_eq!(minutes(&world, &mut watch, 20).await, Vec::<String>::new(), "it is lost once");
    agent.report(vec![]).await;
    world.settled().await;
    assert_eq!(minutes(&world, &mut watch, 11).await, [agent.node()]);
}

async fn silence_does_not_count_while_the_platform_itself_was_away_or_its_clock_jumped(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    begun(&world, &lab, &agent, 0).await;
    world.pass(TimeDelta::hours(2));
    let world = world.restarted().await;
    let mut watch = Watch::new(&world.kit, SILENCE_MAX);
    assert_eq!(minutes(&world, &mut watch, 10).await, Vec::<String>::new(), "it has just started");
    world.pass(TimeDelta::hours(3));
    assert_eq!(minutes(&world, &mut watch, 10).await, Vec::<String>::new(), "its clock jumped, or it stood still");
    world.pass(TimeDelta::hours(-1));
    assert_eq!(minutes(&world, &mut watch, 10).await, Vec::<String>::new(), "its clock was set back");
    let agent = agent.again(&world);
    agent.report(vec![]).await;
    world.pass(TimeDelta::hours(-1));
    assert_eq!(minutes(&world, &mut watch, 12).await, [agent.node()], "a word from the future is no proof");
}
