//! What is sold and for how much. Tables `products`, `price_books`, `prices`.

use domain::Event;
use domain::catalog::{price_book, product};
use domain::kernel::Recorded;
use store::{Amount, Currency, Db, Id, PriceBookId, ProductId, Resource, Result, Time, Tx};

/// A product.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Product {
    /// What orders and statements call it.
    pub sku: String,
    /// Its id.
    pub id: ProductId,
    /// What it gives the right to.
    pub resource: Resource,
    /// Its Chinese name.
    pub name_zh: String,
    /// Its English name.
    pub name_en: String,
}

/// A price per unit-hour.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Price {
    /// The price book.
    pub book: PriceBookId,
    /// The version of the book, from 1.
    pub version: i64,
    /// The product.
    pub sku: String,
    /// Per card-hour or core-hour.
    pub price: Amount,
    /// What the price is in.
    pub currency: Currency,
    /// From when on.
    pub effective_at: Time,
}

/// A price book.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct PriceBook {
    /// Its id.
    pub id: PriceBookId,
    /// What people call it.
    pub name: String,
    /// What its prices are in.
    pub currency: Currency,
}

/// Folds one event into the tables.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events do not concern it")]
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    match event {
        Event::Product(product::Event::Offered { sku, resource, name_zh, name_en }) => {
            tx.sql("insert into products (sku, id, resource, name_zh, name_en) values ($1, $2, $3, $4, $5)")
                .bind(sku.clone())
                .bind(stored.stream.key().to_owned())
                .bind(Resource(resource.clone()))
                .bind(name_zh.clone())
                .bind(name_en.clone())
                .run()
                .await?;
        }
        Event::PriceBook(price_book::Event::Opened { name, currency }) => {
            tx.sql("insert into price_books (id, name, currency) values ($1, $2, $3)")
                .bind(stored.stream.key().to_owned())
                .bind(name.clone())
                .bind(Currency(*currency))
                .run()
                .await?;
        }
        Event::PriceBook(price_book::Event::Published(version)) => {
            for (sku, price) in &version.prices {
                tx.sql(
                    "insert into prices (book, version, sku, price, currency, effective_at)
                     select id, $2, $3, $4, currency, $5 from price_books where id = $1",
                )
                .bind(stored.stream.key().to_owned())
                .bind(i64::from(version.number))
                .bind(sku.clone())
                .bind(Amount(*price))
                .bind(Time::from(version.effective_at))
                .run()
                .await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Every product.
pub async fn products(db: &Db) -> Result<Vec<Product>> {
    db.sql("select * from products order by sku").all().await
}

/// The product of a resource.
pub async fn product_of(db: &Db, resource: Resource) -> Result<Option<Product>> {
    db.sql("select * from products where resource = $1 order by sku limit 1").bind(resource).optional().await
}

/// The product with this SKU.
pub async fn product(db: &Db, sku: &str) -> Result<Option<Product>> {
    db.sql("select * from products where sku = $1").bind(sku.to_owned()).optional().await
}

/// Every price of a book, or of all, newest version first.
pub async fn prices(db: &Db, book: Option<PriceBookId>) -> Result<Vec<Price>> {
    db.sql("select * from prices where (book = $1 or $1 is null) order by book, version desc, sku")
        .bind(book)
        .all()
        .await
}

/// Every price book.
pub async fn books(db: &Db) -> Result<Vec<PriceBook>> {
    db.sql("select * from price_books order by id").all().await
}

/// The book with this id.
pub async fn book(db: &Db, book: Id<domain::kernel::PriceBookId>) -> Result<Option<PriceBook>> {
    db.sql("select * from price_books where id = $1").bind(book).optional().await
}
