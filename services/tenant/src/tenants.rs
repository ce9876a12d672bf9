//! Tenants and projects, their suspension, and the contract on which a tenant and all below it are billed.

use crate::describe::needs;
use crate::tree;
use crate::write::{Named, Write};
use axum::extract::State;
use domain::catalog::{Contract, PriceBook, contract};
use domain::identity::tenant::Level;
use domain::identity::{Tenant, tenant};
use domain::kernel::{CustomerId, Id, TenantId};
use kit::permission::{ContractSign, TenantManage, TenantSuspend};
use kit::{Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Scope, Written};
use projections::tenants;
use serde::{Deserialize, Serialize};
use store::{Page, Slice, Zone};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "tenant.not_found";

type Tenants = Slice<tenants::Tenant>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<TenantManage>(routes!(create_tenant)))
        .routes(needs::<TenantManage>(routes!(list_tenants)))
        .routes(needs::<TenantSuspend>(routes!(suspend_tenant)))
        .routes(needs::<TenantSuspend>(routes!(resume_tenant)))
        .routes(needs::<ContractSign>(routes!(sign_contract)))
}

/// A tenant to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTenant {
    /// What people call it: 1 to 64 characters.
    name: String,
    /// The tenant or project right above it; one's own, unless it is said. An operator's is a customer of its own then.
    parent: Option<store::TenantId>,
    /// `tenant` or `project`; below another one it is a project, unless it is said.
    #[schema(value_type = Option<String>)]
    kind: Option<Level>,
}

/// Why a tenant is suspended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Suspension {
    /// 1 to 200 characters; its members are told.
    reason: String,
}

/// The terms on which a tenant is billed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewContract {
    /// By which prices; the contract is in the book's currency.
    book: store::PriceBookId,
    /// Whose months the statements follow; Asia/Shanghai unless it is said.
    zone: Option<Zone>,
}

/// A contract that was signed.
#[derive(Debug, Serialize, ToSchema)]
struct Signed {
    contract: store::ContractId,
    /// Who pays.
    customer: store::CustomerId,
}

/// Create a tenant, or a tenant or project below one that is in reach.
#[utoipa::path(
    post,
    path = "/tenants",
    request_body = NewTenant,
    responses((status = 201, body = Named, description = "It is there."))
)]
async fn create_tenant(
    State(kit): State<Kit>,
    can: Can<TenantManage>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewTenant>,
) -> Result<Written<Named>, Problem> {
    let write = Write::by(&kit, can.actor(), &key, &digest);
    let tenant: TenantId = write.new_id();
    let own = can.actor().tenant;
    let parent = asked.parent.map_or(if can.scope() == Scope::Platform { TenantId::PLATFORM } else { own }, |id| id.0);
    exists(&kit, can.scope(), parent).await?;
    if parent == TenantId::PLATFORM && can.scope() != Scope::Platform {
        return Err(Problem::not_found(NOT_FOUND));
    }
    let above = tree::above(&kit, parent).await?.with(parent);
    let kind = asked.kind.unwrap_or(if above.is_empty() { Level::Tenant } else { Level::Project });
    let command = tenant::Command::Create { tenant, name: asked.name, parent: Some(parent), kind, above };
    write.of(tenant).make::<Tenant, _>(tenant, command, tenant.into()).await
}

/// List the tenants that are in reach.
#[utoipa::path(
    get,
    path = "/tenants",
    params(Page),
    responses((status = 200, body = Tenants, description = "Tenants."))
)]
async fn list_tenants(
    State(kit): State<Kit>,
    can: Can<TenantManage>,
    _: Fresh,
    Query(page): Query<Page>,
) -> Result<axum::Json<Tenants>, Problem> {
    Ok(axum::Json(tenants::of(&kit.read, can.scope().whose(), &page).await?))
}

/// Suspend a tenant and all below it: no new orders and jobs; what runs goes on, and what waits for a place waits on.
#[utoipa::path(
    post,
    path = "/tenants/{tenant}/suspend",
    params(("tenant" = store::TenantId, Path)),
    request_body = Suspension,
    responses((status = 200, body = Named, description = "It is suspended."))
)]
async fn suspend_tenant(
    State(kit): State<Kit>,
    can: Can<TenantSuspend>,
    key: IdempotencyKey,
    Path(store::Id(tenant)): Path<store::TenantId>,
    Json(asked, digest): Json<Suspension>,
) -> Result<Written<Named>, Problem> {
    exists(&kit, can.scope(), tenant).await?;
    let command = tenant::Command::Suspend { by: can.actor().member, reason: asked.reason };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    write.change::<Tenant, _>(tenant, command, tenant.into()).await
}

/// Let a tenant go on; one above it that is suspended still suspends it.
#[utoipa::path(
    post,
    path = "/tenants/{tenant}/resume",
    params(("tenant" = store::TenantId, Path)),
    responses((status = 200, body = Named, description = "It goes on."))
)]
async fn resume_tenant(
    State(kit): State<Kit>,
    can: Can<TenantSuspend>,
    key: IdempotencyKey,
    Path(store::Id(tenant)): Path<store::TenantId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    exists(&kit, can.scope(), tenant).await?;
    let command = tenant::Command::Resume { by: can.actor().member };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    write.change::<Tenant, _>(tenant, command, tenant.into()).await
}

/// Sign a tenant's contract, on which all below it are billed too unless they have their own; its customer gets a wallet.
#[utoipa::path(
    post,
    path = "/tenants/{tenant}/contract",
    params(("tenant" = store::TenantId, Path)),
    request_body = NewContract,
    responses((status = 201, body = Signed, description = "It is signed."))
)]
async fn sign_contract(
    State(kit): State<Kit>,
    can: Can<ContractSign>,
    key: IdempotencyKey,
    Path(store::Id(tenant)): Path<store::TenantId>,
    Json(asked, digest): Json<NewContract>,
) -> Result<Written<Signed>, Problem> {
    exists(&kit, can.scope(), tenant).await?;
    let book = asked.book.0;
    let known = kit.executor.load::<PriceBook>(book).await?.state;
    let currency = known.currency().ok_or_else(|| Problem::not_found("price_book.not_found"))?;
    let (contract, customer) = (contract::contract_of(tenant), customer_of(tenant));
    let zone = asked.zone.map(|zone| zone.0).unwrap_or_default();
    let command = contract::Command::Sign(contract::Terms { tenant, customer, book, zone, currency });
    let signed = Signed { contract: contract.into(), customer: customer.into() };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).make::<Contract, _>(contract, command, signed).await
}

/// Who pays for a tenant.
fn customer_of(tenant: TenantId) -> CustomerId {
    Id::derived(tenant, "customer")
}

/// 404, unless there is such a tenant in the scope.
pub(crate) async fn exists(kit: &Kit, scope: Scope, tenant: TenantId) -> Result<(), Problem> {
    crate::write::tenant_of::<Tenant>(kit, scope, tenant, NOT_FOUND).await.map(drop)
}
