//! Quotas: how much a tenant and all below it may order at once, what is ordered and what jobs use.
//!
//! Invariant: who reaches a part of the tree only sets the quotas of the nodes below its top, never its own.

use crate::describe::needs;
use crate::tenants;
use crate::tree;
use crate::write::Write;
use axum::extract::State;
use axum::http::StatusCode;
use domain::flows::quota_key;
use domain::kernel::MILLI;
use domain::quota::{Allowance, allowance};
use kit::permission::{QuotaRead, QuotaSet};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Scope, Written};
use projections::quotas;
use serde::{Deserialize, Serialize};
use store::{Page, Slice};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

type Quotas = Slice<quotas::Quota>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<QuotaRead>(routes!(list_quotas))).routes(needs::<QuotaSet>(routes!(set_quota)))
}

/// How much may be ordered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Ceiling {
    /// Whole cards or cores, 0 or more.
    #[schema(minimum = 0)]
    ceiling: i64,
}

/// A quota that was set.
#[derive(Debug, Serialize, ToSchema)]
struct QuotaSetTo {
    tenant: store::TenantId,
    resource: store::Resource,
    /// Whole cards or cores.
    ceiling: i64,
}

/// List the quotas that are in reach.
#[utoipa::path(get, path = "/quotas", params(Page), responses((status = 200, body = Quotas, description = "Quotas.")))]
async fn list_quotas(
    State(kit): State<Kit>,
    can: Can<QuotaRead>,
    _: Fresh,
    Query(page): Query<Page>,
) -> Result<axum::Json<Quotas>, Problem> {
    Ok(axum::Json(quotas::of(&kit.read, can.scope().whose(), &page).await?))
}

/// Set how much of a resource a tenant and all below it may order; not above a quota over it, nor for oneself.
#[utoipa::path(
    put,
    path = "/quotas/{tenant}/{resource}",
    params(("tenant" = store::TenantId, Path), ("resource" = store::Resource, Path)),
    request_body = Ceiling,
    responses((status = 200, body = QuotaSetTo, description = "It is set."))
)]
async fn set_quota(
    State(kit): State<Kit>,
    can: Can<QuotaSet>,
    key: IdempotencyKey,
    Path((tenant, resource)): Path<(store::TenantId, store::Resource)>,
    Json(Ceiling { ceiling }, digest): Json<Ceiling>,
) -> Result<Written<QuotaSetTo>, Problem> {
    tenants::exists(&kit, can.scope(), tenant.0).await?;
    if can.scope() != Scope::Platform && tenant.0 == can.actor().tenant {
        let detail = "a tenant's own quota is set from above";
        return Err(Problem::new(StatusCode::FORBIDDEN, "quota.own", detail)
            .with_hint("ask an operator, or an administrator of the tenant above"));
    }
    let above = tree::above(&kit, tenant.0).await?;
    let (root, below) = (above.root(tenant.0), above.below_root(tenant.0));
    let (milli, by) = (ceiling.saturating_mul(MILLI), can.actor().member);
    let stream = quota_key(root, &resource.0);
    let command = allowance::Command::SetCeiling { root, below, resource: resource.0.clone(), milli, by };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant.0);
    write.change::<Allowance, _>(stream, command, QuotaSetTo { tenant, resource, ceiling }).await
}
