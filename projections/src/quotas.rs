//! Quotas along the tree: a node's ceiling, what orders of it and of all below it hold, what its jobs hold. Tables
//! `quotas`, `quota_holds`.

use crate::Whose;
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
    /// How much it and all below it may order: the lowest ceiling from it up to the root.
    pub ceiling: i64,
    /// Whose ceiling that is; null where there is none up to the root, so that nothing may be ordered.
    pub ceiling_of: Option<TenantId>,
    /// How much it and all below it have ordered and is active: what counts against the ceiling.
    pub counted: i64,
    /// How much of that it has ordered itself.
    pub ordered: i64,
    /// How much of what it has ordered itself its jobs hold.
    pub in_use: i64,
    /// How many of its jobs wait for it.
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

/// What somebody holds, or waits for, at a node.
struct Hold {
    holder: String,
    kind: &'static str,
    milli: i64,
}

/// Folds one event into the tables.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Quota(event) = event else { return Ok(()) };
    let Some((root, resource)) = quota_of(stored.stream.key()) else { return Ok(()) };
    let hold = |holder: String, kind, milli: &i64| Hold { holder, kind, milli: *milli };
    let (node, hold) = match event {
        allowance::Event::Opened { .. } | allowance::Event::OrderReleaseRefused { .. } => return Ok(()),
        allowance::Event::CeilingSet { milli, node, .. } => {
            let node = Id(node.unwrap_or(root));
            return ceiling(tx, node, Resource(resource), Some(*milli)).await;
        }
        allowance::Event::OrderHeld { order, milli, below } => {
            for node in [root].iter().chain(below) {
                ceiling(tx, Id(*node), Resource(resource.clone()), None).await?;
            }
            (below.last().copied(), hold(order.to_string(), ORDER, milli))
        }
        allowance::Event::JobHeld { job, milli, node } => (*node, hold(job.to_string(), JOB, milli)),
        allowance::Event::JobQueued { job, wanted_milli, node, .. } => {
            (*node, hold(job.to_string(), WAITING, wanted_milli))
        }
        allowance::Event::OrderReleased { order, .. } | allowance::Event::OrderHoldRefused { order, .. } => {
            return release(tx, order.to_string()).await;
        }
        allowance::Event::JobReleased { job, .. } | allowance::Event::JobHoldRefused { job, .. } => {
            return release(tx, job.to_string()).await;
        }
    };
    let (node, resource) = (Id(node.unwrap_or(root)), Resource(resource));
    ceiling(tx, node, resource.clone(), None).await?;
    tx.sql(
        "insert into quota_holds (holder, tenant, resource, kind, milli) values ($1, $2, $3, $4, $5)
         on conflict (holder) do update set kind = excluded.kind, milli = excluded.milli",
    )
    .bind(hold.holder)
    .bind(node)
    .bind(resource)
    .bind(hold.kind)
    .bind(hold.milli)
    .run()
    .await?;
    Ok(())
}

/// The row of a node, with this ceiling where it is set. A node has one once it has a ceiling or anything counts there.
async fn ceiling(tx: &mut Tx, node: TenantId, resource: Resource, milli: Option<i64>) -> Result<()> {
    tx.sql(
        "insert into quotas (tenant, resource, ceiling_milli) values ($1, $2, $3)
         on conflict (tenant, resource) do update
         set ceiling_milli = coalesce(excluded.ceiling_milli, quotas.ceiling_milli)",
    )
    .bind(node)
    .bind(resource)
    .bind(milli)
    .run()
    .await?;
    Ok(())
}

async fn release(tx: &mut Tx, holder: String) -> Result<()> {
    tx.sql("delete from quota_holds where holder = $1").bind(holder).run().await?;
    Ok(())
}

/// The quotas of these tenants.
pub async fn of(db: &Db, whose: Whose, page: &Page) -> Result<Slice<Quota>> {
    let rows = db
        .sql(
            "select q.tenant, q.resource,
                    coalesce((
                        select a.ceiling_milli from tenant_tree t join quotas a on a.tenant = t.node
                        where t.below = q.tenant and a.resource = q.resource and a.ceiling_milli is not null
                        order by a.ceiling_milli, t.distance limit 1), 0) / $5 as ceiling,
                    (select a.tenant from tenant_tree t join quotas a on a.tenant = t.node
                     where t.below = q.tenant and a.resource = q.resource and a.ceiling_milli is not null
                     order by a.ceiling_milli, t.distance limit 1) as ceiling_of,
                    coalesce((
                        select cast(sum(h.milli) as bigint) from quota_holds h
                        where h.resource = q.resource and h.kind = 'order' and (h.tenant = q.tenant
                              or h.tenant in (select below from tenant_tree where node = q.tenant))), 0) / $5 as counted,
                    coalesce((
                        select cast(sum(h.milli) as bigint) from quota_holds h
                        where h.tenant = q.tenant and h.resource = q.resource and h.kind = 'order'), 0) / $5 as ordered,
                    coalesce((
                        select cast(sum(h.milli) as bigint) from quota_holds h
                        where h.tenant = q.tenant and h.resource = q.resource and h.kind = 'job'), 0) / $5 as in_use,
                    (select count(*) from quota_holds h
                     where h.tenant = q.tenant and h.resource = q.resource and h.kind = 'waiting') as waiting
             from quotas q
             where (q.tenant = $1 or $1 is null or q.tenant in (select below from tenant_tree where node = $2))
               and q.tenant || '/' || q.resource > $3
             order by q.tenant, q.resource limit $4",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .bind(MILLI)
        .all()
        .await?;
    Ok(page.slice(rows))
}
