//! The agents' endpoint against agents that are confused, late, lying or not ours.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use serde_json::{Value, json};
use store::Engine;
use system_tests::fake_agent::{FakeAgent, inventory, over, running};
use system_tests::lab::Lab;
use system_tests::world::{World, first_pool};

system_tests::on_both! {
    a_report_that_comes_again_late_or_in_another_order_counts_once,
    a_stale_generation_and_an_unknown_lease_count_for_nothing,
    a_cancelled_job_is_ended_by_its_node_and_billed_for_what_it_used,
    a_job_that_is_cancelled_before_its_place_takes_none,
    a_join_token_joins_one_machine_once,
    malformed_words_are_refused_and_change_nothing,
    output_is_kept_as_bytes_once_and_shown_while_it_grows,
}

const START: &str = "2026-11-10T01:00:00Z";

async fn world(engine: Engine) -> (World, Lab, FakeAgent) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    (world, lab, agent)
}

async fn kinds(world: &World, stream: &str) -> Vec<String> {
    let stream = domain::kernel::StreamName::stored(stream.into());
    let stored = world.kit.executor.log().read_stream(&stream, 0, 100).await.unwrap();
    stored.into_iter().map(|event| event.kind).collect()
}

async fn a_report_that_comes_again_late_or_in_another_order_counts_once(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    let (from, to) = (world.now(), world.now() + TimeDelta::seconds(30));
    // The end is heard of before the start, then both again, in every order.
    let end = || over(&lease, from, to, Exit::Code { code: 0 });
    for words in [vec![end()], vec![running(&lease, from)], vec![end(), running(&lease, from)], vec![end()]] {
        assert_eq!(agent.report(words).await.stale, []);
    }
    world.settled().await;
    let expected = ["lease.granted", "lease.started", "lease.ended"];
    assert_eq!(kinds(&world, &format!("lease-{}", lease.lease)).await, expected);
    assert_eq!(kinds(&world, &format!("meter-{}", lease.lease)).await, ["meter.opened", "meter.closed"]);
}

async fn a_stale_generation_and_an_unknown_lease_count_for_nothing(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    let mut stale = running(&lease, world.now());
    stale.generation -= 1;
    assert_eq!(agent.report(vec![stale]).await.stale, [lease.lease]);
    let mut unknown = running(&lease, world.now());
    unknown.lease = domain::kernel::Id::derived(lease.job, "nothing");
    assert_eq!(agent.report(vec![unknown.clone()]).await.stale, [unknown.lease]);
    world.settled().await;
    assert_eq!(lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body["status"], "starting");
}

async fn a_cancelled_job_is_ended_by_its_node_and_billed_for_what_it_used(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    agent.started(&lease, world.now()).await;
    world.settled().await;
    lab.engineer.made(&format!("/api/v1/jobs/{job}/cancel"), json!({ "reason": "enough" })).await;
    let stop = agent.asked_to_stop(&job).await;
    assert!(stop.stop_after_ms.is_some_and(|ms| ms > 0));
    agent.ended(&lease, world.now(), world.now() + TimeDelta::seconds(36), Exit::Stopped).await;
    world.settled().await;
    assert_eq!(lab.engineer.get(&format!("/api/v1/jobs/{job}")).await.body["status"], "cancelled");
    let charges = lab.engineer.get(&format!("/api/v1/jobs/{job}/charges")).await.body;
    let charges = charges.as_array().or_else(|| charges["items"].as_array()).unwrap().clone();
    assert_eq!(charges[0]["amount"], "0.8");
}

async fn a_job_that_is_cancelled_before_its_place_takes_none(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    lab.order(&world, "card.sim-a100", 4).await;
    let job = lab.submit(1).await;
    lab.engineer.made(&format!("/api/v1/jobs/{job}/cancel"), json!({})).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    world.settled().await;
    assert_eq!(agent.desired(0).await.leases, []);
    let quota = lab.engineer.get("/api/v1/quotas").await.body;
    assert!(quota["items"].as_array().unwrap().iter().all(|quota| quota["in_use"] == 0), "{quota}");
}

async fn register(world: &World, token: &str, credential: &str) -> (u16, Value) {
    let asked = json!({ "token": token, "name": "n2", "credential": credential, "inventory": inventory(1) });
    let reply = world.nobody().post("/agent/v1/register", asked).await;
    (reply.status.as_u16(), reply.body)
}

async fn a_join_token_joins_one_machine_once(engine: Engine) {
    let (world, lab, _) = world(engine).await;
    let path = format!("/api/v1/pools/{}/join-tokens", first_pool());
    let token = lab.operator.made(&path, json!({})).await["token"].as_str().unwrap().to_owned();
    let (status, first) = register(&world, &token, &"a".repeat(64)).await;
    assert_eq!(status, 201, "{first}");
    assert_eq!(register(&world, &token, &"a".repeat(64)).await, (201, first));
    let (status, refused) = register(&world, &token, &"b".repeat(64)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("pool.join_token_used")));
    let other = if token.ends_with('0') { '1' } else { '0' };
    let altered = format!("{}{other}", &token[..token.len() - 1]);
    for wrong in ["", "x", "poo_00000000000000000000000000.secret", &altered] {
        let (status, refused) = register(&world, wrong, &"a".repeat(64)).await;
        assert_eq!((status, &refused["code"]), (403, &json!("pool.join_token_unknown")), "{wrong}");
    }
    let short = lab.operator.made(&path, json!({ "expires_in_s": 60 })).await["token"].as_str().unwrap().to_owned();
    world.pass(TimeDelta::seconds(61));
    assert_eq!(register(&world, &short, &"d".repeat(64)).await.1["code"], "pool.join_token_expired");
}

async fn malformed_words_are_refused_and_change_nothing(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let head = *world.kit.executor.log().head().borrow();
    let speak = async |body: Value| {
        let request = world.client.post(format!("{}/agent/v1/report", world.url)).json(&body);
        let response = request.bearer_auth(format!("{}.{}", agent.node(), "c".repeat(64))).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap()["code"].clone())
    };
    let lease = json!({ "lease": "lea_x", "generation": 1, "phase": { "phase": "running", "started_at": START } });
    let bad = [
        json!({}),
        json!({ "generation": 0, "inventory": inventory(4), "leases": [], "surprise": 1 }),
        json!({ "generation": "zero", "inventory": inventory(4), "leases": [] }),
        json!({ "generation": 0, "inventory": inventory(4), "leases": [lease] }),
    ];
    for body in bad {
        assert_eq!(speak(body.clone()).await, (422, json!("request.bad_field")), "{body}");
    }
    let mut twice = inventory(2);
    twice.cards[1].index = 0;
    let body = json!({ "generation": 0, "inventory": twice, "leases": [] });
    assert_eq!(speak(body).await, (422, json!("node.bad_inventory")));
    let stranger = world.client.get(format!("{}/agent/v1/desired", world.url));
    for bearer in ["x", agent.node(), &format!("{}.{}", agent.node(), "d".repeat(64))] {
        let reply = stranger.try_clone().unwrap().bearer_auth(bearer).send().await.unwrap();
        assert_eq!(reply.status(), 401, "{bearer}");
    }
    let reply = stranger.send().await.unwrap();
    assert_eq!(reply.json::<Value>().await.unwrap()["code"], "agent.unknown");
    drop(lab);
    assert_eq!(*world.kit.executor.log().head().borrow(), head);
}

async fn output_is_kept_as_bytes_once_and_shown_while_it_grows(engine: Engine) {
    let (world, lab, agent) = world(engine).await;
    let job = lab.submit(1).await;
    let lease = agent.asked_to_run(&job).await;
    agent.started(&lease, world.now()).await;
    assert_eq!(agent.output(&lease, 0, b"loss 1\n\xff\xfe").await.1["next_offset"], 9);
    assert_eq!(agent.output(&lease, 0, b"loss 1\n\xff\xfe").await.1["next_offset"], 9);
    assert_eq!(agent.output(&lease, 20, b"gap").await.1["next_offset"], 9);
    assert_eq!(agent.output(&lease, 7, b"\xff\xfeend\n").await.1["next_offset"], 13);
    world.settled().await;
    let token = lab.engineer.get(&format!("/api/v1/jobs/{job}/output?offset=7")).await;
    assert_eq!(token.status, 200);
    assert_eq!(token.body, Value::from(String::from_utf8_lossy(b"\xff\xfeend\n").into_owned()));
    let mut other = lease.clone();
    other.lease = domain::kernel::Id::derived(lease.job, "other");
    assert_eq!(agent.output(&other, 0, b"x").await.1["code"], "lease.not_found");
}
