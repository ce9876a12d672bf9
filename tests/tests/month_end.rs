//! A month ends in the contract's zone while a job runs: its meter is read, the ledger closes, the statement is numbered
//! and issued, and what comes late is on the next one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::{DateTime, TimeDelta, Utc};
use control::{close_due, extend_due};
use serde_json::{Value, json};
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::world::World;

system_tests::on_both! {
    a_month_is_closed_once_and_a_job_over_its_end_is_on_both_bills,
    what_ended_before_a_closed_months_end_is_given_back_on_the_next_bill,
    the_hold_of_a_running_job_grows_by_the_hour,
}

async fn bills(lab: &Lab) -> Vec<Value> {
    let mut all = vec![];
    for statement in lab.engineer.get("/api/v1/statements").await.body["items"].as_array().unwrap() {
        let id = statement["id"].as_str().unwrap();
        all.push(lab.engineer.get(&format!("/api/v1/statements/{id}")).await.body);
    }
    all
}

async fn a_month_is_closed_once_and_a_job_over_its_end_is_on_both_bills(engine: Engine) {
    // Half an hour before December in Shanghai.
    let world = World::new(engine, "2026-11-30T15:30:00Z").await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    let from: DateTime<Utc> = world.now();
    agent.started(&lease, from).await;
    world.settled().await;
    assert_eq!(close_due(&world.kit).await.unwrap(), Vec::<String>::new());

    world.pass(TimeDelta::minutes(45));
    assert_eq!(close_due(&world.kit).await.unwrap().len(), 0, "the month stays open for an hour");
    world.settled().await;
    let november = &bills(&lab).await[0];
    assert_eq!((&november["statement"]["month"], &november["total"]["total"]), (&json!("2026-11"), &json!("40")));

    world.pass(TimeDelta::hours(1));
    assert_eq!(close_due(&world.kit).await.unwrap().len(), 1);
    world.settled().await;
    assert_eq!(close_due(&world.kit).await.unwrap().len(), 0, "it is closed once");
    let issued = bills(&lab).await[0].clone();
    assert_eq!(issued["statement"]["status"], "issued");
    assert_eq!(issued["statement"]["number"], "2026-11-000001");

    // It ran for two hours in all: half an hour of November, an hour and a half of December.
    agent.ended(&lease, from, from + TimeDelta::hours(2), Exit::Code { code: 0 }).await;
    world.settled().await;
    let [december, november] = &bills(&lab).await[..] else { panic!("two bills") };
    assert_eq!(*november, issued, "an issued statement never changes");
    assert_eq!((&december["statement"]["month"], &december["total"]["total"]), (&json!("2026-12"), &json!("120")));
}

async fn what_ended_before_a_closed_months_end_is_given_back_on_the_next_bill(engine: Engine) {
    let world = World::new(engine, "2026-11-30T15:30:00Z").await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    let from: DateTime<Utc> = world.now();
    agent.started(&lease, from).await;
    world.settled().await;
    world.pass(TimeDelta::hours(2));
    assert_eq!(close_due(&world.kit).await.unwrap().len(), 1);
    world.settled().await;
    // The node was away and says only now that it ended after a quarter of an hour.
    agent.ended(&lease, from, from + TimeDelta::minutes(15), Exit::Code { code: 0 }).await;
    world.settled().await;
    let [december, november] = &bills(&lab).await[..] else { panic!("two bills: {:?}", bills(&lab).await) };
    assert_eq!(november["total"]["total"], "40");
    assert_eq!(december["total"]["total"], "-20");
}

async fn the_hold_of_a_running_job_grows_by_the_hour(engine: Engine) {
    let world = World::new(engine, "2026-11-10T01:00:00Z").await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    agent.started(&lease, world.now()).await;
    world.settled().await;
    let held = async || {
        world.settled().await;
        let wallet = lab.engineer.get(&format!("/api/v1/tenants/{}/wallet", lab.tenant)).await.body;
        wallet["held"].as_str().map(ToOwned::to_owned)
    };
    assert_eq!(held().await.as_deref(), Some("80"));
    world.pass(TimeDelta::minutes(59));
    assert_eq!(extend_due(&world.kit).await.unwrap(), 0);
    world.pass(TimeDelta::minutes(1));
    assert_eq!(extend_due(&world.kit).await.unwrap(), 1);
    assert_eq!(held().await.as_deref(), Some("160"));
    extend_due(&world.kit).await.unwrap();
    assert_eq!(held().await.as_deref(), Some("160"), "an hour is extended once");
    agent.ended(&lease, world.now() - TimeDelta::hours(1), world.now(), Exit::Code { code: 0 }).await;
    assert_eq!(held().await.as_deref(), Some("0"));
}
