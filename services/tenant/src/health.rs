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
    /// `ok`, where it answers at all.
    status: &'static str,
    /// The server's version.
    version: &'static str,
    /// The position of the log up to which reads show everything.
    read_models_at: i64,
    /// The position of the log up to which everything that follows was done.
    flows_at: i64,
}

/// Ask whether the server answers.
#[utoipa::path(get, path = "/health", responses((status = 200, body = Health, description = "It answers.")))]
async fn health(State(kit): State<Kit>) -> Json<Health> {
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        read_models_at: kit.progress.read_models(),
        flows_at: kit.progress.flows(),
    })
}
