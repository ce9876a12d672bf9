//! Evidence of access: refused commands, sign-ins and reads of personal data, for auditors only.

use crate::room::{Room, lab};
use chrono::TimeDelta;
use domain::identity::member_of;
use serde_json::{Value, json};

fn li() -> String {
    member_of("li").to_string()
}

/// What of the evidence is asked for, without its places and times.
async fn listed(room: &Room, query: &str) -> Vec<Value> {
    let answer = room.get("audit", &format!("/access{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_refused_command_leaves_its_route_its_things_and_its_code() {
    let room = Room::new().await;
    let order = "ord_00000000000000000000000001";
    assert_eq!(room.post("li", &format!("/orders/{order}/approve"), json!({})).await.is(), (403, "auth.forbidden"));
    let member = json!({ "handle": "li", "tenant": lab(), "roles": [], "password": "correct horse battery" });
    assert_eq!(room.post("wang", "/members", member).await.is(), (409, "member.already_exists"));
    // Neither what is malformed, nor what is not there, nor a read is a refused command.
    assert_eq!(room.post("li", "/orders", json!({ "sku": 1 })).await.status, 422);
    assert_eq!(room.post("li", "/jobs/job_00000000000000000000000001/cancel", json!({})).await.status, 404);
    assert_eq!(room.get("li", "/members").await.status, 403);
    let shown = listed(&room, "").await;
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!((&shown[0]["what"], &shown[0]["code"]), (&json!("refused"), &json!("auth.forbidden")));
    assert_eq!(shown[0]["operation"], "POST /api/v1/orders/{id}/approve");
    assert_eq!((&shown[0]["things"], &shown[0]["actor"]), (&json!([order]), &json!(li())));
    assert_eq!(
        (&shown[1]["operation"], &shown[1]["code"]),
        (&json!("POST /api/v1/members"), &json!("member.already_exists"))
    );
    assert!(!format!("{:?}", room.evidence().await).contains("correct horse"));
}

#[tokio::test]
async fn sign_ins_are_told_and_what_was_tried_is_not() {
    let room = Room::new().await;
    let member = json!({ "handle": "new", "tenant": lab(), "roles": [], "password": "correct horse battery" });
    assert_eq!(room.post("wang", "/members", member).await.status, 201);
    for (handle, password, status) in [
        ("new", "correct horse battery", 200),
        ("new", "wrong horse battery", 401),
        ("nobody-here", "s3cret pass", 401),
    ] {
        let body = json!({ "handle": handle, "password": password });
        assert_eq!(room.nobody("POST", "/api/v1/login", Some(body)).await.status, status);
    }
    let shown = listed(&room, "").await;
    let told: Vec<_> = shown.iter().map(|access| (access["what"].as_str().unwrap(), &access["actor"])).collect();
    let new = json!(member_of("new").to_string());
    let nobody = json!("nobody");
    assert_eq!(told, [("signed_in", &new), ("sign_in_failed", &new), ("sign_in_failed", &nobody)]);
    let log = room.kit.executor.log().read_category("access", 0, 100).await.unwrap();
    let stored = format!("{log:?}");
    for text in ["horse", "s3cret", "nobody-here", &member_of("nobody-here").to_string()] {
        assert!(!stored.contains(text), "{text}");
    }
}

#[tokio::test]
async fn a_read_of_personal_data_is_opened_before_and_closed_after() {
    let room = Room::new().await;
    let path = format!("/members/{}/profile", member_of("li"));
    assert_eq!(room.get("wang", &path).await.status, 404);
    assert_eq!(room.ask("li", "PUT", &path, Some(json!({ "email": "li@example.org" }))).await.status, 200);
    assert_eq!(room.get("wang", &path).await.status, 200);
    assert_eq!(room.get("wang", "/members?email=li@example.org").await.status, 200);
    let shown = listed(&room, &format!("?actor={}", member_of("wang"))).await;
    let told: Vec<_> = shown
        .iter()
        .map(|access| (access["what"].as_str().unwrap(), access["operation"].as_str().unwrap(), &access["code"]))
        .collect();
    let none = Value::Null;
    let missing = json!("profile.not_found");
    assert_eq!(
        told,
        [
            ("opened", "member.profile", &none),
            ("closed", "member.profile", &missing),
            ("opened", "member.profile", &none),
            ("closed", "member.profile", &none),
            ("opened", "member.search", &none),
            ("closed", "member.search", &none),
        ]
    );
    assert_eq!(shown[2]["correlation"], shown[3]["correlation"]);
    assert_ne!(shown[0]["correlation"], shown[2]["correlation"]);
    assert_eq!(shown[2]["things"], json!([li()]));
    assert!(!format!("{shown:?}").contains("example"));
}

#[tokio::test]
async fn one_actor_fills_no_log_and_what_is_left_out_is_counted() {
    let room = Room::new().await;
    let refused = async || assert_eq!(room.post("li", "/tenants", json!({ "name": "x" })).await.status, 403);
    for _ in 0..65 {
        refused().await;
    }
    assert_eq!(room.evidence().await.len(), 60);
    room.kit.clock.advance(TimeDelta::minutes(1));
    refused().await;
    let shown = listed(&room, "?from=2026-11-10T01:00:30Z").await;
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["dropped"], 5);
}

#[tokio::test]
async fn is_listed_in_pages_for_auditors_only() {
    let room = Room::new().await;
    for _ in 0..5 {
        room.post("li", "/tenants", json!({ "name": "x" })).await;
        room.kit.clock.advance(TimeDelta::hours(1));
    }
    let (mut positions, mut cursor) = (vec![], String::new());
    loop {
        let page = room.get("audit", &format!("/access?limit=2{cursor}")).await.body;
        positions.extend(page["items"].as_array().unwrap().iter().map(|access| access["position"].as_i64().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(positions.len(), 5);
    assert!(positions.is_sorted());
    assert_eq!(listed(&room, "?from=2026-11-10T04:00:00Z").await.len(), 2);
    assert!(listed(&room, "?from=2027-01-01T00:00:00Z").await.is_empty());
    assert!(listed(&room, "?actor=nobody").await.is_empty());
    for who in ["li", "wang", "bare"] {
        assert_eq!(room.get(who, "/access").await.is(), (403, "auth.forbidden"), "{who}");
        let event = room.get(who, &format!("/events/{}", positions[0])).await;
        assert_ne!(event.status, 200, "{who}: {}", event.body);
    }
    assert_eq!(room.get("audit", "/access?cursor=x").await.status, 400);
    let streams = room.kit.executor.log().read_category("access", 0, 100).await.unwrap();
    let streams: std::collections::BTreeSet<_> = streams.iter().map(|stored| stored.stream.to_string()).collect();
    assert_eq!(streams.len(), 5, "one for each hour: {streams:?}");
}
