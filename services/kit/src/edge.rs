//! The layers of every router: an id for each request, a limit for each body, and nothing but problems as errors.
//!
//! Owns: what a request meets before and after its route. Does not own: routes.
//! Invariants: an error of axum itself (no such route or method, too large, not read) is a problem too; a handler that
//! panics answers 500 and the server goes on; each request has one id, in its answer, its problem and its log lines.

use crate::Problem;
use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use std::any::Any;
use tower_http::{catch_panic::CatchPanicLayer, limit::RequestBodyLimitLayer};
use tracing::Instrument;
use uuid::Uuid;

/// The most bytes of a body.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The header that tells a request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A router with the layers of every edge.
pub fn edge<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    router
        .layer(RequestBodyLimitLayer::new(BODY_BYTES_MAX))
        .layer(CatchPanicLayer::custom(stopped))
        .layer(from_fn(answered))
}

/// The problem of a body that is too large.
pub(crate) fn too_large() -> Problem {
    let detail = format!("a body has at most {BODY_BYTES_MAX} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", detail)
}

async fn answered(request: Request, next: Next) -> Response {
    let id = format!("req_{:032x}", Uuid::now_v7().as_u128());
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let mut response = next.run(request).instrument(span).await;
    let problem = response.extensions_mut().remove::<Problem>().or_else(|| axums_own(&response));
    if let Some(problem) = problem {
        let mut whole = problem.with_request_id(&id).into_response();
        whole.extensions_mut().remove::<Problem>();
        // The route's other headers stay, such as `Allow`.
        for (name, value) in response.headers() {
            if *name != header::CONTENT_LENGTH && *name != header::CONTENT_TYPE {
                whole.headers_mut().insert(name, value.clone());
            }
        }
        response = whole;
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The problem for an error that no handler of ours wrote: it has no body, or one of plain text.
fn axums_own(response: &Response) -> Option<Problem> {
    let status = response.status();
    let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_ours = content_type.is_some_and(|text| !text.starts_with(b"text/plain"));
    if is_ours || !(status.is_client_error() || status.is_server_error()) {
        return None;
    }
    Some(match status {
        StatusCode::NOT_FOUND => Problem::new(status, "request.not_found", "there is nothing at this path"),
        StatusCode::METHOD_NOT_ALLOWED => {
            Problem::new(status, "request.method_not_allowed", "this path does not take this method; see `Allow`")
        }
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Problem::new(status, "request.bad_media_type", "the body is of a content type that is not taken here")
        }
        _ if status.is_server_error() => Problem::new(status, "server.failed", "the server failed"),
        _ => Problem::new(status, "request.refused", "the request cannot be understood"),
    })
}

fn stopped(_: Box<dyn Any + Send>) -> Response {
    // The text of the panic is on standard error already, by the process's hook; it may hold what was asked for.
    tracing::error!("a handler panicked");
    let detail = "the server failed; the operator finds the cause under the id of the request";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", detail).into_response()
}
