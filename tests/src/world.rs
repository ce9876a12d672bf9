//! A platform in one process, as `kashi server` makes it, on a folder that can be started again; and people who speak
//! to it over HTTP.
//!
//! Owns: starting, stopping, a clock that is moved by hand, waiting for something to become so. Does not own: what a
//! story tells.

use chrono::{DateTime, TimeDelta, Utc};
use control::Fleets;
use domain::kernel::{Id, PoolId, TenantId};
use eventlog::{Executor, Log, SqlLog};
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Clock, Kit, Progress, SessionKey};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;
use store::Db;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How long a story waits for something to become so.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running platform.
pub struct World {
    pub kit: Kit,
    pub fleets: Fleets,
    pub url: String,
    pub client: reqwest::Client,
    folder: Arc<tempfile::TempDir>,
    roles: JoinSet<()>,
}

/// Somebody who is signed in.
#[derive(Clone)]
pub struct Person {
    url: String,
    client: reqwest::Client,
    token: String,
}

/// An answer: the status, the position of a write, and the body.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub position: i64,
    pub body: Value,
}

impl World {
    /// A new platform, at an instant.
    pub async fn new(at: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::start(folder, Clock::manual(at.parse::<DateTime<Utc>>().unwrap())).await
    }

    /// The same platform after everything in memory was lost.
    pub async fn restarted(self) -> Self {
        let (folder, clock) = (self.folder.clone(), self.kit.clock.clone());
        self.stopped().await;
        Self::start(folder, clock).await
    }

    /// Ends every task, wherever it is, and closes the databases.
    pub async fn stopped(self) {
        let Self { kit, mut roles, .. } = self;
        roles.shutdown().await;
        kit.read.close().await;
    }

    async fn start(folder: Arc<tempfile::TempDir>, clock: Clock) -> Self {
        static TLS: Once = Once::new();
        TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let kit = open(folder.path(), clock).await;
        let fleets = Fleets::caught_up(kit.executor.log()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new()
            .merge(tenant::router(kit.clone()))
            .merge(portal::router(kit.clone()))
            .merge(control::agents_router(kit.clone(), fleets.clone()));
        let mut roles = JoinSet::new();
        roles.spawn(async move { axum::serve(listener, kit::edge(routes)).await.unwrap() });
        let (own, fleet) = (kit.clone(), fleets.clone());
        roles.spawn(async move { panic!("the control service stopped: {:?}", control::run(own, fleet).await) });
        Self { kit, fleets, url, client: reqwest::Client::new(), folder, roles }
    }

    /// Moves the clock.
    pub fn pass(&self, by: TimeDelta) {
        self.kit.clock.advance(by);
    }

    /// The time.
    pub fn now(&self) -> DateTime<Utc> {
        self.kit.clock.now()
    }

    /// Waits until the flows have nothing left to do and the read models show all of it.
    pub async fn settled(&self) {
        let head = async {
            loop {
                let mut head = self.kit.executor.log().head();
                let seen = *head.borrow_and_update();
                self.kit.progress.flowed(seen).await;
                if *head.borrow() == seen && !head.has_changed().unwrap() {
                    self.fleets_at(seen).await;
                    return seen;
                }
            }
        };
        let head = tokio::time::timeout(PATIENCE, head).await.expect("the flows did not come to rest");
        while self.kit.progress.shown(head).await.is_err() {}
    }

    async fn fleets_at(&self, position: i64) {
        until("the fleet to be caught up", || async { self.fleets.position() >= position }).await;
    }

    /// The first operator, with the platform's own tenant and first pool made.
    pub async fn operator(&self) -> Person {
        let secret = "0".repeat(64);
        let platform = TenantId::PLATFORM;
        use domain::identity::{Tenant, tenant};
        use domain::pools::{Pool, pool};
        let create = tenant::Command::Create { tenant: platform, name: "platform".into(), parent: None };
        self.give::<Tenant>(platform, "create", create).await;
        let hash = kit::auth::secret::hash(&secret);
        self.give::<Tenant>(platform, "setup", tenant::Command::OpenSetup { hash }).await;
        let create = pool::Command::Create { pool: first_pool(), name: "default".into() };
        self.give::<Pool>(first_pool(), "pool", create).await;
        let body = json!({ "secret": secret, "handle": "admin", "password": "correct horse battery" });
        let reply = self.nobody().post("/api/v1/setup", body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{:?}", reply.body);
        self.nobody().with(reply.body["token"].as_str().unwrap())
    }

    async fn give<A: domain::kernel::Aggregate>(&self, key: impl std::fmt::Display, step: &str, command: A::Command) {
        let id = domain::kernel::CommandId::derived(TenantId::PLATFORM, step);
        let meta = domain::kernel::Meta {
            tenant: TenantId::PLATFORM,
            actor: "test".into(),
            command: id,
            digest: step.into(),
            correlation: id,
            causation: None,
            trace: None,
            occurred_at: self.now(),
        };
        self.kit.executor.execute::<A>(key, meta, command).await.unwrap();
    }

    /// Somebody who is not signed in.
    pub fn nobody(&self) -> Person {
        Person { url: self.url.clone(), client: self.client.clone(), token: String::new() }
    }

    /// A person who is signed in, on this platform after it was started again.
    pub fn again(&self, person: &Person) -> Person {
        self.nobody().with(&person.token)
    }
}

/// The pool that every platform starts with.
pub fn first_pool() -> PoolId {
    PoolId::derived(TenantId::PLATFORM, "default")
}

async fn open(folder: &Path, clock: Clock) -> Kit {
    let at = |name: &str| format!("sqlite:{}", folder.join(name).display());
    let log: Log = Arc::new(SqlLog::open(&at("log.db")).await.unwrap());
    Kit {
        executor: Executor::new(log),
        read: Db::open_relaxed(&at("read.db"), &projections::MIGRATIONS).await.unwrap(),
        clock,
        sessions: SessionKey::open(&folder.join("session.key")).unwrap(),
        runtime: Runtime::open(&at("runtime.db")).await.unwrap(),
        outputs: Outputs::open(&folder.join("objects")),
        progress: Progress::default(),
    }
}

/// Waits until a question is answered with yes.
pub async fn until<F: Future<Output = bool>>(what: &str, question: impl Fn() -> F) {
    let asked = async {
        while !question().await {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "waited in vain for {what}");
}

impl Person {
    /// With this token.
    pub fn with(&self, token: &str) -> Self {
        Self { token: token.into(), ..self.clone() }
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, None, None).await
    }

    /// Writes.
    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, Some(body), None).await
    }

    /// Writes over.
    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, Some(body), None).await
    }

    /// Writes under a key of one's own.
    pub async fn post_as(&self, key: &str, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, Some(body), Some(key)).await
    }

    /// Writes, and expects that it is done; gives what was made.
    pub async fn made(&self, path: &str, body: Value) -> Value {
        let reply = self.post(path, body).await;
        assert!(reply.status.is_success(), "{path}: {} {}", reply.status, reply.body);
        reply.body
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>, key: Option<&str>) -> Reply {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let position = response.headers().get("kashi-position").and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status();
        let bytes = response.bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Reply { status, position: position.unwrap_or_default(), body }
    }
}
