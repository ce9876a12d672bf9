//! Profiles: sealed in the log, shown to who may, found by e-mail address, and gone when they are erased.

use crate::room::{Answer, Room, lab};
use domain::identity::member_of;
use serde_json::{Value, json};

const NAME: &str = "张伟明";
const EMAIL: &str = "Weiming.Zhang@example.org";
const PHONE: &str = "+86 138-1234-5678";

fn profile() -> Value {
    json!({ "name": NAME, "email": EMAIL, "phone": PHONE })
}

fn of(handle: &str) -> String {
    format!("/members/{}/profile", member_of(handle))
}

async fn set(room: &Room, who: &str, whose: &str) -> Answer {
    room.ask(who, "PUT", &of(whose), Some(profile())).await
}

async fn found(room: &Room, who: &str, email: &str) -> Vec<Value> {
    let answer = room.get(who, &format!("/members?email={email}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().iter().map(|member| member["handle"].clone()).collect()
}

#[tokio::test]
async fn a_profile_is_of_its_member_and_of_who_manages_members() {
    let room = Room::new().await;
    assert_eq!(room.get("li", &of("li")).await.is(), (404, "profile.not_found"));
    assert_eq!(set(&room, "li", "li").await.status, 200);
    for who in ["li", "wang", "admin"] {
        let shown = room.get(who, &of("li")).await.body;
        assert_eq!((&shown["name"], &shown["email"]), (&json!(NAME), &json!(EMAIL)), "{who}");
        assert_eq!((&shown["phone"], &shown["erased_at"]), (&json!("+8613812345678"), &Value::Null), "{who}");
    }
    assert_eq!(set(&room, "wang", "fin").await.status, 200);
    for (who, refusal) in [("fin", (403, "auth.forbidden")), ("eve", (403, "auth.forbidden"))] {
        assert_eq!(room.get(who, &of("li")).await.is(), refusal, "{who}");
        assert_eq!(set(&room, who, "li").await.is(), refusal, "{who}");
    }
    for (method, body) in [("GET", None), ("PUT", Some(profile()))] {
        assert_eq!(room.ask("boss", method, &of("li"), body).await.is(), (404, "member.not_found"));
    }
    let erase = format!("/members/{}/erase", member_of("li"));
    assert_eq!(room.post("boss", &erase, json!({})).await.is(), (404, "member.not_found"));
    assert_eq!(room.post("li", &erase, json!({})).await.is(), (403, "auth.forbidden"));
}

#[tokio::test]
async fn a_wrong_field_is_pointed_at_and_not_repeated() {
    let room = Room::new().await;
    for (field, value) in [("name", " x"), ("email", "no-address"), ("phone", "138 no")] {
        let answer = room.ask("li", "PUT", &of("li"), Some(json!({ field: value }))).await;
        assert_eq!(answer.is(), (422, "member.bad_profile"));
        assert_eq!(answer.body["errors"][0]["pointer"], format!("/{field}"));
        assert!(!answer.body.to_string().contains(value), "{}", answer.body);
    }
}

#[tokio::test]
async fn is_found_by_the_whole_address_only_and_where_one_may_look() {
    let room = Room::new().await;
    set(&room, "li", "li").await;
    for email in [EMAIL, "weiming.zhang@EXAMPLE.org", "%20weiming.zhang@example.org"] {
        assert_eq!(found(&room, "wang", email).await, ["li"], "{email}");
    }
    assert_eq!(found(&room, "admin", EMAIL).await, ["li"]);
    for email in ["weiming.zhang", "zhang@example.org", ""] {
        assert!(found(&room, "wang", email).await.is_empty(), "{email}");
    }
    assert!(found(&room, "boss", EMAIL).await.is_empty());
}

#[tokio::test]
async fn after_an_erasure_nothing_is_shown_or_found_and_a_rebuild_shows_the_same() {
    let room = Room::new().await;
    set(&room, "li", "li").await;
    let erase = format!("/members/{}/erase", member_of("li"));
    for _ in 0..2 {
        assert_eq!(room.post("wang", &erase, json!({})).await.status, 200);
    }
    let shown = room.get("li", &of("li")).await.body;
    assert_eq!((&shown["name"], &shown["email"], &shown["phone"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(shown["erased_at"], "2026-11-10T01:00:00Z");
    assert!(found(&room, "wang", EMAIL).await.is_empty());
    assert_eq!(room.again("member_profiles").await, room.digest("member_profiles").await);
    // What is set after that is sealed under the next key.
    assert_eq!(set(&room, "li", "li").await.status, 200);
    assert_eq!(room.get("li", &of("li")).await.body["name"], NAME);
    assert_eq!(room.again("member_profiles").await, room.digest("member_profiles").await);
}

#[tokio::test]
async fn the_same_request_again_is_done_once_and_another_under_its_key_is_refused() {
    let room = Room::new().await;
    let sent =
        async |body: Value| room.ask_with("li", ("PUT", &of("li")), Some(body), &[("Idempotency-Key", "k")]).await;
    assert_eq!(sent(profile()).await.status, 200);
    let facts = room.facts().await;
    assert_eq!(sent(profile()).await.status, 200);
    assert_eq!(room.facts().await, facts);
    assert_eq!(sent(json!({ "name": "other" })).await.is(), (422, "request.key_reused"));
}

#[tokio::test]
async fn the_log_holds_nothing_of_it_in_clear() {
    let room = Room::new().await;
    set(&room, "li", "li").await;
    let log = room.kit.executor.log().read_all(0, usize::MAX).await.unwrap();
    let stored: String = log.iter().map(|event| format!("{event:?}").to_lowercase()).collect();
    for datum in [NAME, EMAIL, "13812345678", PHONE] {
        assert!(!stored.contains(&datum.to_lowercase()), "{datum}");
    }
    let last = log.iter().rfind(|event| event.kind == "member.profile_set").unwrap();
    let shown = room.get("admin", &format!("/events/{}", last.position)).await.body;
    assert_eq!(shown["payload"]["profile"], "(hidden)");
    assert_eq!(lab(), last.meta.tenant);
}
