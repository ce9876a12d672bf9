//! The calls to the server.
//!
//! Owns: addresses, the authorization, what an answer means. Does not own: when to call and how often to try again.
//! Invariants: a refusal (4xx) and an absence (no answer, 5xx, too busy) are never confused; no error shows a secret.

use crate::identity::Identity;
use agent_protocol::{Acknowledged, Desired, OutputKept, POLL_MAX_S, Register, Registered, Report};
use domain::kernel::LeaseId;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use std::time::Duration;

const CONNECT_MAX: Duration = Duration::from_secs(5);
const CALL_MAX: Duration = Duration::from_secs(20);
const POLL_WAIT_MAX: Duration = Duration::from_secs(POLL_MAX_S + 10);

/// The way to the server, as one node.
#[derive(Debug, Clone)]
pub struct Link {
    http: Client,
    server: Url,
}

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No answer, or one that says "later". Ask again.
    #[error("the server is away")]
    Away(#[source] reqwest::Error),
    /// It cannot be asked now, with the HTTP status. Ask again.
    #[error("the server is not ready (HTTP {0})")]
    NotReady(u16),
    /// It was understood and refused.
    #[error("refused with {code} (HTTP {status}): {detail}")]
    Refused { status: u16, code: String, detail: String },
    /// The answer is not of the agreed form.
    #[error("the server's answer is not understood: {0}")]
    Odd(String),
}

/// What a refusal says (RFC 9457); anything may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: Option<String>,
    r#type: Option<String>,
    title: Option<String>,
    detail: Option<String>,
}

impl Link {
    /// As this node.
    pub fn new(server: &Url, identity: &Identity) -> Result<Self, LinkError> {
        let text = format!("Bearer {}.{}", identity.node, identity.credential.reveal());
        let mut authorization = HeaderValue::from_str(&text).map_err(|error| LinkError::Odd(error.to_string()))?;
        authorization.set_sensitive(true);
        Self::with(server, HeaderMap::from_iter([(AUTHORIZATION, authorization)]))
    }

    /// Joins. The same credential gets the same node, however often it is sent.
    pub async fn register(server: &Url, asked: &Register) -> Result<Registered, LinkError> {
        let link = Self::with(server, HeaderMap::new())?;
        answer(link.http.post(link.at("register")).timeout(CALL_MAX).json(asked)).await
    }

    /// What should run, as soon as there is something newer than this generation, or after the longest wait.
    pub async fn desired(&self, after: i64) -> Result<Desired, LinkError> {
        answer(self.http.get(self.at("desired")).query(&[("after", after)]).timeout(POLL_WAIT_MAX)).await
    }

    /// Says what is seen.
    pub async fn report(&self, report: &Report) -> Result<Acknowledged, LinkError> {
        answer(self.http.post(self.at("report")).timeout(CALL_MAX).json(report)).await
    }

    /// Sends a part of a lease's output, which starts at this byte.
    pub async fn output(&self, lease: LeaseId, offset: u64, bytes: Vec<u8>) -> Result<OutputKept, LinkError> {
        let call = self.http.put(self.at(&format!("leases/{lease}/output"))).query(&[("offset", offset)]);
        answer(call.timeout(CALL_MAX).header(CONTENT_TYPE, "application/octet-stream").body(bytes)).await
    }

    fn with(server: &Url, headers: HeaderMap) -> Result<Self, LinkError> {
        // A second installation is refused, and the first is the same; without any, building the client stops the
        // process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = Client::builder().default_headers(headers).connect_timeout(CONNECT_MAX);
        if matches!(server.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
            // A proxy of the environment is for the world outside.
            http = http.no_proxy();
        }
        Ok(Self { http: http.build().map_err(LinkError::Away)?, server: server.clone() })
    }

    fn at(&self, call: &str) -> String {
        format!("{}/agent/v1/{call}", self.server.as_str().trim_end_matches('/'))
    }
}

async fn answer<T: DeserializeOwned>(call: RequestBuilder) -> Result<T, LinkError> {
    let response = call.send().await.map_err(|error| LinkError::Away(error.without_url()))?;
    let status = response.status();
    if status.is_success() {
        let body = response.bytes().await.map_err(|error| LinkError::Away(error.without_url()))?;
        return serde_json::from_slice(&body).map_err(|error| LinkError::Odd(error.to_string()));
    }
    let busy = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    if busy || !status.is_client_error() {
        Err(LinkError::NotReady(status.as_u16()))
    } else {
        Err(refusal(response).await)
    }
}

async fn refusal(response: Response) -> LinkError {
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
    let code = problem.code.or(problem.r#type).unwrap_or_else(|| "no code".into());
    let reason = || status.canonical_reason().unwrap_or("no reason is given").to_string();
    LinkError::Refused {
        status: status.as_u16(),
        code,
        detail: problem.detail.or(problem.title).unwrap_or_else(reason),
    }
}
