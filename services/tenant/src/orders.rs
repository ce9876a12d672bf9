//! Orders: asking for capacity, deciding on it, giving it back.

use crate::account::{Wanted, contract, priced};
use crate::describe::needs;
use crate::tree;
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use domain::kernel::{MILLI, OrderId};
use domain::ordering::{Order, order};
use kit::permission::{OrderApprove, OrderRead, OrderRequest};
use kit::{Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Written};
use projections::orders;
use serde::Deserialize;
use store::{Page, Resource, Slice};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "order.not_found";

type Orders = Slice<orders::Order>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<OrderRequest>(routes!(request_order)))
        .routes(needs::<OrderRead>(routes!(list_orders)))
        .routes(needs::<OrderRead>(routes!(read_order)))
        .routes(needs::<OrderApprove>(routes!(approve_order)))
        .routes(needs::<OrderApprove>(routes!(reject_order)))
        .routes(needs::<OrderRequest>(routes!(return_order)))
}

/// An order to be; say either the product or what it gives the right to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewOrder {
    /// The product.
    sku: Option<String>,
    /// What is wanted, of whichever product has a price.
    resource: Option<Resource>,
    /// How many whole cards or cores.
    #[schema(minimum = 1)]
    quantity: i64,
}

/// Why an order is not approved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rejection {
    /// 1 to 500 characters.
    reason: String,
}

/// Order capacity, at the price of now.
#[utoipa::path(
    post,
    path = "/orders",
    request_body = NewOrder,
    responses((status = 201, body = Named, description = "It waits for approval."))
)]
async fn request_order(
    State(kit): State<Kit>,
    can: Can<OrderRequest>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewOrder>,
) -> Result<Written<Named>, Problem> {
    let (tenant, by) = (can.actor().tenant, can.actor().member);
    let write = Write::by(&kit, can.actor(), &key, &digest);
    let id: OrderId = write.new_id();
    if let Some(before) = write.made_before::<Order, _>(id, id.into()).await? {
        return Ok(before);
    }
    let wanted = match (asked.sku, asked.resource) {
        (Some(sku), None) => Wanted::Sku(sku),
        (None, Some(resource)) => Wanted::Resource(resource.0),
        (Some(_), Some(_)) | (None, None) => {
            let detail = "an order says either its `sku` or its `resource`";
            return Err(Problem::invalid("order.sku_or_resource", detail));
        }
    };
    let above = tree::active(&kit, tenant).await?;
    let priced = priced(&kit, &contract(&kit, tenant, &above).await?, wanted).await?;
    let terms = order::Terms {
        tenant,
        above,
        bill_to: priced.bill_to,
        resource: priced.resource,
        milli: asked.quantity.saturating_mul(MILLI),
        price: priced.price,
        price_version: priced.price_version,
    };
    write.make::<Order, _>(id, order::Command::Request { by, terms }, id.into()).await
}

/// List the orders that are in reach, newest first.
#[utoipa::path(get, path = "/orders", params(Page), responses((status = 200, body = Orders, description = "Orders.")))]
async fn list_orders(
    State(kit): State<Kit>,
    can: Can<OrderRead>,
    _: Fresh,
    Query(page): Query<Page>,
) -> Result<axum::Json<Orders>, Problem> {
    Ok(axum::Json(orders::of(&kit.read, can.scope().whose(), &page).await?))
}

/// Read an order.
#[utoipa::path(
    get,
    path = "/orders/{id}",
    params(("id" = store::OrderId, Path)),
    responses((status = 200, body = orders::Order, description = "The order."))
)]
async fn read_order(
    State(kit): State<Kit>,
    can: Can<OrderRead>,
    _: Fresh,
    Path(id): Path<store::OrderId>,
) -> Result<axum::Json<orders::Order>, Problem> {
    match orders::find(&kit.read, id).await? {
        Some(order) if can.scope().sees(&kit, order.tenant.0).await? => Ok(axum::Json(order)),
        Some(_) | None => Err(Problem::not_found(NOT_FOUND)),
    }
}

/// Approve an order; it becomes active, or is refused where a quota of the tenant or above it has no room.
#[utoipa::path(
    post,
    path = "/orders/{id}/approve",
    params(("id" = store::OrderId, Path)),
    responses((status = 200, body = Named, description = "It is approved."))
)]
async fn approve_order(
    State(kit): State<Kit>,
    can: Can<OrderApprove>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::OrderId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Order>(&kit, can.scope(), id, NOT_FOUND).await?;
    tree::active(&kit, tenant).await?;
    let command = order::Command::Approve { by: can.actor().member };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Order, _>(id, command, id.into()).await
}

/// Reject an order, for a reason.
#[utoipa::path(
    post,
    path = "/orders/{id}/reject",
    params(("id" = store::OrderId, Path)),
    request_body = Rejection,
    responses((status = 200, body = Named, description = "It is rejected."))
)]
async fn reject_order(
    State(kit): State<Kit>,
    can: Can<OrderApprove>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::OrderId>,
    Json(asked, digest): Json<Rejection>,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Order>(&kit, can.scope(), id, NOT_FOUND).await?;
    let command = order::Command::Reject { by: can.actor().member, reason: asked.reason };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Order, _>(id, command, id.into()).await
}

/// Give an order back; this is refused while jobs use it.
#[utoipa::path(
    post,
    path = "/orders/{id}/return",
    params(("id" = store::OrderId, Path)),
    responses((status = 200, body = Named, description = "Its return is asked for."))
)]
async fn return_order(
    State(kit): State<Kit>,
    can: Can<OrderRequest>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::OrderId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Order>(&kit, can.scope(), id, NOT_FOUND).await?;
    let command = order::Command::Return { by: can.actor().member };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Order, _>(id, command, id.into()).await
}
