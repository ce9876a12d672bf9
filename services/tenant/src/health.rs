//! Whether the server answers, and how far its read models and flows are.

use crate::describe::anyone;
use axum::{Json, extract::State};
use kit::Kit;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(anyone(routes!(health)))
}

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`, or `degraded` where a read model has stopped: what it shows is old, and months are not closed.
    status: &'static str,
    /// The server's version.
    version: &'static str,
    /// The position of the log up to which reads show everything.
    read_models_at: i64,
    /// The position of the log up to which everything that follows was done.
    flows_at: i64,
    /// The log's last position, as this server knows it.
    log_at: i64,
    /// The read models that have stopped; `GET /api/v1/projections` says why.
    stopped: Vec<&'static str>,
}

/// Ask whether the server answers.
#[utoipa::path(get, path = "/health", responses((status = 200, body = Health, description = "It answers.")))]
async fn health(State(kit): State<Kit>) -> Json<Health> {
    let stopped: Vec<_> = kit.progress.stops().into_keys().collect();
    Json(Health {
        status: if stopped.is_empty() { "ok" } else { "degraded" },
        version: env!("CARGO_PKG_VERSION"),
        read_models_at: kit.progress.read_models(),
        flows_at: kit.progress.flows(),
        log_at: *kit.executor.log().head().borrow(),
        stopped,
    })
}
