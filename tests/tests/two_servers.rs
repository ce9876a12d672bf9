//! Two servers of one platform on one PostgreSQL database: whatever one of them writes, either may read, follow up,
//! place, meter and bill, and nothing happens twice.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use futures::future::join_all;
use serde_json::json;
use std::collections::HashSet;
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::stored;
use system_tests::world::World;

const START: &str = "2026-11-10T01:00:00Z";

/// Two servers, with a laboratory that was founded at the first.
async fn two() -> (World, World, Lab) {
    let one = World::new(Engine::Postgres, START).await;
    let two = one.beside().await;
    let lab = Lab::found(&one, 10).await;
    (one, two, lab)
}

async fn both_settled(one: &World, two: &World) {
    one.settled().await;
    two.settled().await;
    one.settled().await;
}

/// Every event is there once, at a place of its own, and none of its command's twice.
async fn nothing_is_double(world: &World) {
    let events = stored::events(world).await;
    assert!(events.iter().map(|event| event.position).eq(1..=events.len() as i64));
    let places: HashSet<_> = events.iter().map(|event| (event.stream.to_string(), event.revision)).collect();
    let ids: HashSet<_> = events.iter().map(|event| event.event).collect();
    assert_eq!((places.len(), ids.len()), (events.len(), events.len()));
    stored::rebuilt_equals_live(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_billed_once_through_alternating_servers() {
    let (one, two, lab) = two().await;
    let (engineer_of_two, operator_of_two) = (two.again(&lab.engineer), two.again(&lab.operator));
    let mut agent = FakeAgent::join(&one, &lab.operator, 4).await;

    let order = lab.engineer.made("/api/v1/orders", json!({ "resource": "card.sim-a100", "quantity": 2 })).await;
    let order = order["id"].as_str().unwrap().to_owned();
    operator_of_two.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    both_settled(&one, &two).await;
    assert_eq!(lab.engineer.get(&format!("/api/v1/orders/{order}")).await.body["status"], "active");

    let job = json!({ "name": "train", "command": ["true"], "cards": { "model": "sim-a100", "count": 1 } });
    let job = engineer_of_two.made("/api/v1/jobs", job).await["id"].as_str().unwrap().to_owned();
    let lease = agent.asked_to_run(&job).await;
    agent = agent.again(&two);
    assert_eq!(agent.asked_to_run(&job).await, lease);
    let (from, to) = (one.now(), one.now() + TimeDelta::seconds(59));
    agent.started(&lease, from).await;
    agent = agent.again(&one);
    for server in [&two, &one] {
        agent.ended(&lease, from, to, Exit::Code { code: 0 }).await;
        agent = agent.again(server);
    }
    both_settled(&one, &two).await;

    for engineer in [&lab.engineer, &engineer_of_two] {
        let statements = engineer.get("/api/v1/statements").await.body;
        let [statement] = &statements["items"].as_array().unwrap()[..] else { panic!("one bill: {statements}") };
        let bill = engineer.get(&format!("/api/v1/statements/{}", statement["id"].as_str().unwrap())).await.body;
        assert_eq!((&bill["lines"][0]["amount"], &bill["total"]["total"]), (&json!("1.31111111"), &json!("1.31")));
    }
    let kinds = stored::kinds(&one).await;
    let once = ["order.activated", "job.admitted", "plan.placed", "lease.granted", "lease.ended", "meter.closed"];
    for kind in once.into_iter().chain(["ledger.charged", "wallet.consumed"]) {
        assert_eq!(kinds.get(kind), Some(&1), "{kind} of {kinds:?}");
    }
    nothing_is_double(&two).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_at_one_server_is_read_at_the_other() {
    let (one, two, lab) = two().await;
    both_settled(&one, &two).await;
    let readers = [two.again(&lab.engineer), lab.engineer.clone()];
    for number in 0..10 {
        let writer = &[&lab.engineer, &readers[0]][number % 2];
        let written = writer.post("/api/v1/orders", json!({ "resource": "core", "quantity": 1 })).await;
        let order = written.body["id"].as_str().unwrap_or_else(|| panic!("{}", written.body));
        let read = readers[number % 2].get_from(written.position, &format!("/api/v1/orders/{order}")).await;
        assert_eq!((read.status.as_u16(), &read.body["status"]), (200, &json!("requested")), "{}", read.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_a_write_is_waited_for_whoever_does_it() {
    let (one, two, lab) = two().await;
    let operators = [lab.operator.clone(), two.again(&lab.operator)];
    for number in 0..4 {
        let order = lab.engineer.made("/api/v1/orders", json!({ "resource": "core", "quantity": 1 })).await;
        let order = order["id"].as_str().unwrap().to_owned();
        let operator = &operators[number % 2];
        let path = format!("/api/v1/orders/{order}");
        let approved = operator.post(&format!("{path}/approve?wait=settled"), json!({})).await;
        assert_eq!((approved.status.as_u16(), approved.settled), (200, Some(true)), "{}", approved.body);
        assert_eq!(operator.get(&path).await.body["status"], "active");
    }
    both_settled(&one, &two).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_orders_at_two_servers_admit_as_many_as_there_is_quota() {
    let (one, two, lab) = two().await;
    let people = [(lab.engineer.clone(), lab.operator.clone()), (two.again(&lab.engineer), two.again(&lab.operator))];
    let approve = async |number: usize| {
        let (engineer, _) = &people[number % 2];
        let (_, operator) = &people[(number + 1) % 2];
        let ask = json!({ "resource": "card.sim-a100", "quantity": 1 });
        let order = engineer.post_as(&format!("order-{number}"), "/api/v1/orders", ask.clone()).await;
        // Sent again, at the other server.
        let again = people[(number + 1) % 2].0.post_as(&format!("order-{number}"), "/api/v1/orders", ask).await;
        assert_eq!((order.position, &order.body), (again.position, &again.body), "one order");
        let order = order.body["id"].as_str().unwrap_or_else(|| panic!("{}", order.body)).to_owned();
        operator.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    };
    join_all((0..100).map(approve)).await;
    both_settled(&one, &two).await;
    let orders = lab.engineer.get("/api/v1/orders?limit=200").await.body;
    let with = |status: &str| {
        let orders = orders["items"].as_array().unwrap();
        orders.iter().filter(|order| order["status"] == status).count()
    };
    assert_eq!((with("active"), with("refused")), (10, 90), "{orders}");
    nothing_is_double(&one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_server_goes_on_alone() {
    let (one, two, lab) = two().await;
    let agent = FakeAgent::join(&one, &lab.operator, 4).await;
    lab.order(&one, "card.sim-a100", 2).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    agent.started(&lease, one.now()).await;
    let from = one.now();
    one.stopped().await;

    let (agent, engineer) = (agent.again(&two), two.again(&lab.engineer));
    agent.ended(&lease, from, from + TimeDelta::hours(3), Exit::Code { code: 0 }).await;
    two.settled().await;
    let statements = engineer.get("/api/v1/statements").await.body;
    let id = statements["items"][0]["id"].as_str().unwrap_or_else(|| panic!("no statement: {statements}"));
    let bill = engineer.get(&format!("/api/v1/statements/{id}")).await.body;
    assert_eq!(bill["total"]["total"], "240");
    nothing_is_double(&two).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_closed_once_by_two_clocks() {
    let one = World::new(Engine::Postgres, "2026-11-30T15:30:00Z").await;
    let two = one.beside().await;
    let lab = Lab::found(&one, 4).await;
    let agent = FakeAgent::join(&two, &lab.operator, 4).await;
    lab.order(&one, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    agent.started(&lease, one.now()).await;
    both_settled(&one, &two).await;
    one.pass(TimeDelta::hours(2));
    let (first, second) = tokio::join!(control::close_due(&one.kit), control::close_due(&two.kit));
    assert!(first.unwrap().len() + second.unwrap().len() > 0);
    both_settled(&one, &two).await;
    let statements = two.again(&lab.engineer).get("/api/v1/statements").await.body;
    let november = statements["items"].as_array().unwrap().iter().find(|item| item["month"] == "2026-11").unwrap();
    assert_eq!((&november["status"], &november["number"]), (&json!("issued"), &json!("2026-11-000001")));
    let kinds = stored::kinds(&one).await;
    for kind in ["ledger.closed", "statement.issued", "ledger.charged"] {
        assert_eq!(kinds.get(kind), Some(&1), "{kind} of {kinds:?}");
    }
    nothing_is_double(&one).await;
}
