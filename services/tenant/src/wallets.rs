//! A tenant's wallet: what is left, what is paid in, how far it may go below zero.

use crate::describe::needs;
use crate::line::line;
use crate::write::{Named, Write};
use axum::extract::State;
use domain::billing::{Wallet, wallet};
use domain::catalog::{Contract, contract};
use domain::flows::wallet_key;
use domain::kernel::{CustomerId, TenantId};
use kit::permission::{BillRead, WalletManage};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Scope, Written};
use projections::wallets;
use serde::Deserialize;
use store::Amount;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "wallet.not_found";

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<BillRead>(routes!(read_wallet)))
        .routes(needs::<WalletManage>(routes!(top_up)))
        .routes(needs::<WalletManage>(routes!(set_credit)))
}

/// Money that was paid in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TopUp {
    /// Above 0, at most two decimal places, in the wallet's currency.
    amount: Amount,
    /// What the payment is known by elsewhere: 1 to 200 characters.
    reference: String,
}

/// How far a wallet may go below zero.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreditLine {
    /// 0 or more, at most two decimal places, in the wallet's currency.
    amount: Amount,
}

/// Read a tenant's wallet.
#[utoipa::path(
    get,
    path = "/tenants/{tenant}/wallet",
    params(("tenant" = store::TenantId, Path)),
    responses((status = 200, body = wallets::Wallet, description = "The wallet."))
)]
async fn read_wallet(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Path(tenant): Path<store::TenantId>,
) -> Result<axum::Json<wallets::Wallet>, Problem> {
    can.scope().reaches(&kit, tenant.0).await?;
    let wallet = wallets::of_tenant(&kit.read, tenant).await?.into_iter().next();
    wallet.map(axum::Json).ok_or_else(|| Problem::not_found(NOT_FOUND))
}

/// Pay money into a tenant's wallet.
#[utoipa::path(
    post,
    path = "/tenants/{tenant}/wallet/top-ups",
    params(("tenant" = store::TenantId, Path)),
    request_body = TopUp,
    responses((status = 201, body = Named, description = "It is paid in."))
)]
async fn top_up(
    State(kit): State<Kit>,
    can: Can<WalletManage>,
    key: IdempotencyKey,
    Path(store::Id(tenant)): Path<store::TenantId>,
    Json(asked, digest): Json<TopUp>,
) -> Result<Written<Named>, Problem> {
    let customer = customer_of(&kit, can.scope(), tenant).await?;
    let reference = line("/reference", asked.reference)?;
    let command = wallet::Command::TopUp { amount: asked.amount.0, by: can.actor().member, reference };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    write.make::<Wallet, _>(wallet_key(customer), command, customer.into()).await
}

/// Set how far a tenant's wallet may go below zero.
#[utoipa::path(
    put,
    path = "/tenants/{tenant}/wallet/credit",
    params(("tenant" = store::TenantId, Path)),
    request_body = CreditLine,
    responses((status = 200, body = Named, description = "It is set."))
)]
async fn set_credit(
    State(kit): State<Kit>,
    can: Can<WalletManage>,
    key: IdempotencyKey,
    Path(store::Id(tenant)): Path<store::TenantId>,
    Json(asked, digest): Json<CreditLine>,
) -> Result<Written<Named>, Problem> {
    let customer = customer_of(&kit, can.scope(), tenant).await?;
    let command = wallet::Command::SetCredit { amount: asked.amount.0, by: can.actor().member };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    write.change::<Wallet, _>(wallet_key(customer), command, customer.into()).await
}

/// Whose the wallet of a tenant is, by its contract.
async fn customer_of(kit: &Kit, scope: Scope, tenant: TenantId) -> Result<CustomerId, Problem> {
    scope.reaches(kit, tenant).await?;
    match kit.executor.load::<Contract>(contract::contract_of(tenant)).await?.state {
        Contract::Signed(terms) => Ok(terms.customer),
        Contract::Absent => Err(Problem::not_found(NOT_FOUND)
            .with_hint("a tenant has a wallet once its contract is signed: POST /tenants/{tenant}/contract")),
    }
}
