//! The portal's questions: what each needs, what it reaches, and where it ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use chrono::{DateTime, TimeDelta};
use domain::Event;
use domain::allocation::{Demand, Job, job};
use domain::billing::ledger::{Charge, Heading, Source};
use domain::billing::line::LineKey;
use domain::billing::statement::{ledger_key, statement_of};
use domain::billing::{Ledger, ledger};
use domain::identity::{Member, Role, member, member_of};
use domain::kernel::spec::bill_to;
use domain::kernel::{
    Aggregate, Ancestors, CommandId, EventId, Id, JobId, Meta, Month, OrderId, Period, Quantity, Resource, StatementId,
    TenantId, Unit,
};
use domain::ordering::{Order, order};
use eventlog::{Executor, MemoryLog};
use http_body_util::BodyExt;
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Access, Clock, Keyring, Kit, Progress, SessionKey};
use serde_json::{Value, json};
use std::fmt::Display;
use std::sync::Arc;
use store::testing::{Scratch, sqlite};
use tower::ServiceExt;

struct Room {
    kit: Kit,
    app: Router,
    _scratch: Scratch,
}

fn lab() -> TenantId {
    Id::derived(TenantId::PLATFORM, "lab")
}

fn month() -> Month {
    "1970-01".parse().unwrap()
}

fn bill() -> StatementId {
    statement_of(bill_to().customer, month())
}

impl Room {
    /// The laboratory's engineer `li` with a job, an order and a bill; `eve` of another tenant, `bare` without a role.
    async fn new() -> Self {
        let (read, scratch) = sqlite(&projections::MIGRATIONS).await;
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
        let room = Self { app: kit::edge(portal::router(kit.clone())), kit, _scratch: scratch };
        let elsewhere = Id::derived(lab(), "rival");
        for (handle, tenant, roles) in
            [("li", lab(), &[Role::Engineer][..]), ("eve", elsewhere, &[Role::Engineer]), ("bare", lab(), &[])]
        {
            let roles = roles.iter().copied().collect();
            let add = member::Command::Add { tenant, handle: handle.into(), roles, password: None };
            room.give::<Member>(member_of(handle), add).await;
        }
        room.work().await;
        room.show().await;
        room
    }

    async fn work(&self) {
        let (tenant, by, bill_to) = (lab(), member_of("li"), bill_to());
        let demand = Demand { cards: None, milli_cores: 500, memory_mib: 64 };
        let spec = job::Spec {
            name: "train".into(),
            command: vec!["a".into()],
            env: [("TOKEN".into(), "s3cret".into())].into(),
            folder: None,
            demand,
            time_limit_s: None,
            restarts: 0,
        };
        let submit = job::Command::Submit(job::Submission {
            tenant,
            above: Ancestors::NONE,
            by,
            spec,
            bill_to: bill_to.clone(),
        });
        let job: JobId = Id::derived(lab(), "job");
        self.give::<Job>(job, submit).await;
        let price = "80".parse().unwrap();
        let terms = order::Terms {
            tenant,
            above: Ancestors::NONE,
            bill_to: bill_to.clone(),
            resource: Resource::Core,
            milli: 2000,
            price,
            price_version: 1,
        };
        let order: OrderId = Id::derived(lab(), "order");
        self.give::<Order>(order, order::Command::Request { by, terms }).await;
        let (customer, zone, currency) = (bill_to.customer, bill_to.zone, bill_to.currency);
        let heading = Heading { customer, tenant, month: month(), zone, currency };
        let from = self.kit.clock.now();
        let charge = Charge {
            source: Source { event: EventId::derived(lab(), "reading"), part: 0 },
            lease: Id::derived(lab(), "lease"),
            job,
            period: Period { from, to: from + TimeDelta::hours(1) },
            key: LineKey { sku: bill_to.sku, book: bill_to.book, price_version: 1 },
            unit: Unit::CoreHour,
            price,
            quantity: Quantity::held(1000, 3_600_000).unwrap(),
        };
        self.give::<Ledger>(ledger_key(customer, month()), ledger::Command::Charge { heading, charge }).await;
    }

    async fn give<A: Aggregate>(&self, key: impl Display, command: A::Command) {
        let head = *self.kit.executor.log().head().borrow();
        let id = CommandId::derived(TenantId::PLATFORM, &head.to_string());
        let meta = Meta {
            tenant: lab(),
            actor: "test".into(),
            command: id,
            digest: String::new(),
            correlation: id,
            causation: None,
            trace: None,
            occurred_at: self.kit.clock.now(),
        };
        self.kit.executor.execute::<A>(key, meta, command).await.unwrap();
    }

    async fn show(&self) {
        for stored in self.kit.executor.log().read_all(0, usize::MAX).await.unwrap() {
            let event = Event::read(&stored).unwrap();
            let mut tx = self.kit.read.begin().await.unwrap();
            for (name, _) in projections::ALL {
                projections::apply(name, &mut tx, &stored, &event, &self.kit.keys.opener()).await.unwrap();
            }
            tx.commit().await.unwrap();
            self.kit.progress.read_models_reached(stored.position);
        }
    }

    async fn send(&self, who: Option<&str>, body: Value) -> (u16, Value) {
        let mut request = Request::post(portal::PATH).header(header::CONTENT_TYPE, "application/json");
        if let Some(handle) = who {
            let token = self.kit.sessions.issue(member_of(handle), 0, self.kit.clock.now()).unwrap().token;
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = self.app.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn ask(&self, who: &str, question: &str) -> Value {
        let (status, answer) = self.send(Some(who), json!({ "query": question })).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

fn statement(fields: &str) -> String {
    format!("{{ statement(id: \"{}\") {{ {fields} }} }}", bill())
}

#[tokio::test]
async fn a_tenant_sees_its_jobs_orders_and_bill() {
    let room = Room::new().await;
    let question = "{ jobs { edges { node { name status milli } } pageInfo { hasNextPage } }
                      orders(first: 1) { edges { node { quantity status price } } } }";
    let answer = room.ask("li", question).await;
    let job = json!({ "name": "train", "status": "SUBMITTED", "milli": 500 });
    let order = json!({ "quantity": 2, "status": "REQUESTED", "price": "80" });
    assert_eq!(
        answer["data"],
        json!({
            "jobs": { "edges": [{ "node": job }], "pageInfo": { "hasNextPage": false } },
            "orders": { "edges": [{ "node": order }] },
        })
    );
    let bill = room.ask("li", &statement("statement { month } lines { sku amount } total { total }")).await;
    let lines = json!([{ "sku": "a100.card", "amount": "80" }]);
    let whole = json!({ "statement": { "month": "1970-01" }, "lines": lines, "total": { "total": "80" } });
    assert_eq!(bill["data"]["statement"], whole, "{bill}");
}

#[tokio::test]
async fn another_tenants_things_are_not_there() {
    let room = Room::new().await;
    let answer = room.ask("eve", "{ jobs(all: true) { edges { cursor } } orders { edges { cursor } } }").await;
    assert_eq!(answer["data"], json!({ "jobs": { "edges": [] }, "orders": { "edges": [] } }));
    let bill = room.ask("eve", &statement("total { total }")).await;
    assert_eq!((&bill["data"], &bill["errors"]), (&json!({ "statement": null }), &json!(null)));
}

#[tokio::test]
async fn every_field_needs_the_permission_that_is_listed() {
    let room = Room::new().await;
    let fields = portal::sdl();
    let query = fields.split("type Query {").nth(1).unwrap().split('}').next().unwrap();
    for (field, permission) in portal::PERMISSIONS {
        assert!(query.contains(&format!("\t{field}(")), "{field} is no field of\n{query}");
        let question = match *field {
            "statement" => statement("total { total }"),
            field => format!("{{ {field} {{ edges {{ cursor }} }} }}"),
        };
        let error = &room.ask("bare", &question).await["errors"][0];
        assert_eq!(error["extensions"]["code"], "auth.forbidden", "{field}");
        assert_eq!(error["message"], format!("the permission `{permission}` is missing"), "{field}");
    }
    let listed = query.lines().filter(|line| line.starts_with('\t') && line.contains(':') && !line.contains('"'));
    assert_eq!(listed.count(), portal::PERMISSIONS.len(), "{query}");
}

#[tokio::test]
async fn who_is_not_signed_in_or_asks_nonsense_is_refused_as_over_rest() {
    let room = Room::new().await;
    let (status, answer) = room.send(None, json!({ "query": "{ __typename }" })).await;
    assert_eq!((status, &answer["code"]), (401, &json!("auth.missing")));
    for body in [json!("text"), json!([1]), json!({ "query": 1 })] {
        let (status, answer) = room.send(Some("li"), body.clone()).await;
        assert_eq!((status, &answer["code"]), (422, &json!("request.bad_field")), "{body}");
    }
    let answer = room.ask("li", "{ jobs(first: 0) { edges { cursor } } }").await;
    assert_eq!(answer["errors"][0]["extensions"]["code"], "request.bad_query");
    let answer = room.ask("li", "{ jobs { edges { node { env } } } }").await;
    assert!(answer["errors"][0]["message"].as_str().unwrap().contains("Unknown field"), "{answer}");
}

#[tokio::test]
async fn a_question_has_an_end() {
    let room = Room::new().await;
    let many: String = (0..100).map(|place| format!("a{place}: jobs {{ edges {{ cursor }} }} ")).collect();
    let answer = room.ask("li", &format!("{{ {many} }}")).await;
    assert!(answer["errors"][0]["message"].as_str().unwrap().contains("too complex"), "{answer}");
}
