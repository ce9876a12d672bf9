//! Quota over HTTP: what is admitted, what is refused with the numbers, who waits and who is let in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use futures::future::join_all;
use serde_json::json;
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::world::World;

system_tests::on_both! {
    a_hundred_orders_against_a_quota_for_ten_admit_ten,
    a_job_beyond_what_was_ordered_waits_its_turn_and_says_why,
    a_job_that_can_never_fit_is_refused_with_the_numbers,
    a_wallet_without_money_refuses_the_job_and_holds_no_quota,
    what_jobs_use_is_not_returned,
    nobody_approves_their_own_order,
}

const START: &str = "2026-11-10T01:00:00Z";

async fn a_hundred_orders_against_a_quota_for_ten_admit_ten(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 10).await;
    let approve = async |number: usize| {
        let ask = json!({ "resource": "card.sim-a100", "quantity": 1 });
        let order = lab.engineer.post_as(&format!("order-{number}"), "/api/v1/orders", ask).await;
        let order = order.body["id"].as_str().unwrap_or_else(|| panic!("{}", order.body)).to_owned();
        lab.operator.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    };
    join_all((0..100).map(approve)).await;
    world.settled().await;
    let orders = lab.engineer.get("/api/v1/orders?limit=200").await.body;
    let with = |status: &str| {
        orders["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|order| order["status"] == status)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!((with("active").len(), with("refused").len()), (10, 90));
    assert!(with("refused").iter().all(|order| order["reason"] == "quota: 1 wanted, 0 free"), "{orders}");
    let quota = lab.engineer.get("/api/v1/quotas").await.body;
    let cards = quota["items"].as_array().unwrap().iter().find(|quota| quota["resource"] == "card.sim-a100").unwrap();
    assert_eq!((&cards["ceiling"], &cards["ordered"]), (&json!(10), &json!(10)));
}

async fn a_job_beyond_what_was_ordered_waits_its_turn_and_says_why(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 2).await;
    let first = lab.submit(2).await;
    let lease = agent.asked_to_run(&first).await;
    agent.started(&lease, world.now()).await;
    let second = lab.submit(1).await;
    world.settled().await;
    let waits = lab.engineer.get(&format!("/api/v1/jobs/{second}")).await.body;
    assert_eq!((&waits["status"], &waits["detail"]), (&json!("submitted"), &json!("quota: 1 wanted, 0 free")));
    let why = lab.engineer.get(&format!("/api/v1/jobs/{second}/why?lang=en")).await.body;
    assert!(!why["text"].as_str().unwrap().is_empty() && !why["advice"].as_str().unwrap().is_empty(), "{why}");
    agent.ended(&lease, world.now(), world.now() + TimeDelta::seconds(5), Exit::Code { code: 0 }).await;
    agent.asked_to_run(&second).await;
}

async fn a_job_that_can_never_fit_is_refused_with_the_numbers(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    lab.order(&world, "card.sim-a100", 2).await;
    let job = lab.submit(3).await;
    world.settled().await;
    let refused = lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body;
    assert_eq!(
        (&refused["status"], &refused["detail"]),
        (&json!("refused"), &json!("quota: 3 wanted, 2 ordered in all"))
    );
}

async fn a_wallet_without_money_refuses_the_job_and_holds_no_quota(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    lab.order(&world, "card.sim-a100", 2).await;
    let credit = format!("/api/v1/tenants/{}/wallet/credit", lab.tenant);
    assert!(lab.operator.put(&credit, json!({ "amount": "79.99" })).await.status.is_success());
    let job = lab.submit(1).await;
    world.settled().await;
    let refused = lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body;
    assert_eq!(refused["detail"], "wallet: 80.00 wanted for the first hour, 79.99 available");
    let quota = lab.engineer.get("/api/v1/quotas").await.body;
    assert!(quota["items"].as_array().unwrap().iter().all(|quota| quota["in_use"] == 0), "{quota}");
}

async fn what_jobs_use_is_not_returned(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    let order = lab.order(&world, "card.sim-a100", 2).await;
    let job = lab.submit(2).await;
    let lease = agent.asked_to_run(&job).await;
    let give_back = async || {
        lab.engineer.made(&format!("/api/v1/orders/{order}/return"), json!({})).await;
        world.settled().await;
        lab.engineer.get(&format!("/api/v1/orders/{order}")).await.body
    };
    let kept = give_back().await;
    assert_eq!((&kept["status"], &kept["reason"]), (&json!("active"), &json!("return: 2 are in use by jobs")));
    agent.ended(&lease, world.now(), world.now(), Exit::Code { code: 1 }).await;
    world.settled().await;
    assert_eq!(give_back().await["status"], "returned");
}

async fn nobody_approves_their_own_order(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let order = lab.engineer.made("/api/v1/orders", json!({ "resource": "core", "quantity": 1 })).await;
    let order = order["id"].as_str().unwrap();
    let reply = lab.engineer.post(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    assert_eq!((reply.status.as_u16(), &reply.body["code"]), (403, &json!("auth.forbidden")));
}
