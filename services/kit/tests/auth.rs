//! Who asks and what they may do, through a router over a log in memory: what ends a session or a key ends it at the
//! next request.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use axum::{
    Router,
    body::Body,
    http::{Request, header},
    routing::get,
};
use chrono::{DateTime, TimeDelta};
use domain::{
    identity::{ApiKey, Member, Role, api_key, member, member_of},
    kernel::{Aggregate, CommandId, Id, KeyId, Meta, TenantId},
};
use eventlog::{Executor, MemoryLog};
use http_body_util::BodyExt;
use kit::{
    Access, Actor, Can, Clock, Fresh, Keyring, Kit, Progress, SessionKey,
    auth::key::KeyText,
    edge,
    objects::Outputs,
    permission::{OrderRead, PricePublish},
    runtime::Runtime,
};
use serde_json::Value;
use std::sync::Arc;
use store::testing::{Scratch, sqlite};
use tower::ServiceExt;
use uuid::Uuid;

struct World {
    kit: Kit,
    _scratch: Scratch,
}

fn acme() -> TenantId {
    TenantId::derived(TenantId::PLATFORM, "acme")
}

impl World {
    /// A platform with the engineer `li` of one tenant, whose password was set once.
    async fn new() -> Self {
        let (read, scratch) = sqlite(&eventlog::MIGRATIONS).await;
        let (executor, clock) = (Executor::new(Arc::new(MemoryLog::default())), Clock::manual(DateTime::UNIX_EPOCH));
        let access = Access::new(executor.log().clone(), clock.clone());
        let kit = Kit {
            executor,
            read,
            clock,
            sessions: SessionKey::new(&[1; 32]).unwrap(),
            keys: Keyring::open(&scratch.url("keys"), &scratch.path().join("keys.master")).await.unwrap(),
            access,
            runtime: Runtime::open(&scratch.url("runtime")).await.unwrap(),
            outputs: Outputs::open(scratch.path()),
            progress: Progress::default(),
        };
        let world = Self { kit, _scratch: scratch };
        let (tenant, handle, roles) = (acme(), "li".into(), [Role::Engineer].into());
        world.member(member::Command::Add { tenant, handle, roles, password: Some("$".into()) }).await;
        world
    }

    async fn run<A: Aggregate>(&self, key: impl std::fmt::Display, command: A::Command) {
        let command_id = CommandId(Uuid::now_v7());
        let meta = Meta {
            tenant: acme(),
            actor: "system".into(),
            command: command_id,
            digest: String::new(),
            correlation: command_id,
            causation: None,
            trace: None,
            occurred_at: self.kit.clock.now(),
        };
        self.kit.executor.execute::<A>(key, meta, command).await.unwrap();
    }

    async fn member(&self, command: member::Command) {
        self.run::<Member>(member_of("li"), command).await;
    }

    /// A session of `li` that begins now.
    async fn session(&self) -> String {
        let state = self.kit.executor.load::<Member>(member_of("li")).await.unwrap().state;
        let version = state.account().unwrap().session_version;
        self.kit.sessions.issue(member_of("li"), version, self.kit.clock.now()).unwrap().token
    }

    /// A key of `li` that is valid for an hour.
    async fn key(&self) -> KeyText {
        let key = KeyText::generate(KeyId(Uuid::now_v7()));
        let expires_at = Some(self.kit.clock.now() + TimeDelta::hours(1));
        let (tenant, member, name, hash) = (acme(), member_of("li"), "ci".into(), key.hash());
        self.run::<ApiKey>(key.id(), api_key::Command::Issue { tenant, member, name, hash, expires_at }).await;
        key
    }

    /// Status and, of a problem, the code.
    async fn get(&self, path: &str, authorization: &[&str]) -> (u16, String) {
        let routes = Router::new()
            .route("/orders", get(|can: Can<OrderRead>| async move { can.actor().name() }))
            .route("/prices", get(|can: Can<PricePublish>| async move { can.actor().name() }))
            .route("/whoami", get(|actor: Actor| async move { actor.handle }))
            .route("/public", get(|| async { "all" }))
            .route("/fresh", get(|_: Fresh| async { "seen" }));
        let mut request = Request::get(path).header(kit::MIN_POSITION, "3");
        for value in authorization {
            request = request.header(header::AUTHORIZATION, *value);
        }
        let app = edge(routes).with_state(self.kit.clone());
        let response = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let challenge = response.headers().get(header::WWW_AUTHENTICATE).is_some();
        assert_eq!(challenge, status == 401);
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        let text = String::from_utf8(body).unwrap();
        let problem =
            serde_json::from_str::<Value>(&text).ok().and_then(|json| Some(json["code"].as_str()?.to_owned()));
        (status, problem.unwrap_or(text))
    }

    async fn whoami(&self, token: &str) -> (u16, String) {
        self.get("/whoami", &[&format!("Bearer {token}")]).await
    }
}

fn is(status: u16, text: &str) -> (u16, String) {
    (status, text.into())
}

#[tokio::test]
async fn a_session_lasts_until_it_is_over() {
    let world = World::new().await;
    let token = world.session().await;
    assert_eq!(world.whoami(&token).await, is(200, "li"));
    world.kit.clock.advance(TimeDelta::hours(12) - TimeDelta::seconds(1));
    assert_eq!(world.whoami(&token).await, is(200, "li"));
    world.kit.clock.advance(TimeDelta::seconds(1));
    assert_eq!(world.whoami(&token).await, is(401, "auth.expired"));
}

#[tokio::test]
async fn a_new_password_ends_older_sessions_at_once() {
    let world = World::new().await;
    let old = world.session().await;
    world.member(member::Command::SetPassword { password: "$2".into() }).await;
    assert_eq!(world.whoami(&old).await, is(401, "auth.expired"));
    assert_eq!(world.whoami(&world.session().await).await, is(200, "li"));
}

#[tokio::test]
async fn a_lock_ends_sessions_and_keys_and_an_unlock_revives_the_keys_only() {
    let world = World::new().await;
    let (session, key) = (world.session().await, world.key().await.to_string());
    let by = member_of("root");
    world.member(member::Command::Lock { by, reason: "left".into() }).await;
    assert_eq!(world.whoami(&session).await, is(401, "auth.invalid"));
    assert_eq!(world.whoami(&key).await, is(401, "auth.invalid"));
    world.member(member::Command::Unlock { by }).await;
    assert_eq!(world.whoami(&session).await, is(401, "auth.expired"));
    assert_eq!(world.whoami(&key).await, is(200, "li"));
}

#[tokio::test]
async fn a_key_acts_as_its_member_until_it_is_over_or_revoked() {
    let world = World::new().await;
    let key = world.key().await;
    assert_eq!(world.get("/orders", &[&format!("bearer {key}")]).await, is(200, &key.id().to_string()));
    let revoked = world.key().await;
    world.run::<ApiKey>(revoked.id(), api_key::Command::Revoke { by: member_of("li") }).await;
    assert_eq!(world.whoami(&revoked.to_string()).await, is(401, "auth.expired"));
    world.kit.clock.advance(TimeDelta::hours(1));
    assert_eq!(world.whoami(&key.to_string()).await, is(401, "auth.expired"));
}

#[tokio::test]
async fn a_wrong_secret_is_told_nothing_about_the_key() {
    let world = World::new().await;
    let wrong = KeyText::generate(world.key().await.id());
    let unknown = KeyText::generate(KeyId(Uuid::now_v7()));
    assert_eq!(world.whoami(&wrong.to_string()).await, is(401, "auth.invalid"));
    assert_eq!(world.whoami(&unknown.to_string()).await, is(401, "auth.invalid"));
}

#[tokio::test]
async fn nobody_and_nonsense_are_refused_where_an_actor_is_needed() {
    let world = World::new().await;
    assert_eq!(world.get("/public", &[]).await, is(200, "all"));
    assert_eq!(world.get("/orders", &[]).await, is(401, "auth.missing"));
    let token = format!("Bearer {}", world.session().await);
    for bad in [&["Bearer"][..], &["Bearer "], &["Bearer kashi_x"], &["Basic bGk6eA=="], &[""], &[&token, &token]] {
        assert_eq!(world.get("/orders", bad).await, is(401, "auth.invalid"), "{bad:?}");
    }
    let stranger = world.kit.sessions.issue(member_of("nobody"), 0, world.kit.clock.now()).unwrap().token;
    assert_eq!(world.whoami(&stranger).await, is(401, "auth.invalid"));
}

#[tokio::test]
async fn a_permission_is_needed_where_a_handler_names_it() {
    let world = World::new().await;
    let token = format!("Bearer {}", world.session().await);
    assert_eq!(world.get("/orders", &[&token]).await, is(200, &member_of("li").to_string()));
    assert_eq!(world.get("/prices", &[&token]).await, is(403, "auth.forbidden"));
}

#[tokio::test]
async fn a_read_waits_until_the_read_models_show_what_it_asks_for() {
    let world = World::new().await;
    let (read, ()) = tokio::join!(world.get("/fresh", &[]), async { world.kit.progress.read_models_reached(3) });
    assert_eq!(read, is(200, "seen"));
}
