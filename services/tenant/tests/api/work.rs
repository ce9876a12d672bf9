//! Orders and jobs: what is refused before it is decided, repetitions, why a job waits, its output, nodes and pools.

use crate::room::{Room, SKU, book, lab, node_id, pool_id, rival, some_lease};
use domain::allocation::{Job, job};
use domain::identity::member_of;
use domain::kernel::{CommandId, Id, JobId, TenantId};
use serde_json::{Value, json};
use std::time::Duration;

fn cards(count: u32) -> Value {
    json!({ "name": "train", "command": ["python3", "train.py"], "cards": { "model": "a100", "count": count } })
}

#[tokio::test]
async fn an_order_says_its_product_or_its_resource() {
    let room = Room::new().await;
    for (body, code) in [
        (json!({ "quantity": 1 }), (422, "order.sku_or_resource")),
        (json!({ "sku": SKU, "resource": "core", "quantity": 1 }), (422, "order.sku_or_resource")),
        (json!({ "sku": "none", "quantity": 1 }), (404, "product.not_found")),
        (json!({ "resource": "card.unknown", "quantity": 1 }), (409, "price.missing")),
        (json!({ "resource": "card.h100", "quantity": 1 }), (409, "price.missing")),
        (json!({ "sku": "card.h100", "quantity": 1 }), (409, "price.missing")),
    ] {
        assert_eq!(room.post("li", "/orders", body.clone()).await.is(), code, "{body}");
    }
    for body in [json!({ "sku": SKU, "quantity": 2 }), json!({ "resource": SKU, "quantity": 2 })] {
        let id = room.post("li", "/orders", body).await.text("id");
        let order = room.get("li", &format!("/orders/{id}")).await.body;
        assert_eq!((&order["sku"], &order["quantity"], &order["price"]), (&json!(SKU), &json!(2), &json!("80")));
        assert_eq!(
            (&order["status"], &order["requested_by"]),
            (&json!("requested"), &json!(member_of("li").to_string()))
        );
    }
}

#[tokio::test]
async fn a_price_that_is_withdrawn_refuses_the_order() {
    let room = Room::new().await;
    room.ordered(lab(), SKU, 4).await;
    room.publish(&[("core", "0.35")]).await;
    let refused = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await;
    assert_eq!(refused.is(), (409, "price.missing"));
    assert!(refused.body["hint"].as_str().unwrap().contains("/prices"));
    assert_eq!(room.post("li", "/jobs", cards(1)).await.is(), (409, "price.missing"));
}

#[tokio::test]
async fn the_platform_itself_orders_and_runs_nothing() {
    let room = Room::new().await;
    for (path, body) in [("/orders", json!({ "sku": SKU, "quantity": 1 })), ("/jobs", cards(1))] {
        let refused = room.post("admin", path, body).await;
        assert_eq!(refused.is(), (409, "contract.missing"), "{path}");
        assert!(refused.body["hint"].as_str().unwrap().contains("member of a tenant"), "{}", refused.body);
    }
    let founded = room.post("admin", "/tenants", json!({ "name": "new" })).await.text("id");
    let add = json!({ "handle": "new", "tenant": founded, "roles": ["engineer"] });
    assert_eq!(room.post("admin", "/members", add).await.status, 201);
    assert_eq!(room.post("new", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.is(), (409, "contract.missing"));
}

#[tokio::test]
async fn the_same_request_again_gives_the_same_answer_and_does_nothing() {
    let room = Room::new().await;
    room.ordered(lab(), SKU, 4).await;
    for (path, body) in [("/orders", json!({ "sku": SKU, "quantity": 1 })), ("/jobs", cards(1))] {
        let first = room.post_as(path, "li", path, body.clone()).await;
        assert_eq!(first.status, 201, "{}", first.body);
        let facts = room.facts().await;
        // What the request rested on is otherwise by now.
        room.publish(&[("core", "0.35")]).await;
        let again = room.post_as(path, "li", path, body.clone()).await;
        assert_eq!((again.status, &again.body), (201, &first.body));
        for header in ["kashi-position", "kashi-correlation"] {
            assert_eq!(again.header(header), first.header(header), "{header}");
        }
        assert_eq!(room.facts().await, facts + 1, "the price only");
        let mut other = body.clone();
        other["name"] = json!("other");
        other["quantity"] = json!(2);
        let body = if path == "/jobs" { cards(2) } else { json!({ "sku": SKU, "quantity": 2 }) };
        assert_eq!(room.post_as(path, "li", path, body.clone()).await.is(), (422, "request.key_reused"));
        room.publish(&[("core", "0.35"), (SKU, "80")]).await;
        assert_ne!(room.post_as(path, "wang", path, body).await.body, first.body, "another's key is another key");
    }
    let order = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id");
    let approve = format!("/orders/{order}/approve");
    let first = room.post_as("a", "wang", &approve, json!({})).await;
    let again = room.post_as("a", "wang", &approve, json!({})).await;
    assert_eq!(
        (first.status, &first.body, first.header("kashi-position")),
        (200, &again.body, again.header("kashi-position"))
    );
    assert_eq!(room.post_as("b", "wang", &approve, json!({})).await.is(), (409, "order.wrong_state"));
    assert_eq!(room.post_as("a", "wang", "/pools", json!({ "name": "x" })).await.is(), (403, "auth.forbidden"));
    let own = room.post("wang", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id");
    assert_eq!(
        room.post("wang", &format!("/orders/{own}/approve"), json!({})).await.is(),
        (409, "order.self_approval")
    );
}

#[tokio::test]
async fn a_job_needs_an_active_order_of_what_it_uses() {
    let room = Room::new().await;
    let refused = room.post("li", "/jobs", cards(1)).await;
    assert_eq!(refused.is(), (409, "quota.nothing_ordered"));
    assert!(refused.body["hint"].as_str().unwrap().contains("kashi order --resource card.a100"), "{}", refused.body);
    room.ordered(rival(), SKU, 4).await;
    assert_eq!(room.post("li", "/jobs", cards(1)).await.is(), (409, "quota.nothing_ordered"));
    room.ordered(lab(), SKU, 4).await;
    let id = room.post("li", "/jobs", cards(2)).await.text("id");
    let job = room.get("li", &format!("/jobs/{id}")).await.body;
    assert_eq!((&job["status"], &job["milli"], &job["name"]), (&json!("submitted"), &json!(2000), &json!("train")));
    assert_eq!((&job["command"], &job["resource"]), (&json!("python3 train.py"), &json!(SKU)));
    let quota = room.get("li", "/quotas").await.body;
    assert_eq!((&quota["items"][0]["ceiling"], &quota["items"][0]["ordered"]), (&json!(4), &json!(4)));
}

async fn submitted(room: &Room) -> JobId {
    room.ordered(lab(), SKU, 4).await;
    room.post("li", "/jobs", cards(1)).await.text("id").parse().unwrap()
}

#[tokio::test]
async fn a_job_in_any_state_says_why_it_is_there() {
    let room = Room::new().await;
    let id = submitted(&room).await;
    let why = async |lang: &str| {
        room.show().await;
        room.get("li", &format!("/jobs/{id}/why{lang}")).await.body
    };
    let step = async |command| room.give::<Job>(lab(), id, command).await;
    assert_eq!(why("").await["reason"], "admitting");
    step(job::Command::Queue { wanted_milli: 1000, free_milli: 0 }).await;
    let quota = why("?lang=en").await;
    assert_eq!(
        (&quota["reason"]["reason"], &quota["reason"]["wanted_milli"]),
        (&json!("quota_exceeded"), &json!(1000))
    );
    assert!(quota["text"].as_str().unwrap().contains("1 a100 card"), "{quota}");
    step(job::Command::Admit).await;
    assert_eq!(why("").await["reason"], "planning");
    let told = r#"{"reason":"nodes_unavailable","drained":1,"unreachable":0}"#;
    room.kit.runtime.waits(id, told, room.kit.clock.now()).await.unwrap();
    let waits = why("?lang=en").await;
    assert_eq!((&waits["reason"]["drained"], &waits["since"]), (&json!(1), &json!("2026-11-10T01:00:00Z")));
    assert!(waits["advice"].as_str().unwrap().contains("drained"), "{waits}");
    assert!(why("?lang=zh").await["text"].as_str().unwrap().contains("已排空"));
    let (lease, at) = (some_lease(), room.kit.clock.now());
    step(job::Command::Place { lease, node: node_id(), cards: vec![0] }).await;
    assert_eq!(why("").await["reason"], "starting");
    step(job::Command::Start { lease, at }).await;
    assert_eq!(why("?lang=en").await["text"], "It runs.");
    step(job::Command::End { lease, outcome: job::Outcome::Failed { code: 3 }, at }).await;
    assert_eq!(why("?lang=en").await["text"], "It failed: exit code 3.");
    assert_eq!(room.get("li", &format!("/jobs/{id}/why?lang=fr")).await.is(), (400, "request.bad_query"));
}

#[tokio::test]
async fn a_job_is_cancelled_once() {
    let room = Room::new().await;
    let id = submitted(&room).await;
    assert_eq!(room.post("li", &format!("/jobs/{id}/cancel"), json!({})).await.status, 200);
    let job = room.get("li", &format!("/jobs/{id}")).await.body;
    assert_eq!((&job["status"], &job["detail"]), (&json!("cancelled"), &json!("cancelled by li")));
    let again = room.post("li", &format!("/jobs/{id}/cancel"), json!({})).await;
    assert_eq!(again.is(), (409, "job.wrong_state"));
    assert_eq!(room.get("li", "/jobs").await.body["items"], json!([]));
    assert_eq!(room.get("li", "/jobs?all=true&limit=1").await.body["items"][0]["id"], id.to_string());
}

#[tokio::test]
async fn output_comes_as_bytes_and_its_end_is_told_once_it_is_whole() {
    let room = Room::new().await;
    let id = submitted(&room).await;
    let read = async |query: &str| room.get("li", &format!("/jobs/{id}/output{query}")).await;
    let none = read("").await;
    assert_eq!((none.status, none.bytes.len(), none.header("kashi-next-offset")), (200, 0, Some("0")));
    assert_eq!(none.header("kashi-output-end"), None);
    let (lease, at) = (some_lease(), room.kit.clock.now());
    let step = async |command| {
        room.give::<Job>(lab(), id, command).await;
        room.show().await;
    };
    step(job::Command::Admit).await;
    step(job::Command::Place { lease, node: node_id(), cards: vec![0] }).await;
    step(job::Command::Start { lease, at }).await;
    let grow = async {
        tokio::task::yield_now().await;
        room.kit.outputs.append(lease, 0, b"loss 1\n\xff\xfe").await.unwrap();
    };
    let (woken, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(10), read("?wait_s=20")), grow);
    let woken = woken.unwrap();
    assert_eq!((&woken.bytes[..], woken.header("kashi-next-offset")), (&b"loss 1\n\xff\xfe"[..], Some("9")));
    assert_eq!(woken.header("content-type"), Some("application/octet-stream"));
    assert_eq!(read("?offset=7").await.bytes, b"\xff\xfe");
    assert_eq!(read("?offset=100").await.header("kashi-next-offset"), Some("100"));

    room.kit.outputs.will_be(lease, 12).await.unwrap();
    step(job::Command::End { lease, outcome: job::Outcome::Succeeded, at }).await;
    assert_eq!(read("?offset=9").await.header("kashi-output-end"), None, "three bytes are still to come");
    room.kit.outputs.append(lease, 9, b"end").await.unwrap();
    let last = read("?offset=9").await;
    assert_eq!((&last.bytes[..], last.header("kashi-output-end")), (&b"end"[..], Some("true")));
    assert_eq!(read("?offset=12&wait_s=20").await.header("kashi-output-end"), Some("true"));
    for bad in ["?wait_s=21", "?offset=-1", "?offset=x", "?ofset=1"] {
        assert_eq!(read(bad).await.is(), (400, "request.bad_query"), "{bad}");
    }
}

#[tokio::test]
async fn output_that_never_comes_is_not_waited_for_for_ever() {
    let room = Room::new().await;
    let id = submitted(&room).await;
    let (lease, at) = (some_lease(), room.kit.clock.now());
    for command in [
        job::Command::Admit,
        job::Command::Place { lease, node: node_id(), cards: vec![] },
        job::Command::End { lease, outcome: job::Outcome::Vanished, at },
    ] {
        room.give::<Job>(lab(), id, command).await;
    }
    room.kit.outputs.will_be(lease, 12).await.unwrap();
    room.show().await;
    let path = format!("/jobs/{id}/output");
    assert_eq!(room.get("li", &path).await.header("kashi-output-end"), None);
    room.kit.clock.advance(chrono::TimeDelta::seconds(61));
    assert_eq!(room.get("li", &path).await.header("kashi-output-end"), Some("true"));
}

#[tokio::test]
async fn nodes_and_pools_are_managed_by_the_platform() {
    let room = Room::new().await;
    room.hardware().await;
    room.kit.runtime.saw(node_id(), room.kit.clock.now()).await.unwrap();
    let node = room.get("li", "/nodes").await.body["items"][0].clone();
    assert_eq!((&node["name"], &node["last_seen_at"]), (&json!("n1"), &json!("2026-11-10T01:00:00Z")));
    let drain = format!("/nodes/{}/drain", node_id());
    assert_eq!(room.post("wang", &drain, json!({ "reason": "x" })).await.is(), (403, "auth.forbidden"));
    assert_eq!(room.post("admin", &drain, json!({ "reason": "new fan" })).await.status, 200);
    assert_eq!(room.get("li", "/nodes").await.body["items"][0]["drain_reason"], "new fan");
    assert_eq!(room.ask("admin", "POST", &format!("/nodes/{}/resume", node_id()), None).await.status, 200);
    assert_eq!(room.get("li", "/nodes").await.body["items"][0]["draining"], false);
    let unknown = room.post("admin", "/nodes/nod_00000000000000000000000000/drain", json!({ "reason": "x" })).await;
    assert_eq!(unknown.is(), (404, "node.not_found"));

    let made = room.post("admin", "/pools", json!({ "name": "second" })).await.text("id");
    assert_eq!(room.get("li", "/pools").await.body["items"].as_array().unwrap().len(), 2);
    let token = room.post("admin", &format!("/pools/{made}/join-tokens"), json!({ "expires_in_s": 60 })).await;
    assert_eq!(token.text("expires_at"), "2026-11-10T01:01:00Z");
    assert!(token.text("token").starts_with(&format!("{made}.")), "{}", token.body);
    let nowhere = room.post("admin", "/pools/poo_00000000000000000000000000/join-tokens", json!({})).await;
    assert_eq!(nowhere.is(), (404, "pool.not_found"));
    assert_ne!(made, pool_id().to_string());
    assert_ne!(CommandId::derived(TenantId::PLATFORM, ""), CommandId::derived(lab(), &book().to_string()));
}
