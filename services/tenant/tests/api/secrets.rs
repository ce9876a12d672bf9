//! A secret is in the answer that made it and nowhere else: not in a list, an event, a repetition or the log.

use crate::room::{Answer, Room, lab, pool_id};
use kit::Digest;
use serde_json::json;

const PASSWORD: &str = "correct horse battery";

/// Every answer that could show something about what was made.
async fn everything(room: &Room) -> String {
    let mut texts = String::new();
    let mut add = |answer: Answer| texts.push_str(&String::from_utf8_lossy(&answer.bytes));
    for path in ["/members", "/tenants", "/nodes", "/pools", "/whoami", "/health", "/jobs?all=true", "/orders"] {
        add(room.get("admin", path).await);
    }
    for who in ["li", "new"] {
        add(room.get(who, "/keys").await);
        add(room.get(who, "/whoami").await);
    }
    for position in 1..=room.head() {
        add(room.get("admin", &format!("/events/{position}")).await);
    }
    texts
}

#[tokio::test]
async fn no_secret_is_in_any_answer_after_it_was_made() {
    let room = Room::new().await;
    room.hardware().await;
    room.ordered(lab(), "core", 4).await;
    let member = json!({ "handle": "new", "tenant": lab(), "roles": ["engineer"], "password": PASSWORD });
    let added = room.post("wang", "/members", member).await;
    assert_eq!(added.body.get("password"), None);
    let made = room.post("wang", "/members", json!({ "handle": "other", "tenant": lab(), "roles": [] })).await;
    let key = room.post("li", "/keys", json!({ "name": "ci" })).await;
    let token = room.post("admin", &format!("/pools/{}/join-tokens", pool_id()), json!({})).await;
    let job = json!({ "command": ["a"], "env": { "HUB_TOKEN": "hub-s3cret" } });
    assert_eq!(room.post("li", "/jobs", job).await.status, 201);

    let secrets =
        [PASSWORD.to_owned(), made.text("password"), key.text("key"), token.text("token"), "hub-s3cret".into()];
    let shown = everything(&room).await;
    assert!(shown.contains("HUB_TOKEN") && shown.contains("(hidden)"));
    for secret in &secrets {
        let half = secret.rsplit(['_', '.']).next().unwrap();
        assert!(!shown.contains(secret.as_str()) && !shown.contains(half), "{secret} is shown");
    }
    for mark in ["$argon2", "credential\":\"", &kit::auth::secret::hash(token.text("token").split('.').nth(1).unwrap())]
    {
        let known = shown.matches(mark).count() == shown.matches(&format!("{mark}(hidden)")).count();
        assert!(known, "{mark} is shown");
    }
    let log = room.kit.executor.log().read_all(0, usize::MAX).await.unwrap();
    let stored: String = log.iter().map(|event| format!("{event:?}")).collect();
    for secret in &secrets[..4] {
        assert!(!stored.contains(secret.as_str()), "{secret} is stored");
    }
}

#[tokio::test]
async fn no_fast_hash_of_a_password_is_stored_beside_an_event() {
    let room = Room::new().await;
    let member = json!({ "handle": "new", "tenant": lab(), "roles": [], "password": PASSWORD });
    assert_eq!(room.post("wang", "/members", member.clone()).await.status, 201);
    let change = json!({ "current": PASSWORD, "new": "a longer password" });
    assert_eq!(room.post("new", "/password", change.clone()).await.status, 200);
    let log = room.kit.executor.log().read_all(0, usize::MAX).await.unwrap();
    for (path, body) in [("/api/v1/members", member), ("/api/v1/password", change)] {
        let digest = Digest::of("POST", path, body.to_string().as_bytes());
        assert!(log.iter().all(|event| event.meta.digest != digest.as_str()), "{path}");
    }
}

#[tokio::test]
async fn a_secret_is_shown_once_and_a_repetition_says_so() {
    let room = Room::new().await;
    room.hardware().await;
    for (who, path, body, secret) in [
        ("li", "/keys".to_owned(), json!({ "name": "ci" }), "key"),
        ("admin", format!("/pools/{}/join-tokens", pool_id()), json!({}), "token"),
        ("wang", "/members".into(), json!({ "handle": "other", "tenant": lab(), "roles": [] }), "password"),
    ] {
        let first = room.post_as("k", who, &path, body.clone()).await;
        assert_eq!(first.status, 201, "{}", first.body);
        let facts = room.facts().await;
        let again = room.post_as("k", who, &path, body).await;
        assert_eq!(again.is(), (409, "request.shown_once"), "{path}");
        assert!(!again.body.to_string().contains(&first.text(secret)), "{path}");
        assert_eq!(room.facts().await, facts, "{path}");
    }
}

#[tokio::test]
async fn a_key_acts_as_its_member_until_it_is_revoked() {
    let room = Room::new().await;
    let made = room.post("li", "/keys", json!({ "name": "ci", "expires_at": "2026-11-11T00:00:00Z" })).await;
    let key = made.text("key");
    assert!(key.starts_with("kashi_"));
    let who = || axum::http::Request::get("/api/v1/whoami").header("Authorization", format!("Bearer {key}"));
    assert_eq!(room.send(who(), None).await.body["handle"], "li");
    let list = room.get("li", "/keys").await.body;
    assert_eq!((&list["items"][0]["name"], &list["items"][0]["revoked"]), (&json!("ci"), &json!(false)));
    let path = format!("/keys/{}", made.text("id"));
    assert_eq!(room.ask("li", "DELETE", &path, None).await.status, 200);
    assert_eq!(room.ask("li", "DELETE", &path, None).await.status, 200, "revoking again changes nothing");
    assert_eq!(room.send(who(), None).await.is(), (401, "auth.expired"));
    assert_eq!(room.get("li", "/keys").await.body["items"][0]["revoked"], true);
}
