//! Waiting for what follows: a write with `?wait=settled` is answered once the flows have nothing left to do for it and
//! the read models show all of that.
//!
//! Owns: the query parameter `wait`, the header `Kashi-Wait` that says the same, the header `Kashi-Settled`. Does not
//! own: how far flows and read models are (`progress`). One layer for every write; no handler knows of it.
//! Invariant: a write that had its effect is answered as it always is, however the waiting ends.

use crate::{CORRELATION, Kit, POSITION, Problem, progress::WAIT_MAX};
use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::kernel::CommandId;
use std::str::FromStr;
use tokio::time::timeout;

/// The header that asks to wait, where the query cannot be changed.
pub const WAIT: HeaderName = HeaderName::from_static("kashi-wait");
/// The header that says whether all that follows was done: `true`, or `false` where it takes longer than two seconds.
pub const SETTLED: HeaderName = HeaderName::from_static("kashi-settled");
const PARAMETER: &str = "wait=";
const WORD: &str = "settled";

/// The layer: `axum::middleware::from_fn_with_state(kit, settled)`.
pub async fn settled(State(kit): State<Kit>, request: Request, next: Next) -> Response {
    let wanted = match asked(&request) {
        Ok(wanted) => wanted,
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(request).await;
    if !wanted || !response.status().is_success() {
        return response;
    }
    let (Some(position), Some(correlation)) = (header(&response, &POSITION), header(&response, &CORRELATION)) else {
        return response;
    };
    let waited = timeout(WAIT_MAX, rest(&kit, position, correlation)).await;
    let settled = if matches!(waited, Ok(Ok(()))) { "true" } else { "false" };
    response.headers_mut().insert(SETTLED, HeaderValue::from_static(settled));
    response
}

/// Whether a write asks to wait. Reads have `Kashi-Min-Position`.
fn asked(request: &Request) -> Result<bool, Problem> {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
        return Ok(false);
    }
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let queried = pairs.filter_map(|pair| pair.strip_prefix(PARAMETER));
    let sent = request.headers().get_all(WAIT).into_iter().map(|value| value.to_str().unwrap_or_default());
    let mut wanted = false;
    for word in queried.chain(sent) {
        if word != WORD {
            let detail = "a write waits for nothing but `settled`: `?wait=settled`, or `Kashi-Wait: settled`";
            return Err(Problem::new(StatusCode::BAD_REQUEST, "request.bad_wait", detail));
        }
        wanted = true;
    }
    Ok(wanted)
}

/// Waits until the flows have handled every event of a correlation, those that they caused meanwhile as well, and the
/// read models show them.
async fn rest(kit: &Kit, mut position: i64, correlation: CommandId) -> Result<(), Problem> {
    loop {
        kit.progress.flowed(position).await;
        let last = kit.executor.log().last_of(correlation).await?;
        if last <= position {
            return kit.progress.shown(position).await;
        }
        position = last;
    }
}

fn header<T: FromStr>(response: &Response, name: &HeaderName) -> Option<T> {
    response.headers().get(name)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn wanted(method: Method, uri: &str, headers: &[&str]) -> Result<bool, &'static str> {
        let request = Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |request, value| request.header(WAIT, *value));
        asked(&request.body(Body::empty()).unwrap()).map_err(|problem| problem.code())
    }

    #[test]
    fn is_asked_for_in_the_query_or_by_a_header() {
        assert_eq!(wanted(Method::POST, "/orders", &[]), Ok(false));
        assert_eq!(wanted(Method::POST, "/orders?wait=settled", &[]), Ok(true));
        assert_eq!(wanted(Method::PUT, "/orders?a=1&wait=settled", &["settled"]), Ok(true));
        assert_eq!(wanted(Method::DELETE, "/keys/1", &["settled"]), Ok(true));
        assert_eq!(wanted(Method::GET, "/orders?wait=settled", &[]), Ok(false), "a read has its own way");
        assert_eq!(wanted(Method::POST, "/orders?wait_s=3&awaits=settled", &[]), Ok(false));
        for (uri, headers) in
            [("/a?wait=", &[][..]), ("/a?wait=5", &[]), ("/a", &["Settled"]), ("/a?wait=settled", &[""])]
        {
            assert_eq!(wanted(Method::POST, uri, headers), Err("request.bad_wait"), "{uri} {headers:?}");
        }
    }
}
