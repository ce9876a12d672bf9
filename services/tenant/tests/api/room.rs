//! A platform without flows: a customer `lab` and its rival, their people, a price book, and whatever a test gives.
//!
//! Owns: giving commands, folding the read models after each request, asking as somebody. Does not own: what follows
//! from an event, which the stories of the whole platform show.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use chrono::{DateTime, Utc};
use domain::Event;
use domain::billing::{Wallet, wallet};
use domain::catalog::{Contract, PriceBook, Product, contract, price_book, product};
use domain::flows::{quota_key, wallet_key};
use domain::identity::{Member, Role, Tenant, member, member_of, tenant};
use domain::kernel::{
    Aggregate, Ancestors, CommandId, Currency, CustomerId, EventId, Id, LeaseId, Meta, NodeId, OrderId, PoolId,
    PriceBookId, Recorded, TenantId, Zone,
};
use domain::pools::{Inventory, Node, Pool, node, pool};
use domain::quota::{Allowance, allowance};
use eventlog::{Executor, MemoryLog};
use http_body_util::BodyExt;
use kit::access::{CATEGORY, Evidence};
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Access, Clock, Keyring, Kit, Progress, SessionKey};
use rust_decimal::Decimal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use store::testing::{Scratch, sqlite};
use tower::ServiceExt;

/// What cards are sold as, and what they are.
pub(crate) const SKU: &str = "card.a100";
pub(crate) const START: &str = "2026-11-10T01:00:00Z";

/// The platform.
pub(crate) struct Room {
    pub(crate) kit: Kit,
    app: Router,
    steps: AtomicU32,
    _scratch: Scratch,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    /// The body, or null where it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// The status, and the code where it is a problem.
    pub(crate) fn is(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }

    /// A field of the body that is text.
    pub(crate) fn text(&self, field: &str) -> String {
        self.body[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {}", self.body)).to_owned()
    }

    /// The text of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub(crate) fn lab() -> TenantId {
    Id::derived(TenantId::PLATFORM, "lab")
}

pub(crate) fn rival() -> TenantId {
    Id::derived(TenantId::PLATFORM, "rival")
}

pub(crate) fn customer(tenant: TenantId) -> CustomerId {
    Id::derived(tenant, "customer")
}

pub(crate) fn book() -> PriceBookId {
    Id::derived(TenantId::PLATFORM, "book")
}

pub(crate) fn pool_id() -> PoolId {
    Id::derived(TenantId::PLATFORM, "pool")
}

pub(crate) fn node_id() -> NodeId {
    Id::derived(TenantId::PLATFORM, "node")
}

pub(crate) fn some_lease() -> LeaseId {
    Id::derived(TenantId::PLATFORM, "lease")
}

fn create(tenant: TenantId, name: &str, parent: Option<TenantId>) -> tenant::Command {
    let (kind, above) = (tenant::Level::Tenant, Ancestors::NONE);
    tenant::Command::Create { tenant, name: name.into(), parent, kind, above }
}

impl Room {
    /// A platform with nobody.
    pub(crate) async fn empty() -> Self {
        let (read, scratch) = sqlite(&projections::MIGRATIONS).await;
        let executor = Executor::new(Arc::new(MemoryLog::default()));
        let clock = Clock::manual(START.parse::<DateTime<Utc>>().unwrap());
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
        let app = kit::edge(::tenant::router(kit.clone()));
        let room = Self { kit, app, steps: AtomicU32::new(0), _scratch: scratch };
        let create = create(TenantId::PLATFORM, "platform", None);
        room.give::<Tenant>(TenantId::PLATFORM, TenantId::PLATFORM, create).await;
        room
    }

    /// `admin` (operator), `audit` (auditor) and `bare` (no role) of the platform; `li` (engineer), `wang` (tenant
    /// admin) and `fin` (finance) of the laboratory; `eve` (engineer) and `boss` (tenant admin) of its rival.
    pub(crate) async fn new() -> Self {
        let room = Self::empty().await;
        let open = price_book::Command::Open { name: "list".into(), currency: Currency::Cny };
        room.give::<PriceBook>(TenantId::PLATFORM, book(), open).await;
        for (sku, resource) in [(SKU, SKU), ("core", "core"), ("card.h100", "card.h100")] {
            let resource = resource.parse().unwrap();
            let offer = product::Command::Offer { sku: sku.into(), resource, name_zh: sku.into(), name_en: sku.into() };
            room.give::<Product>(TenantId::PLATFORM, product::product_of(sku), offer).await;
        }
        room.publish(&[(SKU, "80"), ("core", "0.35")]).await;
        for (tenant, name) in [(lab(), "lab"), (rival(), "rival")] {
            room.customer(tenant, name).await;
        }
        let platform = TenantId::PLATFORM;
        for (handle, tenant, roles) in [
            ("admin", platform, &[Role::Operator][..]),
            ("audit", platform, &[Role::Auditor]),
            ("bare", platform, &[]),
            ("li", lab(), &[Role::Engineer]),
            ("wang", lab(), &[Role::TenantAdmin]),
            ("fin", lab(), &[Role::Finance]),
            ("eve", rival(), &[Role::Engineer]),
            ("boss", rival(), &[Role::TenantAdmin]),
        ] {
            let roles = roles.iter().copied().collect();
            let add = member::Command::Add { tenant, handle: handle.into(), roles, password: None };
            room.give::<Member>(tenant, member_of(handle), add).await;
        }
        room.show().await;
        room
    }

    async fn customer(&self, tenant: TenantId, name: &str) {
        let create = create(tenant, name, Some(TenantId::PLATFORM));
        self.give::<Tenant>(tenant, tenant, create).await;
        let (customer, book, zone, currency) = (customer(tenant), book(), Zone::default(), Currency::Cny);
        let sign = contract::Command::Sign(contract::Terms { tenant, customer, book, zone, currency });
        self.give::<Contract>(tenant, contract::contract_of(tenant), sign).await;
        self.give::<Wallet>(tenant, wallet_key(customer), wallet::Command::Open { currency }).await;
    }

    /// A new version of the price book.
    pub(crate) async fn publish(&self, prices: &[(&str, &str)]) {
        let price = |(sku, price): &(&str, &str)| ((*sku).to_owned(), price.parse::<Decimal>().unwrap());
        let prices: BTreeMap<_, _> = prices.iter().map(price).collect();
        let now = self.kit.clock.now();
        let publish = price_book::Command::Publish { effective_at: now, prices, now };
        self.give::<PriceBook>(TenantId::PLATFORM, book(), publish).await;
    }

    /// Lets a tenant use so many units of a resource, as an order that became active does.
    pub(crate) async fn ordered(&self, tenant: TenantId, resource: &str, units: i64) {
        let resource = resource.parse().unwrap();
        let key = quota_key(tenant, &resource);
        let milli = units * 1000;
        let below = vec![];
        let set = allowance::Command::SetCeiling { root: tenant, below, resource, milli, by: member_of("admin") };
        self.give::<Allowance>(tenant, &key, set).await;
        let order: OrderId = Id::derived(tenant, &key);
        self.give::<Allowance>(tenant, &key, allowance::Command::HoldOrder { order, below: vec![], milli }).await;
    }

    /// A pool, and a node of it.
    pub(crate) async fn hardware(&self) {
        let platform = TenantId::PLATFORM;
        let create = pool::Command::Create { pool: pool_id(), name: "default".into() };
        self.give::<Pool>(platform, pool_id(), create).await;
        let inventory = Inventory { milli_cores: 1000, memory_mib: 1024, ..Inventory::default() };
        let credential = kit::auth::secret::hash("the credential");
        let register = node::Command::Register { pool: pool_id(), name: "n1".into(), credential, inventory };
        self.give::<Node>(platform, node_id(), register).await;
        self.show().await;
    }

    /// Gives a command, and says which events came of it.
    pub(crate) async fn give<A: Aggregate>(
        &self,
        tenant: TenantId,
        key: impl Display,
        command: A::Command,
    ) -> Vec<EventId> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let id = CommandId::derived(TenantId::PLATFORM, &format!("step {step}"));
        let meta = Meta {
            tenant,
            actor: "test".into(),
            command: id,
            digest: String::new(),
            correlation: id,
            causation: None,
            trace: None,
            occurred_at: self.kit.clock.now(),
        };
        let done = self.kit.executor.execute::<A>(key, meta, command).await.unwrap();
        done.recorded.into_iter().map(|stored| stored.event).collect()
    }

    /// The last position of the log.
    pub(crate) fn head(&self) -> i64 {
        *self.kit.executor.log().head().borrow()
    }

    /// How many events there are but evidence of access.
    pub(crate) async fn facts(&self) -> usize {
        let log = self.kit.executor.log().read_all(0, usize::MAX).await.unwrap();
        log.iter().filter(|stored| stored.stream.category() != CATEGORY).count()
    }

    /// The evidence of access: what, by whom, the operation and the code.
    pub(crate) async fn evidence(&self) -> Vec<(String, String, String, Option<String>)> {
        let log = self.kit.executor.log().read_category(CATEGORY, 0, usize::MAX).await.unwrap();
        let told = |stored: &Recorded| {
            let evidence: Evidence = serde_json::from_str(&stored.payload).unwrap();
            (stored.kind.clone(), stored.meta.actor.clone(), evidence.operation, evidence.code)
        };
        log.iter().map(told).collect()
    }

    /// Folds what the read models do not show yet.
    pub(crate) async fn show(&self) {
        let from = self.kit.progress.read_models();
        for stored in self.kit.executor.log().read_all(from, usize::MAX).await.unwrap() {
            let event = (stored.stream.category() != CATEGORY).then(|| Event::read(&stored).unwrap());
            let mut tx = self.kit.read.begin().await.unwrap();
            for (name, _) in projections::ALL {
                if let Some(event) = &event {
                    let open = self.kit.keys.opener();
                    projections::apply(name, &mut tx, &stored, event, &open).await.unwrap();
                }
                store::checkpoint(&mut tx, name, stored.position).await.unwrap();
            }
            tx.commit().await.unwrap();
            self.kit.progress.read_models_reached(stored.position);
        }
    }

    /// The rows of a table of the read models.
    pub(crate) async fn digest(&self, table: &str) -> Vec<String> {
        projections::digest(&self.kit.read, table).await.unwrap().1
    }

    /// The same rows, made again from the log.
    pub(crate) async fn again(&self, table: &str) -> Vec<String> {
        let (db, _scratch) = sqlite(&projections::MIGRATIONS).await;
        for stored in self.kit.executor.log().read_all(0, usize::MAX).await.unwrap() {
            let Ok(event) = Event::read(&stored) else { continue };
            let mut tx = db.begin().await.unwrap();
            for (name, _) in projections::ALL {
                projections::apply(name, &mut tx, &stored, &event, &self.kit.keys.opener()).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        projections::digest(&db, table).await.unwrap().1
    }

    /// The token of a session of a member.
    pub(crate) async fn token(&self, handle: &str) -> String {
        let member = self.kit.executor.load::<Member>(member_of(handle)).await.unwrap().state;
        let version = member.account().unwrap_or_else(|| panic!("no member {handle}")).session_version;
        self.kit.sessions.issue(member_of(handle), version, self.kit.clock.now()).unwrap().token
    }

    /// Asks without being anybody.
    pub(crate) async fn nobody(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.send(Request::builder().method(method).uri(path), body).await
    }

    /// Asks as a member.
    pub(crate) async fn ask(&self, who: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.ask_with(who, (method, path), body, &[]).await
    }

    /// Asks as a member, with headers.
    pub(crate) async fn ask_with(
        &self,
        who: &str,
        (method, path): (&str, &str),
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let bearer = format!("Bearer {}", self.token(who).await);
        let request =
            Request::builder().method(method).uri(format!("/api/v1{path}")).header(header::AUTHORIZATION, bearer);
        let with = |request: axum::http::request::Builder, (name, value): &(&str, &str)| request.header(*name, *value);
        self.send(headers.iter().fold(request, with), body).await
    }

    /// Reads as a member.
    pub(crate) async fn get(&self, who: &str, path: &str) -> Answer {
        self.ask(who, "GET", path, None).await
    }

    /// Writes as a member.
    pub(crate) async fn post(&self, who: &str, path: &str, body: Value) -> Answer {
        self.ask(who, "POST", path, Some(body)).await
    }

    /// Writes as a member under a key.
    pub(crate) async fn post_as(&self, key: &str, who: &str, path: &str, body: Value) -> Answer {
        self.ask_with(who, ("POST", path), Some(body), &[("Idempotency-Key", key)]).await
    }

    /// Sends a request, and folds what it wrote.
    pub(crate) async fn send(&self, request: axum::http::request::Builder, body: Option<Value>) -> Answer {
        let request = match body {
            Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let response = self.app.clone().oneshot(request.unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        self.show().await;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { status: parts.status.as_u16(), headers: parts.headers, bytes, body }
    }
}
