//! The main job: an order is approved, a job runs, every second is on the bill, and every line is explained.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::stored;
use system_tests::world::World;

system_tests::on_both! {
    a_job_is_billed_to_the_second_and_explained,
    golden_meterings_come_out_exactly,
    what_is_rebuilt_equals_what_is_live,
    the_platform_can_be_stopped_and_started_after_every_step,
    a_list_is_newest_first_and_its_pages_leave_nothing_out,
}

const START: &str = "2026-11-10T01:00:00Z";

/// Runs a job on so many cards for so many seconds.
async fn run(world: &World, lab: &Lab, agent: &FakeAgent, cards: u32, seconds: i64) -> String {
    let job = lab.submit(cards).await;
    let lease = agent.asked_to_run(&job).await;
    let from = world.now();
    let to = from + TimeDelta::seconds(seconds);
    agent.started(&lease, from).await;
    agent.ended(&lease, from, to, Exit::Code { code: 0 }).await;
    world.settled().await;
    job
}

async fn statement(lab: &Lab) -> Value {
    let statements = lab.engineer.get("/api/v1/statements").await.body;
    let id = statements["items"][0]["id"].as_str().unwrap_or_else(|| panic!("no statement: {statements}")).to_owned();
    lab.engineer.get(&format!("/api/v1/statements/{id}")).await.body
}

async fn a_job_is_billed_to_the_second_and_explained(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    let order = lab.order(&world, "card.sim-a100", 2).await;
    assert_eq!(lab.engineer.get(&format!("/api/v1/orders/{order}")).await.body["status"], "active");
    let job = run(&world, &lab, &agent, 1, 59).await;
    assert_eq!(lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body["status"], "succeeded");

    let bill = statement(&lab).await;
    let line = &bill["lines"][0];
    assert_eq!(line["sku"], "card.sim-a100");
    assert_eq!(line["amount"], "1.31111111");
    assert_eq!(line["shown"], "1.31");
    assert_eq!(bill["total"]["total"], "1.31");
    assert_eq!(bill["statement"]["status"], "draft");

    let (statement, version) = (bill["statement"]["id"].as_str().unwrap(), &line["price_version"]);
    let path = format!("/api/v1/statements/{statement}/lines/card.sim-a100/{version}/explain");
    let explained = lab.engineer.get(&path).await.body;
    let charge = &explained["items"][0];
    assert_eq!(charge["charge"]["job"], job.as_str());
    assert_eq!(charge["charge"]["amount"], "1.31111111");
    let events = charge["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    for kind in [
        "job.submitted",
        "plan.placed",
        "lease.granted",
        "lease.started",
        "meter.opened",
        "lease.ended",
        "meter.closed",
        "ledger.charged",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    for event in events {
        let followed = lab.engineer.get(event["href"].as_str().unwrap()).await;
        assert!(followed.status.is_success(), "{event}: {}", followed.body);
        assert_eq!(followed.body["position"], event["position"]);
        assert_eq!(followed.body["kind"], event["kind"]);
    }
}

async fn golden_meterings_come_out_exactly(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 2).await;
    run(&world, &lab, &agent, 1, 20 * 60).await;
    run(&world, &lab, &agent, 2, 20 * 60).await;
    let bill = statement(&lab).await;
    assert_eq!(bill["lines"][0]["hours"], "1");
    assert_eq!(bill["lines"][0]["shown"], "80");
    run(&world, &lab, &agent, 1, 2 * 3600).await;
    assert_eq!(statement(&lab).await["lines"][0]["shown"], "240");
}

async fn what_is_rebuilt_equals_what_is_live(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    let order = lab.order(&world, "card.sim-a100", 2).await;
    run(&world, &lab, &agent, 2, 61).await;
    let waits = lab.submit(2).await;
    agent.asked_to_run(&waits).await;
    lab.engineer.made(&format!("/api/v1/orders/{order}/return"), serde_json::json!({})).await;
    world.settled().await;

    stored::rebuilt_equals_live(&world).await;
    let (_, orders) = projections::digest(&world.kit.read, "orders").await.unwrap();
    assert_eq!(orders.len(), 1);
}

async fn the_platform_can_be_stopped_and_started_after_every_step(engine: Engine) {
    let world = World::new(engine, START).await;
    let mut lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    let mut agent = agent.again(&world);
    agent.report(vec![]).await;
    let order = serde_json::json!({ "resource": "card.sim-a100", "quantity": 2 });
    let order = lab.engineer.made("/api/v1/orders", order).await["id"].as_str().unwrap().to_owned();
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    lab.operator.made(&format!("/api/v1/orders/{order}/approve"), serde_json::json!({})).await;
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    agent = agent.again(&world);
    world.settled().await;
    let job = lab.submit(1).await;
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    agent = agent.again(&world);
    agent.report(vec![]).await;
    let lease = agent.asked_to_run(&job).await;
    let from: DateTime<Utc> = world.now();
    agent.started(&lease, from).await;
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    agent = agent.again(&world);
    world.settled().await;
    assert_eq!(agent.asked_to_run(&job).await, lease);
    assert_eq!(lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body["status"], "running");
    agent.ended(&lease, from, from + TimeDelta::hours(3), Exit::Code { code: 0 }).await;
    let world = world.restarted().await;
    rejoin(&world, &mut lab);
    world.settled().await;
    assert_eq!(statement(&lab).await["lines"][0]["shown"], "240");
}

fn rejoin(world: &World, lab: &mut Lab) {
    (lab.operator, lab.engineer) = (world.again(&lab.operator), world.again(&lab.engineer));
}

async fn a_list_is_newest_first_and_its_pages_leave_nothing_out(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let mut submitted = vec![];
    for _ in 0..5 {
        submitted.push(lab.submit(1).await);
    }
    world.settled().await;
    submitted.reverse();
    let (mut listed, mut cursor) = (vec![], String::new());
    loop {
        let page = lab.engineer.get(&format!("/api/v1/jobs?limit=2{cursor}")).await.body;
        listed.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(listed, submitted);
}
