//! Sees which commands are refused, and leaves evidence of it.
//!
//! Owns: the layer, and what of a request may be written down: its route's template and the ids in its path. Does not
//! own: the refusals. Invariant: neither a body nor a query, nor any other text of the asker's, is written down.

use super::{Evidence, What};
use crate::{Actor, Kit, Problem};
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::{Arc, OnceLock};

/// Where the extractor of the actor says who it was, for the layer around it.
#[derive(Debug, Clone, Default)]
pub struct Asking(Arc<OnceLock<Actor>>);

impl Asking {
    /// The request is this actor's.
    pub(crate) fn is(&self, actor: &Actor) {
        // A handler that takes several permissions says the same again.
        let _ = self.0.set(actor.clone());
    }
}

/// The layer: a write that is answered with 403 or 409 leaves an event.
pub async fn refusals(State(kit): State<Kit>, mut request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let operation = format!("{} {route}", request.method());
    let things = ids(request.uri().path());
    let asking = Asking::default();
    request.extensions_mut().insert(asking.clone());
    let response = next.run(request).await;
    let refused = response.extensions().get::<Problem>();
    let refused = refused.filter(|problem| [StatusCode::FORBIDDEN, StatusCode::CONFLICT].contains(&problem.status()));
    if let Some(problem) = refused {
        let code = Some(problem.code().to_owned());
        let evidence = Evidence { things, code, ..Evidence::of(What::Refused, operation) };
        kit.access.refused(asking.0.get(), evidence).await;
    }
    response
}

/// The parts of a path that are typed ids.
fn ids(path: &str) -> Vec<String> {
    let is_id = |part: &&str| {
        let digits =
            |text: &str| text.len() == 26 && text.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
        part.split_once('_').is_some_and(|(kind, number)| {
            kind.len() == 3 && kind.bytes().all(|c| c.is_ascii_lowercase()) && digits(number)
        })
    };
    path.split('/').filter(is_id).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_ids_is_taken_from_a_path() {
        let id = "ord_0000000000000000000000000Z";
        assert_eq!(ids(&format!("/api/v1/orders/{id}/approve")), [id]);
        for path in ["/a/li@example.org", "/a/kashi_00000000000000000000000000_x", "/ord_", "/", "/ord_é", &id[1..]] {
            assert_eq!(ids(path), [""; 0], "{path}");
        }
    }
}
