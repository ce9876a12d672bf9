//! Jobs: submitting, watching, cancelling, and what each has cost.

use crate::account::{Wanted, contract, priced};
use crate::describe::needs;
use crate::line::line;
use crate::prices::whole;
use crate::tree;
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use axum::http::StatusCode;
use domain::allocation::{self, Demand, Job, job};
use domain::flows::quota_key;
use domain::kernel::{Ancestors, JobId, MILLI, Model, Resource, TenantId};
use domain::quota::Allowance;
use kit::permission::{BillRead, JobCancel, JobRead, JobSubmit};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Scope, Written};
use projections::{charges, jobs};
use serde::Deserialize;
use std::collections::BTreeMap;
use store::{Page, Slice};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "job.not_found";
const NAME_LENGTH_MAX: usize = 64;
const MEMORY_MIB: i64 = 512;

type Jobs = Slice<jobs::Job>;
type Charges = Slice<charges::Charge>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<JobSubmit>(routes!(submit_job)))
        .routes(needs::<JobRead>(routes!(list_jobs)))
        .routes(needs::<JobRead>(routes!(read_job)))
        .routes(needs::<JobCancel>(routes!(cancel_job)))
        .routes(needs::<BillRead>(routes!(list_charges_of_job)))
}

/// A job to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewJob {
    /// What people call it: 1 to 64 characters; the program's name, unless it is said.
    name: Option<String>,
    /// The program and its arguments.
    command: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Where it starts on the node; in a folder of its own, unless it is said.
    folder: Option<String>,
    /// The cards that it needs, all on one node.
    cards: Option<Cards>,
    /// Thousandths of a core; 1000, or 1000 for each card, unless it is said.
    #[schema(minimum = 1)]
    milli_cores: Option<i64>,
    /// Memory in MiB; 512, unless it is said.
    #[schema(minimum = 1)]
    memory_mib: Option<i64>,
    /// It is ended after so many seconds of running.
    #[schema(minimum = 1)]
    time_limit_s: Option<i64>,
    /// How often it is started again after its node was lost: 0 to 100; not at all, unless it is said. The variable
    /// `KASHI_RESTART` tells it which time it is, and what it keeps in `KASHI_CHECKPOINT_DIR` is there again on the same
    /// node.
    #[serde(default)]
    #[schema(maximum = 100)]
    restarts: u32,
}

/// So many cards of one model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cards {
    #[schema(value_type = String)]
    model: Model,
    #[schema(minimum = 1)]
    count: u32,
}

/// Why a job is cancelled.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cancellation {
    /// 1 to 200 characters.
    reason: Option<String>,
}

/// Which jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Those that have ended too.
    #[serde(default)]
    all: bool,
}

impl NewJob {
    fn spec(self) -> job::Spec {
        let cards = self.cards.map(|Cards { model, count }| allocation::Cards { model, count });
        let cores = i64::from(cards.as_ref().map_or(1, |cards| cards.count.max(1)));
        job::Spec {
            name: self.name.unwrap_or_else(|| program(&self.command)),
            command: self.command,
            env: self.env,
            folder: self.folder,
            demand: Demand {
                cards,
                milli_cores: self.milli_cores.unwrap_or(cores * MILLI),
                memory_mib: self.memory_mib.unwrap_or(MEMORY_MIB),
            },
            time_limit_s: self.time_limit_s,
            restarts: self.restarts,
        }
    }
}

/// The name of a command's program, as far as it may be a job's name.
fn program(command: &[String]) -> String {
    let path = command.first().map(String::as_str).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_LENGTH_MAX).collect();
    if shown.is_empty() { "job".into() } else { shown }
}

/// Submit a job.
#[utoipa::path(
    post,
    path = "/jobs",
    request_body = NewJob,
    responses((status = 201, body = Named, description = "It waits for quota, money and a place."))
)]
async fn submit_job(
    State(kit): State<Kit>,
    can: Can<JobSubmit>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewJob>,
) -> Result<Written<Named>, Problem> {
    let (tenant, by) = (can.actor().tenant, can.actor().member);
    let write = Write::by(&kit, can.actor(), &key, &digest);
    let id: JobId = write.new_id();
    if let Some(before) = write.made_before::<Job, _>(id, id.into()).await? {
        return Ok(before);
    }
    let spec = asked.spec();
    let resource = spec.demand.resource();
    let above = tree::active(&kit, tenant).await?;
    let terms = contract(&kit, tenant, &above).await?;
    ordered(&kit, tenant, &above, &resource).await?;
    let bill_to = priced(&kit, &terms, Wanted::Resource(resource)).await?.bill_to;
    let command = job::Command::Submit(job::Submission { tenant, above, by, spec, bill_to });
    write.make::<Job, _>(id, command, id.into()).await
}

/// 409, unless the tenant has an active order of a resource.
async fn ordered(kit: &Kit, tenant: TenantId, above: &Ancestors, resource: &Resource) -> Result<(), Problem> {
    let quota = kit.executor.load::<Allowance>(quota_key(above.root(tenant), resource)).await?.state;
    if quota.at(&above.below_root(tenant)).ordered_milli > 0 {
        return Ok(());
    }
    let detail = format!("the tenant has no active order of `{resource}`, so none of it may be used");
    let hint = format!("order it first and have the order approved: kashi order --resource {resource} --quantity 1");
    Err(Problem::new(StatusCode::CONFLICT, "quota.nothing_ordered", detail).with_hint(hint))
}

/// List the jobs that are in reach, newest first.
#[utoipa::path(get, path = "/jobs", params(Which, Page), responses((status = 200, body = Jobs, description = "Jobs.")))]
async fn list_jobs(
    State(kit): State<Kit>,
    can: Can<JobRead>,
    _: Fresh,
    Query(which): Query<Which>,
    Query(page): Query<Page>,
) -> Result<axum::Json<Jobs>, Problem> {
    Ok(axum::Json(jobs::of(&kit.read, can.scope().whose(), which.all, &page).await?))
}

/// Read a job.
#[utoipa::path(
    get,
    path = "/jobs/{id}",
    params(("id" = store::JobId, Path)),
    responses((status = 200, body = jobs::Job, description = "The job."))
)]
async fn read_job(
    State(kit): State<Kit>,
    can: Can<JobRead>,
    _: Fresh,
    Path(id): Path<store::JobId>,
) -> Result<axum::Json<jobs::Job>, Problem> {
    seen(&kit, can.scope(), id).await.map(axum::Json)
}

/// Cancel a job; what has run is billed.
#[utoipa::path(
    post,
    path = "/jobs/{id}/cancel",
    params(("id" = store::JobId, Path)),
    request_body = Cancellation,
    responses((status = 200, body = Named, description = "Its end is asked for."))
)]
async fn cancel_job(
    State(kit): State<Kit>,
    can: Can<JobCancel>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::JobId>,
    Json(asked, digest): Json<Cancellation>,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Job>(&kit, can.scope(), id, NOT_FOUND).await?;
    let reason = line("/reason", asked.reason.unwrap_or_else(|| format!("cancelled by {}", can.actor().handle)))?;
    let command = job::Command::Cancel { by: can.actor().member, reason };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Job, _>(id, command, id.into()).await
}

/// List what a job has cost, in the order in which it was charged.
#[utoipa::path(
    get,
    path = "/jobs/{id}/charges",
    params(("id" = store::JobId, Path)),
    responses((status = 200, body = Charges, description = "Charges, all on one page."))
)]
async fn list_charges_of_job(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Path(id): Path<store::JobId>,
) -> Result<axum::Json<Charges>, Problem> {
    seen(&kit, can.scope(), id).await?;
    whole(charges::of_job(&kit.read, id).await?)
}

/// A job that is in scope.
pub(crate) async fn seen(kit: &Kit, scope: Scope, id: store::JobId) -> Result<jobs::Job, Problem> {
    match jobs::find(&kit.read, id).await? {
        Some(job) if scope.sees(kit, job.tenant.0).await? => Ok(job),
        Some(_) | None => Err(Problem::not_found(NOT_FOUND)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_called_like_its_program_unless_it_is_named() {
        let name = |command: &[&str]| program(&command.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(name(&["/usr/bin/python3", "train.py"]), "python3");
        assert_eq!(name(&["a\u{7}b"]), "ab");
        assert_eq!((name(&[]), name(&["bin/"])), ("job".into(), "job".into()));
        assert_eq!(name(&[&"x".repeat(65)]).len(), NAME_LENGTH_MAX);
    }

    #[test]
    fn has_a_core_for_each_card_unless_it_is_said() {
        let spec = |json: &str| serde_json::from_str::<NewJob>(json).unwrap().spec().demand;
        assert_eq!(spec(r#"{"command":["a"]}"#), Demand { cards: None, milli_cores: 1000, memory_mib: 512 });
        let cards = r#"{"command":["a"],"cards":{"model":"a100","count":4}}"#;
        assert_eq!((spec(cards).milli_cores, spec(cards).milli()), (4000, 4000));
        let own = r#"{"command":["a"],"milli_cores":250,"memory_mib":64}"#;
        assert_eq!((spec(own).milli_cores, spec(own).memory_mib), (250, 64));
    }
}
