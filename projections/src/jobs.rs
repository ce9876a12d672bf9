//! Jobs as the tenant and the portal see them. Table `jobs`.

use crate::Whose;
use domain::Event;
use domain::allocation::job::{self, Outcome, Refusal};
use domain::kernel::{MILLI, Recorded, money};
use store::{Db, Id, JobId, Keyset, LeaseId, MemberId, NodeId, Page, Resource, Result, Slice, TenantId, Time, Tx};

/// A job.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The log position of its first event; lists are in this order.
    pub position: i64,
    /// Whose it is.
    pub tenant: TenantId,
    /// Who submitted it.
    pub submitted_by: MemberId,
    /// What people call it.
    pub name: String,
    /// The command, as a shell would show it.
    pub command: String,
    /// What is charged.
    pub resource: Resource,
    /// How much of it, in thousandths of a card or core.
    pub milli: i64,
    /// Where it stands.
    pub status: JobStatus,
    /// Why it waits, or how it ended.
    pub detail: Option<String>,
    /// The process's own exit code.
    pub exit_code: Option<i64>,
    /// The right under which it runs, or last ran.
    pub lease: Option<LeaseId>,
    /// Where it runs.
    pub node: Option<NodeId>,
    /// The cards by their index on the node, separated by commas.
    pub cards: Option<String>,
    /// Whether its end was asked for.
    pub cancel_requested: bool,
    /// How often it was started again after it was lost with its node.
    pub restarts: i64,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its process started, by the node's clock.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, async_graphql::Enum, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waits for quota and money.
    Submitted,
    /// Waits for a place.
    Queued,
    /// Has a place; its process is being started.
    Starting,
    /// Its process runs.
    Running,
    /// Ended with code 0.
    Succeeded,
    /// Ended in another way by itself.
    Failed,
    /// Ended because somebody asked for it.
    Cancelled,
    /// Ended because its time was over.
    TimedOut,
    /// Was not let in.
    Refused,
}

impl JobStatus {
    /// Whether nothing will change any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Submitted | Self::Queued | Self::Starting | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Refused => true,
        }
    }
}

impl Keyset for Job {
    fn cursor(&self) -> String {
        self.position.to_string()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Job(event) = event else { return Ok(()) };
    let id = stored.stream.key().to_owned();
    let change = match event {
        job::Event::Submitted(submission) => return submit(tx, stored, submission).await,
        job::Event::QuotaQueued { wanted_milli, free_milli } => {
            let detail = format!("quota: {} wanted, {} free", units(*wanted_milli), units(*free_milli));
            tx.sql("update jobs set detail = $2 where id = $1").bind(id).bind(detail)
        }
        job::Event::Admitted => {
            tx.sql("update jobs set status = $2, detail = null where id = $1").bind(id).bind(JobStatus::Queued)
        }
        job::Event::Placed { lease, node, cards } => {
            let cards: Vec<String> = cards.iter().map(ToString::to_string).collect();
            tx.sql("update jobs set status = $2, lease = $3, node = $4, cards = $5 where id = $1")
                .bind(id)
                .bind(JobStatus::Starting)
                .bind(Id(*lease))
                .bind(Id(*node))
                .bind(cards.join(","))
        }
        job::Event::Started { at, .. } => tx
            .sql("update jobs set status = $2, started_at = $3 where id = $1")
            .bind(id)
            .bind(JobStatus::Running)
            .bind(Time::from(*at)),
        job::Event::CancelRequested { reason, .. } => tx
            .sql("update jobs set cancel_requested = $2, detail = $3 where id = $1")
            .bind(id)
            .bind(true)
            .bind(reason.clone()),
        job::Event::Requeued { outcome, restarts_left, .. } => {
            let why = ending(outcome).2.unwrap_or_default();
            tx.sql(
                "update jobs set status = $2, detail = $3, node = null, cards = null, started_at = null,
                                 restarts = restarts + 1
                 where id = $1",
            )
            .bind(id)
            .bind(JobStatus::Queued)
            .bind(format!("{why}; it starts again, {restarts_left} more restarts are left"))
        }
        job::Event::Ended { outcome, at } => {
            let (status, code, detail) = ending(outcome);
            tx.sql("update jobs set status = $2, exit_code = $3, detail = coalesce($4, detail), ended_at = $5 where id = $1")
                .bind(id)
                .bind(status)
                .bind(code)
                .bind(detail)
                .bind(Time::from(at.unwrap_or(stored.meta.occurred_at)))
        }
        job::Event::AdmissionVoided | job::Event::PlacementVoided { .. } => return Ok(()),
    };
    change.run().await?;
    Ok(())
}

async fn submit(tx: &mut Tx, stored: &Recorded, submission: &job::Submission) -> Result<()> {
    let spec = &submission.spec;
    tx.sql(
        "insert into jobs (id, tenant, submitted_by, name, command, resource, milli, status, cancel_requested,
                           submitted_at, position)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(stored.stream.key().to_owned())
    .bind(Id(submission.tenant))
    .bind(Id(submission.by))
    .bind(spec.name.clone())
    .bind(spec.command.join(" "))
    .bind(Resource(spec.demand.resource()))
    .bind(spec.demand.milli())
    .bind(JobStatus::Submitted)
    .bind(false)
    .bind(Time::from(stored.meta.occurred_at))
    .bind(stored.position)
    .run()
    .await?;
    Ok(())
}

fn units(milli: i64) -> rust_decimal::Decimal {
    (rust_decimal::Decimal::from(milli) / rust_decimal::Decimal::from(MILLI)).normalize()
}

/// The status, the process's exit code, and what a person is told.
fn ending(outcome: &Outcome) -> (JobStatus, Option<i64>, Option<String>) {
    match outcome {
        Outcome::Succeeded => (JobStatus::Succeeded, Some(0), None),
        Outcome::Failed { code } => (JobStatus::Failed, Some(i64::from(*code)), Some(format!("exit code {code}"))),
        Outcome::Killed { signal } => (JobStatus::Failed, None, Some(format!("killed by signal {signal}"))),
        Outcome::TimedOut => (JobStatus::TimedOut, None, Some("its time limit was over".into())),
        Outcome::Cancelled => (JobStatus::Cancelled, None, None),
        Outcome::NotStarted { reason } => (JobStatus::Failed, None, Some(format!("could not be started: {reason}"))),
        Outcome::Vanished => {
            (JobStatus::Failed, None, Some("it is gone from its node and nobody saw how it ended".into()))
        }
        Outcome::Lost => (JobStatus::Failed, None, Some("lost: its node was not heard of any more".into())),
        Outcome::Refused { reason } => (JobStatus::Refused, None, Some(refusal(reason))),
    }
}

fn refusal(reason: &Refusal) -> String {
    match reason {
        Refusal::Quota { wanted_milli, ordered_milli } => {
            format!("quota: {} wanted, {} ordered in all", units(*wanted_milli), units(*ordered_milli))
        }
        Refusal::Money { wanted, available } => {
            format!(
                "wallet: {} wanted for the first hour, {} available",
                money::shown(*wanted),
                money::shown(*available)
            )
        }
        Refusal::NoPrice { sku } => format!("price: the price book has none for {sku} now"),
    }
}

/// The jobs of these tenants, newest first; those that have ended only if `ended`.
pub async fn of(db: &Db, whose: Whose, ended: bool, page: &Page) -> Result<Slice<Job>> {
    let rows = db
        .sql(
            "select * from jobs
             where (tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2))
               and position < $3 and (ended_at is null or $4)
             order by position desc limit $5",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(page.after_or(i64::MAX)?)
        .bind(ended)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// One job.
pub async fn find(db: &Db, job: JobId) -> Result<Option<Job>> {
    db.sql("select * from jobs where id = $1").bind(job).optional().await
}

/// The job that has a lease.
pub async fn of_lease(db: &Db, lease: LeaseId) -> Result<Option<Job>> {
    db.sql("select * from jobs where lease = $1").bind(lease).optional().await
}
