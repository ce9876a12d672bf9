//! Read models as an operator sees them: how far each is, which have stopped, and making them anew while reads go on.

use crate::describe::needs;
use axum::extract::State;
use kit::permission::{AuditRead, ProjectionManage};
use kit::versions::{Status, Version};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Problem, Written};
use projections::ALL;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<AuditRead>(routes!(list_projections)))
        .routes(needs::<ProjectionManage>(routes!(rebuild_projections)))
}

/// The read models of the platform.
#[derive(Debug, Serialize, ToSchema)]
struct ReadModels {
    /// The version that is served.
    serving: i64,
    /// The log's last position, as the server that answers knows it.
    log_position: i64,
    /// Every read model.
    items: Vec<ReadModel>,
    /// Which versions were served, are, or are in the making, newest first.
    versions: Vec<Version>,
}

/// A read model: what is folded from the log into tables of its own.
#[derive(Debug, Serialize, ToSchema)]
struct ReadModel {
    name: &'static str,
    tables: Vec<&'static str>,
    /// The position of the log up to which it is folded.
    position: i64,
    /// The position of the event that could not be folded, where it has stopped.
    stopped_position: Option<i64>,
    /// Why it has stopped.
    stopped_cause: Option<String>,
}

/// What is made anew.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rebuild {
    /// One read model; all of them where there is none.
    name: Option<String>,
}

/// List the read models, and how far each is.
#[utoipa::path(
    get,
    path = "/projections",
    responses((status = 200, body = ReadModels, description = "The read models."))
)]
async fn list_projections(
    State(kit): State<Kit>,
    _: Can<AuditRead>,
    _: Fresh,
) -> Result<axum::Json<ReadModels>, Problem> {
    let stops = kit.progress.stops();
    let mut items = Vec::with_capacity(ALL.len());
    for (name, tables) in ALL {
        let position = store::checkpoint_of(&kit.read, name).await?;
        let stop = stops.get(name);
        items.push(ReadModel {
            name,
            tables: tables.to_vec(),
            position,
            stopped_position: stop.map(|stop| stop.position),
            stopped_cause: stop.map(|stop| stop.cause.clone()),
        });
    }
    let serving = kit.runtime.serving().await?;
    let log_position = *kit.executor.log().head().borrow();
    Ok(axum::Json(ReadModels { serving, log_position, items, versions: kit.runtime.versions().await? }))
}

/// Make one read model anew from the log, or all of them, while reads go on.
///
/// The old ones are served until the new ones show as much; `GET /projections` tells how far that is.
#[utoipa::path(
    post,
    path = "/projections/rebuild",
    request_body = Rebuild,
    responses((status = 202, body = Version, description = "It is begun."))
)]
async fn rebuild_projections(
    State(kit): State<Kit>,
    can: Can<ProjectionManage>,
    key: IdempotencyKey,
    Json(asked, _): Json<Rebuild>,
) -> Result<Written<Version>, Problem> {
    let name = asked.name.as_deref();
    if name.is_some_and(|name| ALL.iter().all(|(known, _)| *known != name)) {
        let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        let detail = "there is no read model of this name";
        return Err(Problem::invalid("projection.unknown", detail)
            .with_field("/name", detail)
            .with_hint(format!("there are {}", names.join(", "))));
    }
    let command = key.command(can.actor());
    let version = kit.runtime.ask_rebuild(name, Some(command), kit.clock.now()).await?;
    if version.command != Some(command.into()) && matches!(version.status, Status::Asked | Status::Building) {
        let detail = format!("version {} of the read models is in the making", version.version);
        return Err(Problem::new(axum::http::StatusCode::CONFLICT, "projection.busy", detail)
            .with_hint("wait until it is served: GET /api/v1/projections"));
    }
    if version.model != asked.name {
        return Err(eventlog::LogError::CommandReused.into());
    }
    Ok(Written::accepted(kit.progress.read_models(), command, version))
}
