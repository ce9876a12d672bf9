//! Problems: every refusal of every edge as `application/problem+json` (RFC 9457).
//!
//! Owns: the shape, and the one place where a class of refusal becomes an HTTP status.
//! Does not own: the refusals themselves (each aggregate's `Error`), axum's own rejections (`request`).
//!
//! | class | status |
//! |---|---|
//! | `Kind::Invalid` | 422 |
//! | `Kind::Forbidden` | 403 |
//! | `Kind::NotFound` | 404 |
//! | `Kind::Conflict`, `Kind::Exhausted` | 409; the code tells them apart |
//!
//! Invariants: the code is stable; what the server failed at is logged once, here, and its cause is not in the answer.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::kernel::{Kind, Rejection};
use eventlog::{LogError, Refused};
use serde::Serialize;
use std::{borrow::Cow, error::Error};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

/// The content type of a problem.
pub const CONTENT_TYPE: &str = "application/problem+json";
const RETRY_AFTER_S: u16 = 1;

/// Why a request had no effect. Boxed, since nearly every function may return it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<Body>);

/// Why a request had no effect (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
struct Body {
    /// Where the kind of problem is explained: `/problems/` and the code.
    #[serde(rename = "type")]
    about: String,
    /// What the status means.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What was wrong with this request, for a person.
    detail: String,
    /// What was wrong, for a program: a stable code such as `order.self_approval`.
    code: &'static str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Which fields of the body are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    /// What to quote when asking about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer into the body, such as `/cards/0/model`.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

impl Problem {
    /// A problem with its status, stable code and a sentence for people.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(Body {
            about: format!("/problems/{code}"),
            title: status.canonical_reason().unwrap_or("Refused"),
            status: status.as_u16(),
            detail: detail.into(),
            code,
            hint: None,
            errors: vec![],
            request_id: None,
        }))
    }

    /// A refusal of the domain.
    pub fn rejection(error: &impl Rejection) -> Self {
        let status = match error.kind() {
            Kind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Conflict | Kind::Exhausted => StatusCode::CONFLICT,
        };
        Self::new(status, error.code(), error.to_string())
    }

    /// There is no such thing, or not for who asks: the code is that of the thing, such as `order.not_found`.
    pub fn not_found(code: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, "there is no such thing, or it is not yours")
    }

    /// The request can never succeed as written (422).
    pub fn invalid(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// The server failed (500). The cause is logged and not answered.
    pub fn internal(cause: &dyn Error) -> Self {
        Self::failed(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", cause)
    }

    /// The server failed in a way that has a code of its own.
    fn failed(status: StatusCode, code: &'static str, cause: &dyn Error) -> Self {
        tracing::error!(code, cause = %causes(cause), "a request could not be served");
        let detail = if status == StatusCode::SERVICE_UNAVAILABLE {
            "the server cannot serve this now; send it again, and a write with the same Idempotency-Key"
        } else {
            "the server failed; the operator finds the cause under the id of the request"
        };
        Self::new(status, code, detail)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds a wrong field.
    #[must_use]
    pub fn with_field(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.0.errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        self
    }

    /// Adds the id of the request.
    pub(crate) fn with_request_id(mut self, id: &str) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// Its stable code.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What was wrong, for a person.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        Body::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        Body::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Body::schemas(schemas);
    }
}

/// An error and all that caused it, in one line.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
        let headers = response.headers_mut();
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER_S.into());
        }
        // The edge's outermost layer takes it out again and adds the id of the request.
        response.extensions_mut().insert(self);
        response
    }
}

impl<E: Rejection> From<Refused<E>> for Problem {
    fn from(refused: Refused<E>) -> Self {
        match refused {
            Refused::Domain(error) => Self::rejection(&error),
            Refused::Log(error) => error.into(),
            Refused::CommandReused => reused(),
        }
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        match error {
            LogError::CommandReused => reused(),
            LogError::Moved { .. } => Self::failed(StatusCode::SERVICE_UNAVAILABLE, "log.contended", &error),
            LogError::Unreachable(_) => Self::failed(StatusCode::SERVICE_UNAVAILABLE, "log.unreachable", &error),
            LogError::Malformed(_) => Self::internal(&error),
            LogError::Unreadable(_) => Self::failed(StatusCode::INTERNAL_SERVER_ERROR, "log.unreadable", &error),
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::BadCursor(_) | store::Error::BadLimit(_) => {
                Self::new(StatusCode::BAD_REQUEST, "request.bad_query", error.to_string())
            }
            store::Error::Sql(_) => Self::failed(StatusCode::SERVICE_UNAVAILABLE, "store.unreachable", &error),
            store::Error::Migration(_) | store::Error::BadUrl(_) | store::Error::AlreadyApplied(_) => {
                Self::internal(&error)
            }
        }
    }
}

fn reused() -> Problem {
    let detail = "this Idempotency-Key was used for another request";
    Problem::invalid("request.key_reused", detail).with_hint("use a new key for each thing that is asked for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("`{0:?}` was the reason")]
    struct Refusal(Kind);

    impl Rejection for Refusal {
        fn code(&self) -> &'static str {
            "thing.refused"
        }

        fn kind(&self) -> Kind {
            self.0
        }
    }

    #[test]
    fn a_class_of_refusal_has_one_status() {
        for (kind, status) in [
            (Kind::Invalid, 422),
            (Kind::Forbidden, 403),
            (Kind::NotFound, 404),
            (Kind::Conflict, 409),
            (Kind::Exhausted, 409),
        ] {
            let problem = Problem::from(Refused::Domain(Refusal(kind)));
            assert_eq!((problem.0.status, problem.0.code), (status, "thing.refused"));
            assert_eq!(problem.0.detail, format!("`{kind:?}` was the reason"));
        }
    }

    #[test]
    fn a_used_command_id_is_not_a_failure_and_contention_may_be_tried_again() {
        let reused = Problem::from(Refused::<Refusal>::CommandReused);
        assert_eq!((reused.0.status, reused.0.code), (422, "request.key_reused"));
        assert_eq!(Problem::from(LogError::CommandReused), reused);
        let contended = Problem::from(Refused::<Refusal>::Log(LogError::Moved { actual: 1 })).into_response();
        assert_eq!(contended.status(), 503);
        assert_eq!(contended.headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn a_cause_is_not_answered() {
        let problem = Problem::from(LogError::Unreachable("password=hunter2".into()));
        assert_eq!((problem.0.status, problem.0.code), (503, "log.unreachable"));
        assert!(!serde_json::to_string(&problem).unwrap().contains("hunter2"));
    }

    #[test]
    fn a_bad_cursor_is_the_askers_mistake() {
        let problem = Problem::from(store::Error::BadCursor("x".into()));
        assert_eq!((problem.0.status, problem.0.code), (400, "request.bad_query"));
    }

    #[test]
    fn is_one_named_schema() {
        assert_eq!(Problem::name(), "Problem");
        let schema = serde_json::to_value(Problem::schema()).unwrap();
        assert_eq!(schema["properties"]["type"]["type"], "string");
        assert_eq!(schema["required"], serde_json::json!(["type", "title", "status", "detail", "code"]));
    }

    #[test]
    fn is_written_as_rfc_9457_says() {
        let problem = Problem::invalid("a.b", "c").with_field("/d", "e").with_request_id("req_1");
        let json = serde_json::to_value(&problem).unwrap();
        let expected = serde_json::json!({
            "type": "/problems/a.b", "title": "Unprocessable Entity", "status": 422, "detail": "c", "code": "a.b",
            "errors": [{"pointer": "/d", "detail": "e"}], "request_id": "req_1"
        });
        assert_eq!(json, expected);
    }
}
