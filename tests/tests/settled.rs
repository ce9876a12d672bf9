//! `?wait=settled`: a write that is answered once all that follows was done, and no later than after two seconds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use axum::body::Body;
use axum::http::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use domain::kernel::{CommandId, Id, TenantId};
use serde_json::json;
use std::time::Duration;
use store::Engine;
use system_tests::lab::Lab;
use system_tests::world::World;
use tokio::time::Instant;
use tower::ServiceExt;

const START: &str = "2026-11-10T01:00:00Z";

system_tests::on_both! {
    what_follows_is_done_and_shown_when_the_write_is_answered,
    what_takes_longer_is_answered_as_it_is,
}

async fn what_follows_is_done_and_shown_when_the_write_is_answered(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let ask = || json!({ "resource": "card.sim-a100", "quantity": 2 });
    let asked = lab.engineer.post("/api/v1/orders", ask()).await;
    assert_eq!(asked.settled, None, "nobody asked to wait");
    let order = asked.body["id"].as_str().unwrap().to_owned();
    let approve = format!("/api/v1/orders/{order}/approve?wait=settled");
    let approved = lab.operator.post(&approve, json!({})).await;
    assert_eq!((approved.status.as_u16(), approved.settled), (200, Some(true)), "{}", approved.body);
    // Read without saying from where.
    assert_eq!(lab.engineer.get(&format!("/api/v1/orders/{order}")).await.body["status"], "active");

    let job = json!({ "name": "big", "command": ["true"], "cards": { "model": "sim-a100", "count": 3 } });
    let job = lab.engineer.post("/api/v1/jobs?wait=settled", job).await;
    assert_eq!((job.status.as_u16(), job.settled), (201, Some(true)));
    let job = lab.engineer.get(&format!("/api/v1/jobs/{}", job.body["id"].as_str().unwrap())).await.body;
    assert_eq!(job["status"], "refused");

    let refused = lab.engineer.post("/api/v1/orders?wait=shown", ask()).await;
    assert_eq!((refused.status.as_u16(), &refused.body["code"]), (400, &json!("request.bad_wait")));
    let wrong = lab.engineer.post("/api/v1/orders?wait=settled", json!({ "resource": "gold", "quantity": 1 })).await;
    assert!(wrong.status.is_client_error() && wrong.settled.is_none(), "{}", wrong.body);
}

async fn what_takes_longer_is_answered_as_it_is(engine: Engine) {
    let world = World::new(engine, START).await;
    world.operator().await;
    let kit = world.kit.clone();
    let correlation = CommandId::derived(TenantId::PLATFORM, "far");
    // A write whose events are further on than anything will be.
    let far = move || async move { kit::Written::created(1_000_000, correlation, "made") };
    let routes = axum::Router::new().route("/far", post(far)).layer(from_fn_with_state(kit, kit::settled));
    let send = async |path: &str| {
        let begun = Instant::now();
        let request = Request::post(path).header("Kashi-Wait", "settled").body(Body::empty()).unwrap();
        (routes.clone().oneshot(request).await.unwrap(), begun.elapsed())
    };
    let (response, took) = send("/far").await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()[kit::SETTLED], "false");
    assert_eq!(response.headers()[kit::POSITION], "1000000");
    assert!(took >= Duration::from_secs(2), "{took:?}");

    // One that cannot be shown is not waited for.
    let stop = kit::Stop { position: 5, cause: "a defect".into() };
    world.kit.progress.flows_reached(1_000_000);
    world.kit.progress.stopped("orders", stop);
    let (response, took) = send("/far").await;
    assert_eq!((response.status().as_u16(), &response.headers()[kit::SETTLED]), (201, &"false".parse().unwrap()));
    assert!(took < Duration::from_secs(1), "{took:?}");
}
