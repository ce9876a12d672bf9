//! A control service that says what a test wants and remembers what it was told.
//!
//! Invariants: it has a runtime of its own, so that going away also cuts the calls that are under way, as a server that
//! died does.

use crate::room::PATIENCE;
use agent_protocol::{
    Acknowledged, Desired, DesiredLease, OutputKept, POLL_MAX_S, Phase, Register, Registered, Report,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use domain::kernel::{Id, LeaseId, NodeId};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{runtime::Runtime, sync::watch, time::timeout};
use uuid::Uuid;

pub(crate) const TOKEN: &str = "jt_good";

/// What the server holds.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) desired: Desired,
    pub(crate) nodes: BTreeMap<String, NodeId>,
    pub(crate) registered: Vec<Register>,
    pub(crate) reports: Vec<Report>,
    pub(crate) output: BTreeMap<LeaseId, Vec<u8>>,
    pub(crate) stale: Vec<LeaseId>,
    /// Leases whose output is refused.
    pub(crate) unwanted: BTreeSet<LeaseId>,
    /// So many answers to a registration are lost on the way.
    pub(crate) lose: u32,
    /// How often the desired set was given out.
    pub(crate) polls: u32,
    /// Answers a poll at once, whatever the agent has.
    pub(crate) impatient: bool,
}

#[derive(Clone, Default)]
struct Shared {
    memory: Arc<Mutex<Memory>>,
    changed: watch::Sender<()>,
}

pub(crate) struct Fake {
    shared: Shared,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let mut fake = Self { shared: Shared::default(), address: ([127, 0, 0, 1], 0).into(), runtime: None };
        fake.come();
        fake
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Dies.
    pub(crate) fn go(&mut self) {
        let runtime = self.runtime.take().unwrap();
        // A runtime is not waited for within another one.
        std::thread::spawn(move || runtime.shutdown_timeout(PATIENCE)).join().unwrap();
    }

    /// Is there again, at the same address and with its memory.
    pub(crate) fn come(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/agent/v1/register", post(register))
            .route("/agent/v1/desired", get(desired))
            .route("/agent/v1/report", post(report))
            .route("/agent/v1/leases/{lease}/output", put(output))
            .with_state(self.shared.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// Changes what it holds.
    pub(crate) fn change<T>(&self, how: impl FnOnce(&mut Memory) -> T) -> T {
        self.shared.change(how)
    }

    /// Wants these leases from now on.
    pub(crate) fn want(&self, leases: &[DesiredLease]) -> i64 {
        self.change(|memory| {
            let jobs = leases.iter().map(|lease| lease.job).collect();
            memory.desired = Desired { generation: memory.desired.generation + 1, leases: leases.to_vec(), jobs };
            memory.desired.generation
        })
    }

    /// Waits until its memory is so.
    pub(crate) async fn until(&self, what: impl Fn(&Memory) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        let wait = async {
            while !what(&self.shared.memory.lock().unwrap()) {
                changed.changed().await.unwrap();
            }
        };
        if timeout(PATIENCE, wait).await.is_err() {
            panic!("it did not come to be: {:#?}", self.shared.memory.lock().unwrap());
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Memory {
    /// What the newest report says of a lease.
    pub(crate) fn phase(&self, lease: LeaseId) -> Option<&Phase> {
        let report = self.reports.last()?;
        report.leases.iter().find(|seen| seen.lease == lease).map(|seen| &seen.phase)
    }

    pub(crate) fn runs(&self, lease: LeaseId) -> bool {
        matches!(self.phase(lease), Some(Phase::Running { .. }))
    }

    pub(crate) fn ended(&self, lease: LeaseId) -> bool {
        matches!(self.phase(lease), Some(Phase::Ended { .. }))
    }
}

impl Shared {
    fn change<T>(&self, how: impl FnOnce(&mut Memory) -> T) -> T {
        let result = how(&mut self.memory.lock().unwrap());
        self.changed.send_replace(());
        result
    }

    fn knows(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let said = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let nodes = &self.memory.lock().unwrap().nodes;
        let known = nodes.iter().any(|(credential, node)| said == format!("Bearer {node}.{credential}"));
        if known { Ok(()) } else { Err(Refusal(StatusCode::UNAUTHORIZED, "node.credential", "who are you?")) }
    }
}

/// A status, a code and a detail.
struct Refusal(StatusCode, &'static str, &'static str);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, code, detail) = self;
        let body = format!(r#"{{"type":"about:blank","code":"{code}","detail":"{detail}"}}"#);
        (status, [("content-type", "application/problem+json")], body).into_response()
    }
}

async fn register(State(shared): State<Shared>, Json(asked): Json<Register>) -> Response {
    if asked.token != TOKEN {
        return Refusal(StatusCode::FORBIDDEN, "pool.token_used", "this token was used before").into_response();
    }
    shared.change(|memory| {
        let made = NodeId::from_uuid(Uuid::now_v7());
        let node = *memory.nodes.entry(asked.credential.clone()).or_insert(made);
        memory.registered.push(asked);
        if memory.lose > 0 {
            memory.lose -= 1;
            return StatusCode::BAD_GATEWAY.into_response();
        }
        Json(Registered { node }).into_response()
    })
}

async fn desired(
    State(shared): State<Shared>,
    Query(asked): Query<HashMap<String, i64>>,
    headers: HeaderMap,
) -> Result<Json<Desired>, Refusal> {
    shared.knows(&headers)?;
    let mut changed = shared.changed.subscribe();
    let newer = async {
        loop {
            let now = shared.memory.lock().unwrap().desired.clone();
            if now.generation > asked["after"] || shared.memory.lock().unwrap().impatient {
                return now;
            }
            changed.changed().await.unwrap();
        }
    };
    let answer = timeout(Duration::from_secs(POLL_MAX_S), newer).await;
    Ok(Json(shared.change(|memory| {
        memory.polls += 1;
        answer.unwrap_or_else(|_| memory.desired.clone())
    })))
}

async fn report(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Json(report): Json<Report>,
) -> Result<Json<Acknowledged>, Refusal> {
    shared.knows(&headers)?;
    Ok(Json(shared.change(|memory| {
        memory.reports.push(report);
        Acknowledged { stale: memory.stale.clone() }
    })))
}

async fn output(
    State(shared): State<Shared>,
    Path(lease): Path<LeaseId>,
    Query(asked): Query<HashMap<String, usize>>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Json<OutputKept>, Refusal> {
    shared.knows(&headers)?;
    shared.change(|memory| {
        if memory.unwanted.contains(&lease) {
            return Err(Refusal(StatusCode::CONFLICT, "lease.not_yours", "the lease is of another node"));
        }
        let kept = memory.output.entry(lease).or_default();
        // Only what follows on what is there is kept.
        if let Some(known) = kept.len().checked_sub(asked["offset"]) {
            kept.extend(bytes.iter().skip(known));
        }
        Ok(Json(OutputKept { next_offset: i64::try_from(kept.len()).unwrap() }))
    })
}
