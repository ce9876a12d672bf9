//! Where a tenant stands in the organisation tree, and whether it may begin anything new.
//!
//! Owns: finding the nodes above a tenant, and the refusal of a suspended one. Does not own: the tree (`domain`).
//! Invariant: what is above a tenant never changes, and a suspension holds for the node and all below it; both are read
//! from the log, so that they hold at once.

use axum::http::StatusCode;
use domain::identity::Tenant;
use domain::kernel::{Ancestors, TenantId};
use kit::{Kit, Problem};

/// The nodes above a tenant; 404 where there is no such tenant.
pub(crate) async fn above(kit: &Kit, tenant: TenantId) -> Result<Ancestors, Problem> {
    let known = kit.executor.load::<Tenant>(tenant).await?.state;
    known.above().cloned().ok_or_else(|| Problem::not_found("tenant.not_found"))
}

/// The nodes above a tenant that may begin something new; 409 `tenant.suspended` otherwise.
pub(crate) async fn active(kit: &Kit, tenant: TenantId) -> Result<Ancestors, Problem> {
    let above = above(kit, tenant).await?;
    match suspended(kit, tenant, &above).await? {
        None => Ok(above),
        Some((node, reason)) => {
            let which = if node == tenant { "the tenant".into() } else { format!("`{node}` above the tenant") };
            let detail = format!("{which} is suspended: {reason}");
            Err(Problem::new(StatusCode::CONFLICT, "tenant.suspended", detail)
                .with_hint("what runs goes on and everything can be read; an operator resumes the tenant"))
        }
    }
}

/// The node that is suspended, next to the tenant first, and why; none where the tenant may go on.
pub(crate) async fn suspended(
    kit: &Kit,
    tenant: TenantId,
    above: &Ancestors,
) -> Result<Option<(TenantId, String)>, Problem> {
    for node in above.upwards(tenant) {
        let known = kit.executor.load::<Tenant>(node).await?.state;
        if let Some(reason) = known.suspended() {
            return Ok(Some((node, reason.to_owned())));
        }
    }
    Ok(None)
}
