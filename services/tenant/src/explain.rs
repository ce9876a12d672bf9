//! From a line of a statement down to the events: each charge, the job and lease that it is for, and all that happened.
//!
//! Owns: finding the events of a charge. Does not own: showing one (`events`).
//! Invariant: every event that is named may be read by who may read the statement.

use crate::describe::needs;
use crate::statements::seen;
use axum::extract::State;
use domain::Event;
use domain::allocation::{Job, Lease, lease};
use domain::kernel::{Aggregate, Recorded, StreamName};
use domain::metering::Meter;
use kit::permission::BillRead;
use kit::{Can, Fresh, Kit, Path, Problem, Query};
use projections::charges::{self, Charge};
use projections::{jobs, leases, statements};
use rust_decimal::Decimal;
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use store::{Page, Slice, Time};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

/// How many events of one stream are named at most.
const EVENTS_MAX: usize = 1000;
/// How many decimal places a share has.
const SHARE_SCALE: u32 = 8;

type Explanations = Slice<Explained>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<BillRead>(routes!(explain_line)))
}

/// What a line's charge comes from.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Explained {
    charge: Charge,
    job: JobOfCharge,
    lease: Option<leases::Lease>,
    /// Which part of the line's quantity it is, from 0 to 1, as decimal text; below 0 for a correction.
    share: String,
    /// What happened, in order: the job's, the lease's and the meter's events, the placement and the charge itself.
    events: Vec<EventOfCharge>,
}

/// The job that a charge is for.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct JobOfCharge {
    id: store::JobId,
    name: Option<String>,
    /// The command, as a shell would show it.
    command: Option<String>,
}

/// An event, and where to read it.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct EventOfCharge {
    /// Its place in the log.
    position: i64,
    /// Such as `lease.started`.
    kind: String,
    occurred_at: Time,
    stream: String,
    /// Where the whole event is.
    href: String,
}

/// Explain a statement's line, charge by charge, as far as the charges are in reach.
#[utoipa::path(
    get,
    path = "/statements/{id}/lines/{sku}/{price_version}/explain",
    params(("id" = store::StatementId, Path), ("sku" = String, Path), ("price_version" = i64, Path), Page),
    responses((status = 200, body = Explanations, description = "Charges, with what they come from."))
)]
async fn explain_line(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Path((id, sku, price_version)): Path<(store::StatementId, String, i64)>,
    Query(page): Query<Page>,
) -> Result<axum::Json<Explanations>, Problem> {
    seen(&kit, can.scope(), id).await?;
    let lines = statements::lines(&kit.read, id).await?;
    let line = lines.into_iter().find(|line| line.sku == sku && line.price_version == price_version);
    let line = line.ok_or_else(|| Problem::not_found("statement.line_not_found"))?;
    let of = charges::OnLine { statement: id, sku: &sku, price_version };
    let page = charges::of_line(&kit.read, can.scope().whose(), of, &page).await?;
    let mut known = HashMap::new();
    let mut items = Vec::with_capacity(page.items.len());
    for charge in page.items {
        let of = match known.entry(charge.lease) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Use::of(&kit, &charge).await?),
        };
        items.push(of.explain(&kit, charge, line.quantity).await?);
    }
    Ok(axum::Json(Slice { items, next_cursor: page.next_cursor }))
}

/// What all charges of a lease share.
struct Use {
    job: JobOfCharge,
    lease: Option<leases::Lease>,
    events: Vec<Recorded>,
}

impl Use {
    async fn of(kit: &Kit, charge: &Charge) -> Result<Self, Problem> {
        let job = jobs::find(&kit.read, charge.job).await?;
        let streams = [
            StreamName::new(Job::STREAM, charge.job),
            StreamName::new(Lease::STREAM, charge.lease),
            StreamName::new(Meter::STREAM, charge.lease),
        ];
        let mut events = vec![];
        for stream in &streams {
            events.extend(kit.executor.log().read_stream(stream, 0, EVENTS_MAX).await?);
        }
        if let Some(generation) = events.iter().find_map(generation) {
            events.extend(at(kit, generation).await?);
        }
        Ok(Self {
            job: JobOfCharge {
                id: charge.job,
                name: job.as_ref().map(|job| job.name.clone()),
                command: job.map(|job| job.command),
            },
            lease: leases::find(&kit.read, charge.lease).await?,
            events,
        })
    }

    async fn explain(&self, kit: &Kit, charge: Charge, whole: i64) -> Result<Explained, Problem> {
        let charged = at(kit, charge.position).await?;
        let events: BTreeMap<i64, EventOfCharge> =
            self.events.iter().chain(&charged).map(|stored| (stored.position, named(stored))).collect();
        Ok(Explained {
            share: share(charge.quantity, whole),
            charge,
            job: self.job.clone(),
            lease: self.lease.clone(),
            events: events.into_values().collect(),
        })
    }
}

/// The event at a position.
async fn at(kit: &Kit, position: i64) -> Result<Option<Recorded>, Problem> {
    let found = kit.executor.log().read_all(position - 1, 1).await?.into_iter().next();
    Ok(found.filter(|stored| stored.position == position))
}

/// The position of the placement, where this is the grant of a lease.
fn generation(stored: &Recorded) -> Option<i64> {
    match Event::read(stored) {
        Ok(Event::Lease(lease::Event::Granted(grant))) => Some(grant.generation),
        _ => None,
    }
}

fn named(stored: &Recorded) -> EventOfCharge {
    EventOfCharge {
        position: stored.position,
        kind: stored.kind.clone(),
        occurred_at: stored.meta.occurred_at.into(),
        stream: stored.stream.to_string(),
        href: format!("{}/events/{}", crate::BASE, stored.position),
    }
}

fn share(part: i64, whole: i64) -> String {
    let share = Decimal::from(part).checked_div(Decimal::from(whole)).unwrap_or_default();
    share.round_dp(SHARE_SCALE).normalize().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact_to_eight_places() {
        assert_eq!((share(1, 4), share(1, 3), share(-1, 2)), ("0.25".into(), "0.33333333".into(), "-0.5".into()));
        assert_eq!((share(5, 5), share(0, 0)), ("1".into(), "0".into()));
    }
}
