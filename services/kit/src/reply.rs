//! The answer to a write: what was made, and how far a reader has to be to see it.
//!
//! Owns: `Kashi-Position` and `Kashi-Correlation`. Does not own: waiting for a position (the reads).

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use domain::kernel::CommandId;
use serde::Serialize;

/// The header with the log position of the write's last event.
pub const POSITION: HeaderName = HeaderName::from_static("kashi-position");
/// The header with what all that follows from the write shares.
pub const CORRELATION: HeaderName = HeaderName::from_static("kashi-correlation");

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written<T> {
    pub status: StatusCode,
    /// The log position of the last event. Read models that have it show the write.
    pub position: i64,
    /// What all that follows from the write shares.
    pub correlation: CommandId,
    pub body: T,
}

impl<T> Written<T> {
    /// Something was made (201).
    pub fn created(position: i64, correlation: CommandId, body: T) -> Self {
        Self { status: StatusCode::CREATED, position, correlation, body }
    }

    /// Something was begun, and goes on (202).
    pub fn accepted(position: i64, correlation: CommandId, body: T) -> Self {
        Self { status: StatusCode::ACCEPTED, position, correlation, body }
    }

    /// Something was changed (200).
    pub fn changed(position: i64, correlation: CommandId, body: T) -> Self {
        Self { status: StatusCode::OK, position, correlation, body }
    }
}

impl<T: Serialize> IntoResponse for Written<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, [(POSITION, self.position.to_string())], Json(self.body)).into_response();
        if let Ok(value) = HeaderValue::from_str(&self.correlation.to_string()) {
            response.headers_mut().insert(CORRELATION, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::kernel::{Id, TenantId};

    #[test]
    fn tells_where_it_is_in_the_log() {
        let correlation = CommandId::derived(TenantId::PLATFORM, "1");
        let response = Written::created(7, correlation, "made").into_response();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()[POSITION], "7");
        assert_eq!(response.headers()[CORRELATION], correlation.to_string());
    }
}
