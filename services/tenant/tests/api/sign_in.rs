//! Before anybody exists and at the door: health, the one-time setup, sessions, who one is, passwords, members, locks.

use crate::room::{Answer, Room, lab};
use domain::Event;
use domain::identity::{Member, Role, Tenant, member, member_of, tenant};
use domain::kernel::TenantId;
use kit::Stop;
use kit::auth::secret;
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";

/// A platform whose setup is open, and its secret.
async fn unopened() -> (Room, String) {
    let room = Room::empty().await;
    let secret = secret::generate();
    let open = tenant::Command::OpenSetup { hash: secret::hash(&secret) };
    room.give::<Tenant>(TenantId::PLATFORM, TenantId::PLATFORM, open).await;
    room.show().await;
    (room, secret)
}

async fn set_up(room: &Room, secret: &str, handle: &str, password: &str) -> Answer {
    let body = json!({ "secret": secret, "handle": handle, "password": password });
    room.nobody("POST", "/api/v1/setup", Some(body)).await
}

async fn sign_in(room: &Room, handle: &str, password: &str) -> Answer {
    room.nobody("POST", "/api/v1/login", Some(json!({ "handle": handle, "password": password }))).await
}

/// Does what the flow does after a setup, once.
async fn add_first_operator(room: &Room) {
    let mut head = room.kit.executor.log().head();
    loop {
        head.borrow_and_update();
        for stored in room.kit.executor.log().read_all(0, usize::MAX).await.unwrap() {
            if let Ok(Event::Tenant(tenant::Event::SetupUsed { handle, password, member, .. })) = Event::read(&stored) {
                let (tenant, roles, password) = (TenantId::PLATFORM, [Role::Operator].into(), Some(password));
                let add = member::Command::Add { tenant, handle, roles, password };
                room.give::<Member>(tenant, member, add).await;
                room.kit.progress.flows_reached(stored.position);
                return;
            }
        }
        head.changed().await.unwrap();
    }
}

#[tokio::test]
async fn health_needs_nobody() {
    let room = Room::empty().await;
    room.show().await;
    let health = room.nobody("GET", "/api/v1/health", None).await;
    let version = env!("CARGO_PKG_VERSION");
    let well = json!({
        "status": "ok", "version": version, "read_models_at": 1, "flows_at": 0, "log_at": 1, "stopped": [],
    });
    assert_eq!(health.body, well);
    room.kit.progress.stopped("orders", Stop { position: 2, cause: "a defect".into() });
    let health = room.nobody("GET", "/api/v1/health", None).await;
    assert_eq!((&health.body["status"], &health.body["stopped"]), (&json!("degraded"), &json!(["orders"])));
}

#[tokio::test]
async fn the_first_operator_signs_up_once() {
    let (room, secret) = unopened().await;
    let wrong = set_up(&room, &secret::generate(), "admin", PASSWORD).await;
    assert_eq!(wrong.is(), (403, "tenant.setup_wrong_secret"));
    assert_eq!(set_up(&room, &secret, "Admin!", PASSWORD).await.is(), (422, "tenant.bad_handle"));
    assert_eq!(set_up(&room, &secret, "admin", "short").await.is(), (422, "auth.password_too_short"));
    let (made, ()) = tokio::join!(set_up(&room, &secret, "admin", PASSWORD), add_first_operator(&room));
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!((made.text("handle"), made.text("member")), ("admin".into(), member_of("admin").to_string()));
    assert_eq!(made.text("expires_at"), "2026-11-10T13:00:00Z");
    let bearer = format!("Bearer {}", made.text("token"));
    let request = axum::http::Request::get("/api/v1/whoami").header("Authorization", bearer);
    let me = room.send(request, None).await;
    assert_eq!((me.status, &me.body["roles"]), (200, &json!(["operator"])));

    let again = set_up(&room, &secret, "admin", PASSWORD).await;
    assert_eq!(again.status, 201, "an answer that was lost is given again: {}", again.body);
    let thief = set_up(&room, &secret, "admin", "another password").await;
    assert_eq!(thief.is(), (401, "auth.bad_credentials"), "a used secret is worth nothing");
    assert_eq!(set_up(&room, &secret, "other", PASSWORD).await.is(), (409, "tenant.setup_closed"));
}

#[tokio::test]
async fn a_platform_without_setup_has_none() {
    let room = Room::empty().await;
    assert_eq!(set_up(&room, &secret::generate(), "admin", PASSWORD).await.is(), (409, "tenant.setup_closed"));
}

/// Adds a member with a password.
async fn with_password(room: &Room, handle: &str) -> Answer {
    let body = json!({ "handle": handle, "tenant": lab(), "roles": ["engineer"], "password": PASSWORD });
    room.post("wang", "/members", body).await
}

#[tokio::test]
async fn a_wrong_password_an_unknown_handle_and_a_lock_are_answered_alike() {
    let room = Room::new().await;
    assert_eq!(with_password(&room, "new").await.status, 201);
    let good = sign_in(&room, "new", PASSWORD).await;
    assert_eq!((good.status, good.text("tenant")), (200, lab().to_string()));
    assert_eq!((good.text("handle"), good.text("member")), ("new".into(), member_of("new").to_string()));
    let strip = |mut body: Value| {
        body["request_id"] = json!(null);
        body
    };
    let wrong = sign_in(&room, "new", "wrong horse battery").await;
    assert_eq!(wrong.is(), (401, "auth.bad_credentials"));
    let lock = json!({ "reason": "left" });
    assert_eq!(room.post("wang", &format!("/members/{}/lock", member_of("new")), lock).await.status, 200);
    for (handle, password) in
        [("new", PASSWORD), ("nobody", PASSWORD), ("li", PASSWORD), ("", ""), ("x", &"x".repeat(2000))]
    {
        assert_eq!(strip(sign_in(&room, handle, password).await.body), strip(wrong.body.clone()), "{handle}");
    }
    let request =
        || axum::http::Request::get("/api/v1/whoami").header("Authorization", format!("Bearer {}", good.text("token")));
    assert_eq!(room.send(request(), None).await.is(), (401, "auth.invalid"));
    assert_eq!(room.ask("wang", "POST", &format!("/members/{}/unlock", member_of("new")), None).await.status, 200);
    assert_eq!(room.send(request(), None).await.is(), (401, "auth.expired"));
    assert_eq!(sign_in(&room, "new", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn a_bad_sign_in_is_a_problem_that_repeats_no_password() {
    let room = Room::new().await;
    for body in [json!({}), json!({ "handle": "li" }), json!({ "handle": 1, "password": PASSWORD }), json!([])] {
        let answer = room.nobody("POST", "/api/v1/login", Some(body.clone())).await;
        assert_eq!(answer.is(), (422, "request.bad_field"), "{body}");
        assert!(!answer.body.to_string().contains(PASSWORD), "{}", answer.body);
    }
}

#[tokio::test]
async fn everybody_may_ask_who_they_are() {
    let room = Room::new().await;
    let me = room.get("li", "/whoami").await.body;
    assert_eq!((&me["handle"], &me["tenant_name"], &me["roles"]), (&json!("li"), &json!("lab"), &json!(["engineer"])));
    let permissions = me["permissions"].as_array().unwrap();
    assert!(permissions.contains(&json!("job:submit")) && !permissions.contains(&json!("order:approve")), "{me}");
    assert_eq!(room.get("bare", "/whoami").await.body["permissions"], json!([]));
    assert_eq!(room.nobody("GET", "/api/v1/whoami", None).await.is(), (401, "auth.missing"));
}

#[tokio::test]
async fn a_password_is_changed_by_who_knows_it() {
    let room = Room::new().await;
    with_password(&room, "new").await;
    let change = |current: &str, new: &str| json!({ "current": current, "new": new });
    let wrong = room.post("new", "/password", change("wrong horse battery", "a longer password")).await;
    assert_eq!(wrong.is(), (403, "auth.wrong_password"));
    assert_eq!(room.post("new", "/password", change(PASSWORD, "short")).await.is(), (422, "auth.password_too_short"));
    assert_eq!(room.post("li", "/password", change(PASSWORD, "a longer password")).await.is().0, 403);
    assert_eq!(room.post("new", "/password", change(PASSWORD, "a longer password")).await.status, 200);
    assert_eq!(sign_in(&room, "new", PASSWORD).await.is(), (401, "auth.bad_credentials"));
    assert_eq!(sign_in(&room, "new", "a longer password").await.status, 200);
}

#[tokio::test]
async fn a_member_is_added_once_however_often_it_is_sent() {
    let room = Room::new().await;
    let body =
        |password: &str| json!({ "handle": "new", "tenant": lab(), "roles": ["engineer"], "password": password });
    let first = room.post_as("k", "wang", "/members", body(PASSWORD)).await;
    let again = room.post_as("k", "wang", "/members", body(PASSWORD)).await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.header("kashi-position"), again.header("kashi-position"));
    assert_eq!(room.post_as("k", "wang", "/members", body("another password")).await.is(), (422, "request.key_reused"));
    assert_eq!(room.post_as("l", "wang", "/members", body(PASSWORD)).await.is(), (409, "member.already_exists"));
}

#[tokio::test]
async fn a_role_of_the_platform_is_given_by_the_platform_only() {
    let room = Room::new().await;
    let add = json!({ "handle": "chief", "tenant": TenantId::PLATFORM, "roles": ["tenant_admin"] });
    let chief = room.post("admin", "/members", add).await;
    assert_eq!(chief.status, 201, "{}", chief.body);
    let grab = json!({ "handle": "grab", "tenant": TenantId::PLATFORM, "roles": ["operator"] });
    assert_eq!(room.post("chief", "/members", grab.clone()).await.is(), (403, "member.role_not_yours"));
    assert_eq!(room.post("admin", "/members", grab).await.status, 201);
    let elsewhere = json!({ "handle": "far", "tenant": "ten_0000000000000000000000000Z", "roles": [] });
    assert_eq!(room.post("admin", "/members", elsewhere).await.is(), (404, "tenant.not_found"));
}

#[tokio::test]
async fn a_lost_password_is_replaced_by_who_manages_members() {
    let room = Room::new().await;
    with_password(&room, "new").await;
    let path = format!("/members/{}/password", member_of("new"));
    let reset = |password: &str| json!({ "password": password });
    assert_eq!(room.post("li", &path, reset("a longer password")).await.is(), (403, "auth.forbidden"));
    assert_eq!(room.post("wang", &path, reset("short")).await.is(), (422, "auth.password_too_short"));
    let first = room.post_as("k", "wang", &path, reset("a longer password")).await;
    let again = room.post_as("k", "wang", &path, reset("a longer password")).await;
    assert_eq!((first.status, &first.body), (201, &again.body));
    assert_eq!(room.post_as("k", "wang", &path, reset("another password")).await.is(), (422, "request.key_reused"));
    assert_eq!(sign_in(&room, "new", PASSWORD).await.is(), (401, "auth.bad_credentials"));
    assert_eq!(sign_in(&room, "new", "a longer password").await.status, 200);
    let made = room.post("wang", &path, json!({})).await;
    assert_eq!(sign_in(&room, "new", &made.text("password")).await.status, 200);
}

#[tokio::test]
async fn roles_are_replaced_and_hold_at_once() {
    let room = Room::new().await;
    with_password(&room, "new").await;
    let path = format!("/members/{}/roles", member_of("new"));
    let set = |roles: &[&str]| Some(json!({ "roles": roles }));
    assert_eq!(room.ask("li", "PUT", &path, set(&["tenant_admin"])).await.is(), (403, "auth.forbidden"));
    assert_eq!(room.ask("wang", "PUT", &path, set(&["operator"])).await.is(), (403, "member.role_not_yours"));
    assert_eq!(room.ask("wang", "PUT", &path, set(&["root"])).await.is(), (422, "request.bad_field"));
    assert_eq!(room.ask("wang", "PUT", &path, set(&["finance"])).await.status, 200);
    assert_eq!(room.get("new", "/whoami").await.body["roles"], json!(["finance"]));
    let own = format!("/members/{}/lock", member_of("wang"));
    assert_eq!(room.post("wang", &own, json!({ "reason": "left" })).await.is(), (409, "member.lock_self"));
}
