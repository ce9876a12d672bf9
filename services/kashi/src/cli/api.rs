//! Speaking to the REST edge.
//!
//! Owns: the headers of reads and writes, sending again what a broken connection or a busy server swallowed, lists of
//! many pages. Does not own: what is asked for.
//! Invariants: a write has one `Idempotency-Key` however often it is sent, so it has one effect; a read shows every
//! write that was made from here before; a redirection is not followed, so no token goes elsewhere.

use crate::cli::fault::{Fault, is_local};
use crate::cli::settings::Settings;
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, Method, redirect};
use serde_json::Value;
use std::cell::Cell;
use std::error::Error;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

const BASE: &str = "/api/v1";
/// The most items of a page.
const PAGE: usize = 200;
/// How often a request is sent at most, and how long to wait before it is sent again; each time twice as long.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);
/// How long it is waited until everything has followed, and how often that is asked.
const SETTLED: Duration = Duration::from_secs(3);
const SETTLING: Duration = Duration::from_millis(50);
const POSITION: &str = "kashi-position";

/// What is asked for.
#[derive(Debug)]
struct Ask<'a> {
    method: Method,
    path: &'a str,
    query: &'a [(&'a str, String)],
    body: Option<&'a Value>,
    /// The `Idempotency-Key` of a write.
    key: Option<String>,
    /// How long the server may wait before it answers.
    wait: Duration,
}

impl<'a> Ask<'a> {
    fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, query: &[], body: None, key: None, wait: Duration::ZERO }
    }
}

/// A successful answer.
#[derive(Debug)]
struct Reply {
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A part of a job's output.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    /// Where the next part starts.
    pub(crate) next: u64,
    /// Whether there will be no more.
    pub(crate) end: bool,
}

/// A server, as somebody.
pub(crate) struct Api {
    http: Client,
    settings: Settings,
    timeout: Duration,
    position: Cell<i64>,
}

impl Api {
    /// Speaks to the server of the settings; each answer may take so long.
    pub(crate) fn new(settings: Settings, timeout: Duration) -> Result<Self, Fault> {
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("kashi/", env!("CARGO_PKG_VERSION")));
        if is_local(&settings.host) {
            builder = builder.no_proxy();
        }
        if settings.host.starts_with("http://") {
            // Nothing is verified, so the system's certificates need not be there.
            builder = builder.tls_certs_only([]);
        }
        let unusable =
            |error: reqwest::Error| Fault::Unreachable { host: settings.host.clone(), cause: causes(&error) };
        let http = builder.build().map_err(unusable)?;
        let position = Cell::new(settings.position);
        Ok(Self { http, settings, timeout, position })
    }

    /// The settings with which it speaks.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The same as somebody else, who has written nothing yet.
    pub(crate) fn with_token(mut self, token: String) -> Self {
        self.settings.token = Some(token);
        self.position = Cell::new(0);
        self
    }

    /// Reads.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Fault> {
        self.json(&self.send(&Ask { query, ..Ask::new(Method::GET, path) }, true).await?)
    }

    /// Reads a list, of so many items at most, and says whether there are more.
    pub(crate) async fn list(
        &self,
        path: &str,
        query: &[(&str, String)],
        most: usize,
    ) -> Result<(Vec<Value>, bool), Fault> {
        let mut items = vec![];
        let mut cursor: Option<String> = None;
        loop {
            let mut query = query.to_vec();
            query.push(("limit", (most - items.len()).min(PAGE).to_string()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let mut page = self.get(path, &query).await?;
            let Value::Array(found) = page["items"].take() else { return Err(self.bad_answer("it has no `items`")) };
            items.extend(found);
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() || items.len() >= most {
                let more = cursor.is_some() || items.len() > most;
                items.truncate(most);
                return Ok((items, more));
            }
        }
    }

    /// Reads a list that is on one page.
    pub(crate) async fn whole(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<Value>, Fault> {
        let mut page = self.get(path, query).await?;
        let Value::Array(items) = page["items"].take() else { return Err(self.bad_answer("it has no `items`")) };
        Ok(items)
    }

    /// Waits, for a few seconds at most, until what follows from all that has happened is shown: a charge follows from
    /// the end of a job.
    pub(crate) async fn settled(&self) -> Result<(), Fault> {
        let until = Instant::now() + SETTLED;
        loop {
            let health = self.get("/health", &[]).await?;
            let at = |name: &str| health[name].as_i64().unwrap_or_default();
            let position = at("flows_at");
            if position >= at("read_models_at") || Instant::now() >= until {
                self.position.set(position.max(self.position.get()));
                return Ok(());
            }
            sleep(SETTLING).await;
        }
    }

    /// Writes.
    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, Fault> {
        self.write(Method::POST, path, body).await
    }

    /// Writes over.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, Fault> {
        self.write(Method::PUT, path, Some(body)).await
    }

    /// Takes away.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Fault> {
        self.write(Method::DELETE, path, None).await
    }

    /// Asks without being known.
    pub(crate) async fn introduce(&self, path: &str, body: &Value) -> Result<Value, Fault> {
        self.json(&self.send(&Ask { body: Some(body), ..Ask::new(Method::POST, path) }, false).await?)
    }

    /// Reads a part of a job's output, and lets the server wait for it.
    pub(crate) async fn output(&self, job: &str, offset: u64, wait_s: u64) -> Result<Part, Fault> {
        let path = format!("/jobs/{job}/output");
        let query = [("offset", offset.to_string()), ("wait_s", wait_s.to_string())];
        let wait = Duration::from_secs(wait_s);
        let reply = self.send(&Ask { query: &query, wait, ..Ask::new(Method::GET, &path) }, true).await?;
        let header = |name: &str| reply.headers.get(name).and_then(|value| value.to_str().ok());
        let next = header("kashi-next-offset").and_then(|text| text.parse().ok());
        let next = next.ok_or_else(|| self.bad_answer("it does not say where the next output starts"))?;
        let end = header("kashi-output-end") == Some("true");
        Ok(Part { bytes: reply.body, next, end })
    }

    async fn write(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Fault> {
        let key = Some(Uuid::now_v7().to_string());
        let reply = self.send(&Ask { body, key, ..Ask::new(method, path) }, true).await?;
        let position = reply.headers.get(POSITION).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(position) = position.filter(|position| *position > self.position.get()) {
            self.position.set(position);
            self.settings.files.keep_position(&self.settings.host, position);
        }
        self.json(&reply)
    }

    /// Sends until there is an answer that stands.
    async fn send(&self, ask: &Ask<'_>, known: bool) -> Result<Reply, Fault> {
        if known && self.settings.token.is_none() {
            return Err(Fault::SignedOut { host: self.settings.host.clone() });
        }
        let until = Instant::now() + self.timeout + ask.wait;
        let mut pause = PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let late = || Fault::Late { host: self.settings.host.clone(), seconds: self.timeout.as_secs() };
            let fault = match timeout_at(until, self.once(ask, known)).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(fault)) => fault,
                Err(_) => return Err(late()),
            };
            if !fault.may_pass() || tries == TRIES || Instant::now() + pause >= until {
                return Err(fault);
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    async fn once(&self, ask: &Ask<'_>, known: bool) -> Result<Reply, Fault> {
        let url = format!("{}{BASE}{}", self.settings.host, ask.path);
        let mut request = self.http.request(ask.method.clone(), url).query(ask.query);
        if let Some(token) = self.settings.token.as_ref().filter(|_| known) {
            request = request.bearer_auth(token);
        }
        if let Some(key) = &ask.key {
            request = request.header(HeaderName::from_static("idempotency-key"), key);
        }
        if known && ask.method == Method::GET && self.position.get() > 0 {
            request = request.header(HeaderName::from_static("kashi-min-position"), self.position.get());
        }
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        let broken =
            |error: reqwest::Error| Fault::Unreachable { host: self.settings.host.clone(), cause: causes(&error) };
        let response = request.send().await.map_err(broken)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(broken)?.to_vec();
        if status.is_success() {
            Ok(Reply { headers, body })
        } else {
            Err(Fault::refused(&self.settings.host, status.as_u16(), &body))
        }
    }

    fn json(&self, reply: &Reply) -> Result<Value, Fault> {
        serde_json::from_slice(&reply.body).map_err(|error| self.bad_answer(&format!("it is not JSON: {error}")))
    }

    fn bad_answer(&self, what: &str) -> Fault {
        Fault::BadAnswer { host: self.settings.host.clone(), what: what.to_owned() }
    }
}

/// The innermost cause, which says what happened; the layers around it name the request again.
fn causes(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
