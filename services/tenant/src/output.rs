//! The output of a job as bytes, readable while it grows.
//!
//! Invariants: bytes come as the job wrote them; the end is told only once the job is over and all its output was given;
//! who waits is woken by what comes and never asks in a circle.

use crate::describe::needs;
use crate::jobs::seen;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use kit::permission::JobRead;
use kit::{Can, Fresh, Kit, Path, Problem, Query, Scope};
use projections::jobs::Job;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The header that says where the next bytes start.
const NEXT_OFFSET: HeaderName = HeaderName::from_static("kashi-next-offset");
/// The header that says that there will be no more.
const END: HeaderName = HeaderName::from_static("kashi-output-end");
const WAIT_S_MAX: u64 = 20;
/// How often to look for what another server was brought.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long after its end a job's last output is waited for.
const LATE_MAX: TimeDelta = TimeDelta::minutes(1);

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<JobRead>(routes!(read_output)))
}

/// From where on, and how long to wait for it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct From {
    /// The first byte that is wanted: `Kashi-Next-Offset` of the answer before.
    #[serde(default)]
    #[param(minimum = 0, default = 0)]
    offset: u64,
    /// How many seconds to wait where there is nothing yet.
    #[serde(default)]
    #[param(minimum = 0, maximum = 20, default = 0)]
    wait_s: u64,
}

/// Read a job's output.
#[utoipa::path(get, path = "/jobs/{id}/output", params(("id" = store::JobId, Path), From), responses((
    status = 200,
    content(("application/octet-stream")),
    description = "Bytes; none where there are none yet.",
    headers(
        ("Kashi-Next-Offset" = i64, description = "Where the next bytes start."),
        ("Kashi-Output-End" = String, description = "`true` once the job is over and this was the last of its output."),
    ),
)))]
async fn read_output(
    State(kit): State<Kit>,
    can: Can<JobRead>,
    _: Fresh,
    Path(id): Path<store::JobId>,
    Query(From { offset, wait_s }): Query<From>,
) -> Result<Response, Problem> {
    if wait_s > WAIT_S_MAX {
        let detail = format!("`wait_s` is from 0 to {WAIT_S_MAX}");
        return Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, "request.bad_query", detail));
    }
    let until = Instant::now() + Duration::from_secs(wait_s);
    let (mut grown, mut moved) = (kit.outputs.grown(), kit.progress.moved());
    loop {
        grown.borrow_and_update();
        moved.borrow_and_update();
        let (bytes, end) = part(&kit, can.scope(), id, offset).await?;
        let news = async {
            tokio::select! {
                _ = grown.changed() => {}
                _ = moved.changed() => {}
                // Another server may have kept it.
                () = sleep(LOOK_AGAIN) => {}
            }
        };
        if !bytes.is_empty() || end || Instant::now() >= until || timeout_at(until, news).await.is_err() {
            return Ok(answer(offset, bytes, end));
        }
    }
}

/// The bytes from an offset on, and whether they are the last.
async fn part(kit: &Kit, scope: Scope, id: store::JobId, offset: u64) -> Result<(Vec<u8>, bool), Problem> {
    let job = seen(kit, scope, id).await?;
    let Some(lease) = job.lease else { return Ok((vec![], job.status.is_final())) };
    let failed = |error: std::io::Error| Problem::internal(&error);
    let total = kit.outputs.total(lease.0).await.map_err(failed)?;
    let bytes = kit.outputs.read(lease.0, offset).await.map_err(failed)?;
    let next = offset + bytes.len() as u64;
    let size = kit.outputs.size(lease.0).await.map_err(failed)?;
    let whole = total.is_none_or(|total| size >= total) || is_late(kit, &job);
    Ok((bytes, job.status.is_final() && whole && next >= size))
}

/// Whether the last output has had its time to come.
fn is_late(kit: &Kit, job: &Job) -> bool {
    job.ended_at.is_some_and(|end| kit.clock.now() - end.at() > LATE_MAX)
}

fn answer(offset: u64, bytes: Vec<u8>, end: bool) -> Response {
    let next = offset + bytes.len() as u64;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))];
    let mut response = (kind, bytes).into_response();
    response.headers_mut().insert(NEXT_OFFSET, next.into());
    if end {
        response.headers_mut().insert(END, HeaderValue::from_static("true"));
    }
    response
}
