//! A server that answers what it is told to, and remembers what it was asked.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The method and the path with its query, below the API's base.
    pub(crate) what: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Asked {
    /// A header's text; nothing where it was not sent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// JSON.
    pub(crate) fn json(body: Value) -> Self {
        Self { status: StatusCode::OK, headers: vec![], body: body.to_string().into() }
    }

    /// What was written, and where in the log.
    pub(crate) fn written(position: i64, body: Value) -> Self {
        Self { headers: vec![("kashi-position", position.to_string())], ..Self::json(body) }
    }

    /// A refusal.
    pub(crate) fn problem(status: u16, code: &str, detail: &str) -> Self {
        let body = json!({
            "type": format!("/problems/{code}"), "title": "Refused", "status": status, "code": code, "detail": detail,
            "hint": "do something else", "request_id": "req_1",
        });
        Self { status: StatusCode::from_u16(status).unwrap(), ..Self::json(body) }
    }

    /// A part of a job's output.
    pub(crate) fn output(bytes: &[u8], next: u64, end: bool) -> Self {
        let mut headers = vec![("kashi-next-offset", next.to_string())];
        headers.extend(end.then(|| ("kashi-output-end", "true".to_owned())));
        Self { status: StatusCode::OK, headers, body: bytes.to_vec() }
    }
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, VecDeque<Answer>>,
    asked: Vec<Asked>,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) host: String,
    script: Arc<Mutex<Script>>,
}

impl Server {
    /// A server that has nothing.
    pub(crate) async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new().fallback(answer).with_state(script.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { host, script }
    }

    /// Answers this from now on; said again, the answers follow each other and the last one stays.
    pub(crate) fn on(&self, what: &str, answer: Answer) -> &Self {
        self.script.lock().unwrap().answers.entry(what.to_owned()).or_default().push_back(answer);
        self
    }

    /// Answers only this from now on.
    pub(crate) fn only(&self, what: &str, answer: Answer) -> &Self {
        self.script.lock().unwrap().answers.insert(what.to_owned(), VecDeque::from([answer]));
        self
    }

    /// Everything that was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.lock().unwrap().asked.clone()
    }

    /// What was asked of one kind.
    pub(crate) fn asked_for(&self, what: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.what == what).collect()
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let whole = parts.uri.path_and_query().unwrap().as_str();
    let path = whole.strip_prefix("/api/v1").unwrap_or(whole);
    let what = format!("{} {path}", parts.method);
    let mut script = script.lock().unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    script.asked.push(Asked { what: what.clone(), headers: parts.headers, body });
    let answers = script.answers.get_mut(&what);
    let answer =
        answers.and_then(|answers| if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() });
    let Answer { status, headers, body } =
        answer.unwrap_or_else(|| Answer::problem(404, "thing.not_found", "there is no such thing, or it is not yours"));
    let headers: Vec<(HeaderName, String)> =
        headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value)).collect();
    let headers: HeaderMap = headers.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect();
    (status, headers, body).into_response()
}
