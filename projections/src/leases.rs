//! Leases: who holds what of which node. Table `leases`.

use domain::Event;
use domain::allocation::lease;
use domain::kernel::Recorded;
use store::{Db, Id, JobId, LeaseId, NodeId, Result, TenantId, Time, Tx};

/// A lease.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Lease {
    /// Its id.
    pub id: LeaseId,
    /// What runs under it.
    pub job: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where.
    pub node: NodeId,
    /// How many cards.
    pub cards: i64,
    /// Thousandths of a core.
    pub milli_cores: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Where it stands.
    pub status: LeaseStatus,
    /// When it was granted.
    pub granted_at: Time,
    /// Since when its work runs, by the node's clock.
    pub started_at: Option<Time>,
    /// When it ended, by the node's clock.
    pub ended_at: Option<Time>,
}

/// Where a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, async_graphql::Enum, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// Its work is not running yet.
    Granted,
    /// Its work runs.
    Running,
    /// It is over.
    Ended,
    /// It was over before it began.
    Voided,
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Lease(event) = event else { return Ok(()) };
    let id = stored.stream.key().to_owned();
    let change = match event {
        lease::Event::Granted(grant) => tx
            .sql(
                "insert into leases (id, job, tenant, node, cards, milli_cores, memory_mib, status, granted_at)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            )
            .bind(id)
            .bind(Id(grant.job))
            .bind(Id(grant.tenant))
            .bind(Id(grant.node))
            .bind(i64::try_from(grant.cards.len()).unwrap_or(i64::MAX))
            .bind(grant.milli_cores)
            .bind(grant.memory_mib)
            .bind(LeaseStatus::Granted)
            .bind(Time::from(stored.meta.occurred_at)),
        lease::Event::Started { at } => tx
            .sql("update leases set status = $2, started_at = $3 where id = $1")
            .bind(id)
            .bind(LeaseStatus::Running)
            .bind(Time::from(*at)),
        lease::Event::Ended { at, .. } => tx
            .sql("update leases set status = $2, ended_at = $3 where id = $1")
            .bind(id)
            .bind(LeaseStatus::Ended)
            .bind(Time::from(*at)),
        lease::Event::Voided => {
            tx.sql("update leases set status = $2 where id = $1").bind(id).bind(LeaseStatus::Voided)
        }
    };
    change.run().await?;
    Ok(())
}

/// One lease.
pub async fn find(db: &Db, lease: LeaseId) -> Result<Option<Lease>> {
    db.sql("select * from leases where id = $1").bind(lease).optional().await
}
