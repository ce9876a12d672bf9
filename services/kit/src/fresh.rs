//! Reading one's own writes: a read waits until the read models show what its asker has written.
//!
//! Owns: the header `Kashi-Min-Position`. Does not own: how far the read models are (`progress`).
//! Invariant: a handler that takes `Fresh` after its permission keeps nobody waiting who may not read at all.

use crate::{Kit, Problem};
use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderName, StatusCode, request::Parts},
};

/// The header with the position that a read has to show: `Kashi-Position` of the write before it.
pub const MIN_POSITION: HeaderName = HeaderName::from_static("kashi-min-position");

/// The read models show what was asked for by `Kashi-Min-Position`; at once where nothing was. Waits for two seconds at
/// most, then refuses with 503 `read.behind`.
#[derive(Debug, Clone, Copy)]
pub struct Fresh;

impl<S: Send + Sync> FromRequestParts<S> for Fresh
where
    Kit: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if let Some(position) = asked(parts)? {
            Kit::from_ref(state).progress.shown(position).await?;
        }
        Ok(Self)
    }
}

fn asked(parts: &Parts) -> Result<Option<i64>, Problem> {
    let mut sent = parts.headers.get_all(MIN_POSITION).into_iter();
    let Some(first) = sent.next() else { return Ok(None) };
    let position = first.to_str().ok().and_then(|text| text.parse().ok()).filter(|position: &i64| *position >= 0);
    match position.filter(|_| sent.next().is_none()) {
        Some(position) => Ok(Some(position)),
        None => {
            let detail = "`Kashi-Min-Position` is sent once and is a position of the log: a whole number from 0 on";
            Err(Problem::new(StatusCode::BAD_REQUEST, "request.bad_position", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(values: &[&str]) -> Parts {
        let request =
            values.iter().fold(axum::http::Request::builder(), |request, value| request.header(MIN_POSITION, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn is_a_position_or_nothing() {
        assert_eq!(asked(&parts(&[])), Ok(None));
        assert_eq!(asked(&parts(&["7"])), Ok(Some(7)));
        for bad in [&[""][..], &["-1"], &["x"], &["1.5"], &["9223372036854775808"], &["1", "1"]] {
            assert_eq!(asked(&parts(bad)).unwrap_err().code(), "request.bad_position", "{bad:?}");
        }
    }
}
