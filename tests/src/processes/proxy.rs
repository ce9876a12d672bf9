//! The connection between an agent and its server: it can be cut, lose answers and say things twice, and it writes down
//! what the agent says that it ran.
//!
//! Owns: the agent's record as it was said. Does not own: any word of either side.
//! Invariant: an end that was said once is said the same for ever.

use crate::faults::audit::{Span, Spans};
use crate::world::with_tls;
use agent_protocol::{Phase, Report};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The connection. It is closed with the last of its handles.
pub struct Proxy {
    pub url: String,
    line: Arc<Line>,
    task: AbortHandle,
}

#[derive(Default)]
struct Line {
    server: Mutex<String>,
    client: reqwest::Client,
    cut: AtomicBool,
    lose: AtomicI64,
    repeat: AtomicI64,
    spans: Mutex<Spans>,
}

impl Proxy {
    /// Opens it, to no server yet.
    pub async fn open() -> Self {
        with_tls();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let line = Arc::new(Line { client: reqwest::Client::builder().no_proxy().build().unwrap(), ..Line::default() });
        let routes = Router::new().fallback(pass).with_state(line.clone());
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() }).abort_handle();
        Self { url, line, task }
    }

    /// Leads to this server from now on.
    pub fn leads_to(&self, server: &str) {
        server.clone_into(&mut self.line.server.lock().unwrap());
    }

    /// Nothing comes through, or everything again.
    pub fn cut(&self, cut: bool) {
        self.line.cut.store(cut, Ordering::SeqCst);
    }

    /// So many calls arrive, and their answers are lost.
    pub fn lose_answers(&self, calls: i64) {
        self.line.lose.store(calls, Ordering::SeqCst);
    }

    /// So many calls arrive twice.
    pub fn repeat(&self, calls: i64) {
        self.line.repeat.store(calls, Ordering::SeqCst);
    }

    /// What the agent has said of each lease.
    pub fn spans(&self) -> Spans {
        self.line.spans.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn taken(left: &AtomicI64) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
}

async fn pass(State(line): State<Arc<Line>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else { return away() };
    if parts.uri.path().ends_with("/report") {
        line.write_down(&serde_json::from_slice(&bytes).unwrap());
    }
    if line.cut.load(Ordering::SeqCst) {
        return away();
    }
    let times = if taken(&line.repeat) { 2 } else { 1 };
    let mut answer = away();
    for _ in 0..times {
        let to = format!("{}{}", line.server.lock().unwrap(), parts.uri);
        let call = line.client.request(parts.method.clone(), to).headers(parts.headers.clone()).body(bytes.clone());
        answer = match call.send().await {
            Ok(answered) => {
                let status = answered.status();
                let Ok(body) = answered.bytes().await else { return away() };
                (status, [("content-type", "application/json")], Body::from(body)).into_response()
            }
            Err(_) => away(),
        };
    }
    if line.cut.load(Ordering::SeqCst) || taken(&line.lose) { away() } else { answer }
}

fn away() -> Response {
    StatusCode::BAD_GATEWAY.into_response()
}

impl Line {
    fn write_down(&self, report: &Report) {
        let mut spans = self.spans.lock().unwrap();
        for seen in &report.leases {
            let now = match &seen.phase {
                Phase::Running { started_at } => Span { started_at: Some(*started_at), ended_at: None },
                Phase::Ended { started_at, ended_at, .. } => {
                    Span { started_at: *started_at, ended_at: Some(*ended_at) }
                }
            };
            match spans.get(&seen.lease) {
                // A report that was held up says less than a later one did.
                Some(known) if known.ended_at.is_some() => {
                    assert!(now.ended_at.is_none() || *known == now, "{}: {known:?}, then {now:?}", seen.lease);
                }
                _ => {
                    spans.insert(seen.lease, now);
                }
            }
        }
    }
}
