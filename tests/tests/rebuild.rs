//! Read models are made anew while they are read and written: what is served is never less than what was shown, and in
//! the end what was made anew equals what was there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use serde_json::{Value, json};
use store::Engine;
use system_tests::lab::Lab;
use system_tests::stored;
use system_tests::world::{Person, World, until};

const START: &str = "2026-11-10T01:00:00Z";
const LIST: &str = "/api/v1/projections";
const REBUILD: &str = "/api/v1/projections/rebuild";

system_tests::on_both! {
    all_are_made_anew_while_orders_come_in,
    one_that_has_stopped_is_named_and_made_anew,
    a_builder_that_vanished_is_replaced,
    what_is_asked_for_is_checked,
}

async fn status(operator: &Person, version: i64) -> Value {
    let list = operator.get(LIST).await;
    assert!(list.status.is_success(), "{}", list.body);
    let versions = list.body["versions"].as_array().unwrap();
    versions.iter().find(|found| found["version"] == version).cloned().unwrap_or_default()
}

async fn becomes(operator: &Person, version: i64, wanted: &str) {
    until(&format!("version {version} to be {wanted}"), async || {
        let found = status(operator, version).await;
        assert!(found["status"] != "failed" || wanted == "failed", "{found}");
        found["status"] == wanted
    })
    .await;
}

/// Orders, each read at once, until a version is served; how many there were.
async fn order_until_served(lab: &Lab, readers: &[Person], version: i64) -> usize {
    let mut made = 0;
    loop {
        let served = status(&lab.operator, version).await["status"] == "serving";
        let written = lab.engineer.post("/api/v1/orders", json!({ "resource": "core", "quantity": 1 })).await;
        made += 1;
        for reader in readers {
            let list = reader.get_from(written.position, "/api/v1/orders?limit=200").await;
            assert!(list.status.is_success(), "{}", list.body);
            let shown = list.body["items"].as_array().unwrap();
            assert_eq!((shown.len(), &shown[0]["id"]), (made.min(200), &written.body["id"]), "all that was ordered");
        }
        if served && made > 20 {
            return made;
        }
    }
}

async fn all_are_made_anew_while_orders_come_in(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let asked = lab.operator.post(REBUILD, json!({})).await;
    assert_eq!((asked.status.as_u16(), &asked.body["version"]), (202, &json!(2)), "{}", asked.body);
    let made = order_until_served(&lab, std::slice::from_ref(&lab.engineer), 2).await;
    world.settled().await;
    let version = status(&lab.operator, 2).await;
    assert!(version["position"].as_i64().unwrap() > 0 && version["position"] == version["target"], "{version}");
    becomes(&lab.operator, 1, "dropped").await;
    let (_, orders) = projections::digest(&world.kit.read, "orders").await.unwrap();
    assert_eq!(orders.len(), made);
    stored::rebuilt_equals_live(&world).await;
    // What was put in place is what a server starts with.
    let world = world.restarted().await;
    let operator = world.again(&lab.operator);
    assert_eq!(operator.get(LIST).await.body["serving"], 2);
    world.settled().await;
    stored::rebuilt_equals_live(&world).await;
}

async fn one_that_has_stopped_is_named_and_made_anew(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let order = async || lab.engineer.post("/api/v1/orders", json!({ "resource": "core", "quantity": 1 })).await;
    order().await;
    world.settled().await;
    world.kit.read.sql("drop table orders").run().await.unwrap();
    let written = order().await;
    let refused = lab.engineer.get_from(written.position, "/api/v1/jobs").await;
    assert_eq!((refused.status.as_u16(), &refused.body["code"]), (503, &json!("read.stopped")), "{}", refused.body);
    assert!(refused.body["detail"].as_str().unwrap().contains("`orders`"), "{}", refused.body);
    let of = |list: &Value, name: &str| {
        list["items"].as_array().unwrap().iter().find(|model| model["name"] == name).unwrap().clone()
    };
    let list = lab.operator.get(LIST).await.body;
    let orders = of(&list, "orders");
    assert!(orders["stopped_position"].as_i64().is_some_and(|at| at <= written.position), "{orders}");
    assert!(orders["stopped_cause"].is_string() && of(&list, "jobs")["stopped_cause"].is_null(), "{list}");
    let at = of(&list, "jobs")["position"].as_i64().unwrap();
    assert!(at >= written.position, "the others go on: {list}");

    let asked = lab.operator.made(REBUILD, json!({ "name": "orders" })).await;
    assert_eq!(asked["model"], "orders");
    becomes(&lab.operator, 2, "serving").await;
    let read = lab.engineer.get_from(written.position, "/api/v1/orders").await;
    assert_eq!(read.body["items"].as_array().map(Vec::len), Some(2), "{}", read.body);
    assert!(of(&lab.operator.get(LIST).await.body, "orders")["stopped_cause"].is_null());
    let written = order().await;
    assert!(lab.engineer.get_from(written.position, "/api/v1/orders").await.status.is_success());
    world.settled().await;
    stored::rebuilt_equals_live(&world).await;
}

async fn a_builder_that_vanished_is_replaced(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    // Another process takes it and is never heard of again.
    let runtime = &world.kit.runtime;
    let gone = loop {
        let now = world.now();
        runtime.ask_rebuild(None, None, now).await.unwrap();
        if let Some(version) = runtime.claim_rebuild("gone").await.unwrap() {
            break version.version;
        }
    };
    becomes(&lab.operator, gone, "failed").await;
    becomes(&lab.operator, gone + 1, "serving").await;
    let late = runtime.serve(gone, "gone", world.now()).await.unwrap();
    assert!(!late, "it is not served when it comes back");
    world.settled().await;
    stored::rebuilt_equals_live(&world).await;
}

async fn what_is_asked_for_is_checked(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let unknown = lab.operator.post(REBUILD, json!({ "name": "order" })).await;
    assert_eq!((unknown.status.as_u16(), &unknown.body["code"]), (422, &json!("projection.unknown")));
    assert!(unknown.body["hint"].as_str().unwrap().contains("orders"), "{}", unknown.body);
    let forbidden = lab.engineer.post(REBUILD, json!({})).await;
    assert_eq!(forbidden.status.as_u16(), 403);
    assert_eq!(lab.engineer.get(LIST).await.status.as_u16(), 403);
    // The same key asks once; another thing under it is refused.
    let first = lab.operator.post_as("again", REBUILD, json!({ "name": "jobs" })).await;
    becomes(&lab.operator, 2, "serving").await;
    let again = lab.operator.post_as("again", REBUILD, json!({ "name": "jobs" })).await;
    assert_eq!((again.status.as_u16(), &again.body["version"]), (202, &first.body["version"]));
    let other = lab.operator.post_as("again", REBUILD, json!({})).await;
    assert_eq!((other.status.as_u16(), &other.body["code"]), (422, &json!("request.key_reused")), "{}", other.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_moves_to_what_one_of_them_made() {
    let one = World::new(Engine::Postgres, START).await;
    let two = one.beside().await;
    let lab = Lab::found(&one, 4).await;
    let readers = [lab.engineer.clone(), two.again(&lab.engineer)];
    two.settled().await;
    two.again(&lab.operator).made(REBUILD, json!({})).await;
    order_until_served(&lab, &readers, 2).await;
    // It is gone only once neither reads there any more.
    becomes(&lab.operator, 1, "dropped").await;
    one.settled().await;
    two.settled().await;
    for world in [&one, &two] {
        stored::rebuilt_equals_live(world).await;
    }
}
