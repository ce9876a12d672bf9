//! A platform in one process, as `kashi server` makes it, on databases that can be started again, of either engine; and
//! people who speak to it over HTTP.
//!
//! Owns: starting, stopping, a clock that is moved by hand, waiting for something to become so. Does not own: what a
//! story tells.

use chrono::{DateTime, TimeDelta, Utc};
use control::{Fleets, SILENCE_MAX, Versions};
use domain::kernel::{Id, PoolId, TenantId};
use eventlog::{Executor, Log, SqlLog};
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Access, Clock, Keyring, Kit, Progress, SessionKey};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;
use store::{Engine, Home};
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
    pub home: Home,
    between: Between,
    folder: Arc<Files>,
    roles: JoinSet<()>,
}

/// The files of a platform. A folder that was made for it goes with it.
struct Files {
    path: PathBuf,
    _made: Option<tempfile::TempDir>,
}

impl Files {
    fn new() -> Arc<Self> {
        let made = tempfile::tempdir().unwrap();
        Arc::new(Self { path: made.path().to_owned(), _made: Some(made) })
    }
}

/// What stands between the platform and its log, at every start.
pub type Between = Arc<dyn Fn(Log) -> Log + Send + Sync>;

/// Somebody who is signed in.
#[derive(Clone)]
pub struct Person {
    url: String,
    client: reqwest::Client,
    token: String,
}

/// An answer: the status, the position of a write, whether what follows from it was done, and the body.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub position: i64,
    pub settled: Option<bool>,
    pub body: Value,
}

impl World {
    /// A new platform on this engine that reaches its log through something.
    pub async fn through(engine: Engine, between: Between, at: &str) -> Self {
        let folder = Files::new();
        let home = match engine {
            Engine::Sqlite => Home::folder(&folder.path),
            Engine::Postgres => Home::postgres(&store::testing::postgres_url().await).unwrap(),
        };
        Self::start(home, folder, Clock::manual(at.parse::<DateTime<Utc>>().unwrap()), between).await
    }

    /// The platform that a process left in a folder, on the machine's clock.
    pub async fn over(folder: &Path) -> Self {
        let files = Arc::new(Files { path: folder.to_owned(), _made: None });
        Self::start(Home::folder(folder), files, Clock::System, Arc::new(|log| log)).await
    }

    /// A new platform on this engine, at an instant.
    pub async fn new(engine: Engine, at: &str) -> Self {
        Self::through(engine, Arc::new(|log| log), at).await
    }

    /// The same platform after everything in memory was lost.
    pub async fn restarted(self) -> Self {
        let (home, folder, clock) = (self.home.clone(), self.folder.clone(), self.kit.clock.clone());
        let between = self.between.clone();
        self.stopped().await;
        Self::start(home, folder, clock, between).await
    }

    /// Another server of the same platform, as another process would be: it shares the databases, the folder and the
    /// clock, and nothing in memory. On PostgreSQL only.
    pub async fn beside(&self) -> Self {
        assert_eq!(self.home.engine(), Engine::Postgres, "SQLite files have one process");
        Self::start(self.home.clone(), self.folder.clone(), self.kit.clock.clone(), self.between.clone()).await
    }

    /// Ends every task, wherever it is, and closes the databases.
    pub async fn stopped(self) {
        let Self { kit, mut roles, .. } = self;
        roles.shutdown().await;
        kit.read.close().await;
        kit.keys.close().await;
    }

    async fn start(home: Home, folder: Arc<Files>, clock: Clock, between: Between) -> Self {
        with_tls();
        let (kit, versions) = open(home.clone(), &folder.path, clock, &between).await;
        let fleets = Fleets::caught_up(kit.executor.log()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new()
            .merge(tenant::router(kit.clone()))
            .merge(portal::router(kit.clone()))
            .merge(control::agents_router(kit.clone(), fleets.clone()));
        let mut roles = JoinSet::new();
        let own = kit.clone();
        roles.spawn(async move { versions.run(&own).await });
        roles.spawn(async move { axum::serve(listener, kit::edge(routes)).await.unwrap() });
        let (own, fleet) = (kit.clone(), fleets.clone());
        let served = async move { control::run(own, fleet, SILENCE_MAX).await };
        roles.spawn(async move { panic!("the control service stopped: {:?}", served.await) });
        Self { kit, fleets, url, client: reqwest::Client::new(), home, between, folder, roles }
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Stops where a part of the platform has ended by itself.
    pub fn is_up(&mut self) {
        if let Some(ended) = self.roles.try_join_next() {
            panic!("a part of the platform ended: {ended:?}");
        }
    }

    /// Moves the clock.
    pub fn pass(&self, by: TimeDelta) {
        self.kit.clock.advance(by);
    }

    /// The time.
    pub fn now(&self) -> DateTime<Utc> {
        self.kit.clock.now()
    }

    /// Waits until the flows have nothing left to do and the read models show all of it, whoever wrote it.
    pub async fn settled(&self) {
        let rest = async {
            let mut seen = *self.kit.executor.log().head().borrow();
            loop {
                self.kit.progress.flowed(seen).await;
                let head = self.head(seen).await;
                if head == seen {
                    return seen;
                }
                seen = head;
            }
        };
        let head = tokio::time::timeout(PATIENCE, rest).await.expect("the flows did not come to rest");
        self.fleets_at(head).await;
        while self.kit.progress.shown(head).await.is_err() {}
    }

    /// The log's last position, also where another server wrote it.
    async fn head(&self, mut known: i64) -> i64 {
        while let Some(last) = self.kit.executor.log().read_all(known, 500).await.unwrap().last() {
            known = last.position;
        }
        known
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
        let (name, kind) = ("platform".into(), tenant::Level::Tenant);
        let above = domain::kernel::Ancestors::NONE;
        let create = tenant::Command::Create { tenant: platform, name, parent: None, kind, above };
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

/// Without it no HTTP client can be made.
pub fn with_tls() {
    static TLS: Once = Once::new();
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// The pool that every platform starts with.
pub fn first_pool() -> PoolId {
    PoolId::derived(TenantId::PLATFORM, "default")
}

async fn open(home: Home, folder: &Path, clock: Clock, between: &Between) -> (Kit, Versions) {
    let log = between(Arc::new(SqlLog::open(&home.url("log")).await.unwrap()));
    let runtime = Runtime::open(&home.url("runtime")).await.unwrap();
    let keys = Keyring::open(&home.url("keys"), &folder.join("keys.master")).await.unwrap();
    let (read, versions) = Versions::open(home, &runtime).await.unwrap();
    let kit = Kit {
        keys,
        access: Access::new(log.clone(), clock.clone()),
        executor: Executor::new(log),
        read,
        clock,
        sessions: SessionKey::open(&folder.join("session.key")).unwrap(),
        runtime,
        outputs: Outputs::open(&folder.join("objects")),
        progress: Progress::default(),
    };
    (kit, versions)
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
    /// Somebody who is not signed in, at this address.
    pub fn at(url: &str) -> Self {
        with_tls();
        Self { url: url.into(), client: reqwest::Client::new(), token: String::new() }
    }

    /// The same person at another address.
    pub fn moved(&self, url: &str) -> Self {
        Self { url: url.into(), ..self.clone() }
    }

    /// With this token.
    pub fn with(&self, token: &str) -> Self {
        Self { token: token.into(), ..self.clone() }
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, None, None).await
    }

    /// Reads what shows a write that was made before, on whichever server.
    pub async fn get_from(&self, position: i64, path: &str) -> Reply {
        let request = self.request(Method::GET, path).header("Kashi-Min-Position", position);
        Self::answered(request).await.unwrap()
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

    /// Sends, whether or not there is an answer.
    pub async fn attempt(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        key: Option<&str>,
    ) -> Result<Reply, reqwest::Error> {
        let mut request = self.request(method, path);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        Self::answered(request).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>, key: Option<&str>) -> Reply {
        self.attempt(method, path, body, key).await.unwrap()
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        if self.token.is_empty() { request } else { request.bearer_auth(&self.token) }
    }

    async fn answered(request: reqwest::RequestBuilder) -> Result<Reply, reqwest::Error> {
        let response = request.send().await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let position = header("kashi-position").and_then(|text| text.parse().ok());
        let settled = header("kashi-settled").map(|text| text == "true");
        let status = response.status();
        let bytes = response.bytes().await?;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Ok(Reply { status, position: position.unwrap_or_default(), settled, body })
    }
}
