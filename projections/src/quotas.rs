//! Quotas: the ceiling, what orders hold under it, what jobs hold under the orders. Tables `quotas`, `quota_holds`.

use domain::Event;
use domain::flows::quota_of;
use domain::kernel::{MILLI, Recorded};
use domain::quota::allowance;
use store::{Db, Id, Keyset, Page, Resource, Result, Slice, TenantId, Tx};

/// A tenant's quota of a resource, in cards or cores; fractions of a core are cut.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Quota {
    /// Whose it is.
    pub tenant: TenantId,
    /// Of what.
    pub resource: Resource,
    /// How much may be ordered.
    pub ceiling: i64,
    /// How much is ordered and active.
    pub ordered: i64,
    /// How much jobs hold of that.
    pub in_use: i64,
    /// How many jobs wait for it.
    pub waiting: i64,
}

impl Keyset for Quota {
    fn cursor(&self) -> String {
        format!("{}/{}", self.tenant.0, self.resource.0)
    }
}

const ORDER: &str = "order";
const JOB: &str = "job";
const WAITING: &str = "waiting";

/// Folds one event into the tables.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Quota(event) = event else { return Ok(()) };
    let Some((tenant, resource)) = quota_of(stored.stream.key()) else { return Ok(()) };
    let (tenant, resource) = (Id(tenant), Resource(resource));
    let (holder, kind, milli) = match event {
        allowance::Event::Opened { .. } | allowance::Event::OrderReleaseRefused { .. } => return Ok(()),
        allowance::Event::CeilingSet { milli, .. } => {
            tx.sql(
                "insert into quotas (tenant, resource, ceiling_milli) values ($1, $2, $3)
                 on conflict (tenant, resource) do update set ceiling_milli = excluded.ceiling_milli",
            )
            .bind(tenant)
            .bind(resource)
            .bind(*milli)
            .run()
            .await?;
            return Ok(());
        }
        allowance::Event::OrderHeld { order, milli } => (order.to_string(), ORDER, Some(*milli)),
        allowance::Event::OrderReleased { order, .. } | allowance::Event::OrderHoldRefused { order, .. } => {
            (order.to_string(), ORDER, None)
        }
        allowance::Event::JobHeld { job, milli } => (job.to_string(), JOB, Some(*milli)),
        allowance::Event::JobQueued { job, wanted_milli, .. } => (job.to_string(), WAITING, Some(*wanted_milli)),
        allowance::Event::JobReleased { job, .. } | allowance::Event::JobHoldRefused { job, .. } => {
            (job.to_string(), JOB, None)
        }
    };
    let change = match milli {
        Some(milli) => tx
            .sql(
                "insert into quota_holds (tenant, resource, holder, kind, milli) values ($1, $2, $3, $4, $5)
                 on conflict (tenant, resource, holder) do update set kind = excluded.kind, milli = excluded.milli",
            )
            .bind(tenant)
            .bind(resource)
            .bind(holder)
            .bind(kind)
            .bind(milli),
        None => tx
            .sql("delete from quota_holds where tenant = $1 and resource = $2 and holder = $3")
            .bind(tenant)
            .bind(resource)
            .bind(holder),
    };
    change.run().await?;
    Ok(())
}

/// The quotas of a tenant, or of all.
pub async fn of_tenant(db: &Db, tenant: Option<TenantId>, page: &Page) -> Result<Slice<Quota>> {
    let rows = db
        .sql(
            "select q.tenant, q.resource, q.ceiling_milli / $4 as ceiling,
                    coalesce(cast(sum(case when h.kind = 'order' then h.milli else 0 end) as bigint), 0) / $4 as ordered,
                    coalesce(cast(sum(case when h.kind = 'job' then h.milli else 0 end) as bigint), 0) / $4 as in_use,
                    coalesce(cast(sum(case when h.kind = 'waiting' then 1 else 0 end) as bigint), 0) as waiting
             from quotas q left join quota_holds h on h.tenant = q.tenant and h.resource = q.resource
             where (q.tenant = $1 or $1 is null) and q.tenant || '/' || q.resource > $2
             group by q.tenant, q.resource, q.ceiling_milli order by q.tenant, q.resource limit $3",
        )
        .bind(tenant)
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .bind(MILLI)
        .all()
        .await?;
    Ok(page.slice(rows))
}
