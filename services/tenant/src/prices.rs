//! What is sold and for how much: products, price books and their dated versions.

use crate::describe::needs;
use crate::line::line;
use crate::write::{Named, Write};
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::catalog::{PriceBook, Product, price_book, product};
use domain::kernel::TenantId;
use kit::permission::{PricePublish, PriceRead};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Written};
use projections::prices;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Amount, Currency, Resource, Slice, Time};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

type Products = Slice<prices::Product>;
type PriceBooks = Slice<prices::PriceBook>;
type Prices = Slice<prices::Price>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<PricePublish>(routes!(offer_product)))
        .routes(needs::<PriceRead>(routes!(list_products)))
        .routes(needs::<PricePublish>(routes!(open_price_book)))
        .routes(needs::<PriceRead>(routes!(list_price_books)))
        .routes(needs::<PricePublish>(routes!(publish_prices)))
        .routes(needs::<PriceRead>(routes!(list_prices)))
}

/// A product to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewProduct {
    /// What orders and statements call it: 1 to 48 of a-z, 0-9, dot and dash.
    sku: String,
    /// What it gives the right to.
    resource: Resource,
    name_zh: String,
    name_en: String,
}

/// A price book to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPriceBook {
    /// What people call it: 1 to 200 characters.
    name: String,
    currency: Currency,
}

/// Prices from an instant on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPrices {
    /// From when on, not before now; now, unless it is said.
    effective_at: Option<Time>,
    /// Per card-hour or core-hour, by SKU.
    prices: BTreeMap<String, Amount>,
}

/// A version of a price book.
#[derive(Debug, Serialize, ToSchema)]
struct Published {
    /// From 1.
    version: u32,
}

/// Which prices.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct OfBook {
    /// Of this book; of every one, unless it is said.
    book: Option<store::PriceBookId>,
}

/// Offer a product.
#[utoipa::path(
    post,
    path = "/products",
    request_body = NewProduct,
    responses((status = 201, body = Named, description = "It is offered."))
)]
async fn offer_product(
    State(kit): State<Kit>,
    can: Can<PricePublish>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewProduct>,
) -> Result<Written<Named>, Problem> {
    let NewProduct { sku, resource, name_zh, name_en } = asked;
    let id = product::product_of(&sku);
    let command = product::Command::Offer { sku, resource: resource.0, name_zh, name_en };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(TenantId::PLATFORM);
    write.make::<Product, _>(id, command, id.into()).await
}

/// List the products.
#[utoipa::path(
    get,
    path = "/products",
    responses((status = 200, body = Products, description = "Products, all on one page."))
)]
async fn list_products(State(kit): State<Kit>, _: Can<PriceRead>, _: Fresh) -> Result<axum::Json<Products>, Problem> {
    whole(prices::products(&kit.read).await?)
}

/// Open a price book.
#[utoipa::path(
    post,
    path = "/price-books",
    request_body = NewPriceBook,
    responses((status = 201, body = Named, description = "It is open."))
)]
async fn open_price_book(
    State(kit): State<Kit>,
    can: Can<PricePublish>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewPriceBook>,
) -> Result<Written<Named>, Problem> {
    let write = Write::by(&kit, can.actor(), &key, &digest).of(TenantId::PLATFORM);
    let id: domain::kernel::PriceBookId = write.new_id();
    let command = price_book::Command::Open { name: line("/name", asked.name)?, currency: asked.currency.0 };
    write.make::<PriceBook, _>(id, command, id.into()).await
}

/// List the price books.
#[utoipa::path(
    get,
    path = "/price-books",
    responses((status = 200, body = PriceBooks, description = "Price books, all on one page."))
)]
async fn list_price_books(
    State(kit): State<Kit>,
    _: Can<PriceRead>,
    _: Fresh,
) -> Result<axum::Json<PriceBooks>, Problem> {
    whole(prices::books(&kit.read).await?)
}

/// Publish the next version of a price book.
#[utoipa::path(
    post,
    path = "/price-books/{id}/versions",
    params(("id" = store::PriceBookId, Path)),
    request_body = NewPrices,
    responses((status = 201, body = Published, description = "It is published."))
)]
async fn publish_prices(
    State(kit): State<Kit>,
    can: Can<PricePublish>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::PriceBookId>,
    Json(asked, digest): Json<NewPrices>,
) -> Result<Written<Published>, Problem> {
    let write = Write::by(&kit, can.actor(), &key, &digest).of(TenantId::PLATFORM);
    let now: DateTime<Utc> = write.now();
    let effective_at = asked.effective_at.map_or(now, Time::at);
    let prices = asked.prices.into_iter().map(|(sku, price)| (sku, price.0)).collect();
    let done = write.give::<PriceBook>(id, price_book::Command::Publish { effective_at, prices, now }).await?;
    let published = done.events.iter().find_map(|event| match event {
        price_book::Event::Published(version) => Some(version.number),
        price_book::Event::Opened { .. } => None,
    });
    let version = published.unwrap_or_default();
    Ok(Written::created(done.position, write.correlation(), Published { version }))
}

/// List the prices of a book, or of all, newest version first.
#[utoipa::path(
    get,
    path = "/prices",
    params(OfBook),
    responses((status = 200, body = Prices, description = "Prices, all on one page."))
)]
async fn list_prices(
    State(kit): State<Kit>,
    _: Can<PriceRead>,
    _: Fresh,
    Query(of): Query<OfBook>,
) -> Result<axum::Json<Prices>, Problem> {
    whole(prices::prices(&kit.read, of.book).await?)
}

/// A list that is short enough for one page.
pub(crate) fn whole<T>(items: Vec<T>) -> Result<axum::Json<Slice<T>>, Problem> {
    Ok(axum::Json(Slice { items, next_cursor: None }))
}
