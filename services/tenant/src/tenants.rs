//! Tenants, and the contract on which a tenant is billed.

use crate::describe::needs;
use crate::write::{Named, Write};
use axum::extract::State;
use domain::catalog::{Contract, PriceBook, contract};
use domain::identity::{Tenant, tenant};
use domain::kernel::{CustomerId, Id, TenantId};
use kit::permission::TenantManage;
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Scope, Written};
use projections::tenants;
use serde::{Deserialize, Serialize};
use store::{Page, Slice, Zone};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

type Tenants = Slice<tenants::Tenant>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<TenantManage>(routes!(create_tenant)))
        .routes(needs::<TenantManage>(routes!(list_tenants)))
        .routes(needs::<TenantManage>(routes!(sign_contract)))
}

/// A tenant to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewTenant {
    /// What people call it: 1 to 64 characters.
    name: String,
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

/// Create a tenant.
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
    let command = tenant::Command::Create { tenant, name: asked.name, parent: Some(TenantId::PLATFORM) };
    write.of(tenant).make::<Tenant, _>(tenant, command, tenant.into()).await
}

/// List the tenants.
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
    Ok(axum::Json(match can.scope() {
        Scope::Platform => tenants::all(&kit.read, &page).await?,
        Scope::One(own) => {
            let items = tenants::find(&kit.read, own.into()).await?.into_iter().collect();
            Slice { items, next_cursor: None }
        }
    }))
}

/// Sign a tenant's contract; its customer gets a wallet.
#[utoipa::path(
    post,
    path = "/tenants/{tenant}/contract",
    params(("tenant" = store::TenantId, Path)),
    request_body = NewContract,
    responses((status = 201, body = Signed, description = "It is signed."))
)]
async fn sign_contract(
    State(kit): State<Kit>,
    can: Can<TenantManage>,
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
    crate::write::tenant_of::<Tenant>(kit, scope, tenant, "tenant.not_found").await.map(drop)
}
