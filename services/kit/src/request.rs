//! What a handler takes from a request: axum's extractors, whose refusals are problems here.
//!
//! Owns: `Json`, `Path`, `Query`, and the digest of what was asked. Does not own: which fields there are; each request
//! struct refuses unknown ones with `#[serde(deny_unknown_fields)]`.
//! Invariant: two requests have the same digest only if method, path and body are the same bytes.

use crate::{Problem, auth::secret::hex};
use axum::{
    body::Bytes,
    extract::{
        FromRequest, FromRequestParts, OriginalUri, Request,
        rejection::{BytesRejection, JsonRejection},
    },
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::error::Error;

/// A JSON body, and the digest of the request.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T, pub Digest);

/// The parameters of the path.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

/// The parameters of the query.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

/// SHA-256 over method, path and body, in hex. As an extractor of its own it is for requests without a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// The digest of a request.
    pub fn of(method: &str, path: &str, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // Neither a method nor a path holds a line feed, so the parts cannot be shifted.
        for part in [method.as_bytes(), b"\n", path.as_bytes(), b"\n", body] {
            hash.update(part);
        }
        Self(hex(&hash.finalize()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of_parts(parts: &Parts, body: &[u8]) -> Self {
        // A nested router sees only the end of the path.
        let whole = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
        Self::of(parts.method.as_str(), whole.path(), body)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Digest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self::of_parts(parts, &[]))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            let detail = "the body must be JSON: send `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.not_json", detail));
        }
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await.map_err(unread)?;
        let axum::Json(value) = axum::Json::from_bytes(&bytes).map_err(|rejection| bad_json(&rejection))?;
        Ok(Self(value, Digest::of_parts(&parts, &bytes)))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        let bad = |rejection: axum::extract::rejection::PathRejection| {
            Problem::new(rejection.status(), "request.bad_path", rejection.body_text())
        };
        found.map(|path| Self(path.0)).map_err(bad)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Query::from_request_parts(parts, state).await;
        let bad = |rejection: axum::extract::rejection::QueryRejection| {
            Problem::new(rejection.status(), "request.bad_query", rejection.body_text())
        };
        found.map(|query| Self(query.0)).map_err(bad)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn unread(rejection: BytesRejection) -> Problem {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => crate::edge::too_large(),
        status => Problem::new(status, "request.unread", "the body ended before it was whole"),
    }
}

fn bad_json(rejection: &JsonRejection) -> Problem {
    let cause = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
    if rejection.status() != StatusCode::UNPROCESSABLE_ENTITY {
        let detail = format!("the body is not JSON: {cause}");
        return Problem::new(StatusCode::BAD_REQUEST, "request.bad_json", detail);
    }
    let problem = Problem::invalid("request.bad_field", format!("the body does not fit: {cause}"));
    match cause.split_once(": ").and_then(|(place, detail)| Some((pointer(place)?, detail))) {
        Some((pointer, detail)) => problem.with_field(pointer, detail),
        None => problem,
    }
}

/// `cards[0].model`, as the deserializer says where it was, as a JSON pointer. A text of another form is none.
fn pointer(place: &str) -> Option<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let fits = !place.is_empty() && place.chars().all(known);
    fits.then(|| format!("/{}", place.replace('[', "/").replace(']', "").replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ask {
        #[expect(dead_code, reason = "only its reading is tried")]
        cards: Vec<Card>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Card {
        #[expect(dead_code, reason = "only its reading is tried")]
        index: u32,
    }

    fn refused(body: &str) -> serde_json::Value {
        let rejection = axum::Json::<Ask>::from_bytes(body.as_bytes()).unwrap_err();
        serde_json::to_value(bad_json(&rejection)).unwrap()
    }

    #[test]
    fn a_wrong_field_is_pointed_at() {
        let problem = refused(r#"{"cards":[{"index":0},{"index":"one"}]}"#);
        assert_eq!(problem["status"], 422);
        assert_eq!(problem["errors"][0]["pointer"], "/cards/1/index");
        let unknown = refused(r#"{"cards":[{"indexes":0}]}"#);
        assert_eq!(unknown["errors"][0]["pointer"], "/cards/0/indexes");
        let missing = refused("{}");
        assert_eq!(missing["errors"], serde_json::Value::Null);
        assert!(missing["detail"].as_str().unwrap().contains("missing field `cards`"));
    }

    #[test]
    fn a_body_that_is_not_json_is_another_problem() {
        for body in ["", "{", "{\"cards\":[]}x", "\u{0}"] {
            assert_eq!(refused(body)["code"], "request.bad_json", "{body}");
        }
    }

    #[test]
    fn a_digest_tells_requests_apart() {
        let digest = Digest::of("POST", "/a", b"{}");
        assert_eq!(digest, Digest::of("POST", "/a", b"{}"));
        assert_eq!(digest.as_str().len(), 64);
        for other in [Digest::of("PUT", "/a", b"{}"), Digest::of("POST", "/b", b"{}"), Digest::of("POST", "/a", b"{ }")]
        {
            assert_ne!(digest, other);
        }
    }

    #[test]
    fn json_is_known_by_its_content_type() {
        let is = |text: &str| is_json(&[(header::CONTENT_TYPE, text.parse().unwrap())].into_iter().collect());
        assert!(is("application/json") && is("Application/JSON; charset=utf-8") && is("application/merge-patch+json"));
        assert!(!is("text/plain") && !is("application/jsonp") && !is("") && !is_json(&HeaderMap::new()));
    }
}
