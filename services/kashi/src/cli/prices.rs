//! What is sold and for how much.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Kind, Output, column, text};
use chrono::{DateTime, Utc};
use domain::kernel::{Currency, Resource};
use rust_decimal::Decimal;
use serde_json::{Map, json};

/// Prices.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Price {
    /// List prices, newest version first.
    List {
        /// Of this price book, by name or id; of every one, unless it is said.
        #[arg(long)]
        book: Option<String>,
    },
    /// Publish the next version of a price book, with every price that is to hold from then on.
    Publish {
        /// By name or id.
        #[arg(long)]
        book: String,
        /// A product and its price per card-hour or core-hour.
        #[arg(value_name = "SKU=PRICE", required = true, value_parser = price)]
        prices: Vec<(String, Decimal)>,
        /// From when on, such as 2027-01-01T00:00:00Z; from now, unless it is said.
        #[arg(long, value_name = "TIME")]
        effective_at: Option<DateTime<Utc>>,
    },
    /// List price books.
    Books,
    /// Open a price book.
    Open {
        /// What people call it.
        name: String,
        /// What its prices are in.
        #[arg(long, default_value = "CNY")]
        currency: Currency,
    },
}

/// Products.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Product {
    /// List products.
    List,
    /// Offer a product.
    Add {
        /// What orders and statements call it.
        sku: String,
        /// What it gives the right to: `card.` and a model, or `core`.
        #[arg(long)]
        resource: Resource,
        /// Its Chinese name; the SKU, unless it is said.
        #[arg(long, value_name = "NAME")]
        name_zh: Option<String>,
        /// Its English name; the SKU, unless it is said.
        #[arg(long, value_name = "NAME")]
        name_en: Option<String>,
    },
}

const PRICE: Kind = Kind {
    name: "Price",
    id: "sku",
    columns: &[
        column("SKU", "产品", "sku", Form::Text),
        column("PRICE", "单价", "price", Form::Price),
        column("CURRENCY", "币种", "currency", Form::Text),
        column("EFFECTIVE", "生效时间", "effective_at", Form::Time),
        column("VERSION", "版本", "version", Form::Text),
        column("PRICE BOOK", "价目表", "book", Form::Text),
    ],
    more: &[],
};

const VERSION: Kind = Kind { name: "PriceVersion", id: "version", columns: &[], more: &[] };

const BOOK: Kind = Kind {
    name: "PriceBook",
    id: "id",
    columns: &[
        column("PRICE BOOK", "价目表", "id", Form::Text),
        column("NAME", "名称", "name", Form::Text),
        column("CURRENCY", "币种", "currency", Form::Text),
    ],
    more: &[],
};

const PRODUCT: Kind = Kind {
    name: "Product",
    id: "sku",
    columns: &[
        column("SKU", "产品", "sku", Form::Text),
        column("RESOURCE", "资源", "resource", Form::Text),
        column("NAME", "名称", "name_en", Form::Of(|product, lang| text(&product[lang.say("name_en", "name_zh")]))),
    ],
    more: &[],
};

fn price(text: &str) -> Result<(String, Decimal), String> {
    let bad = || "a price is written SKU=PRICE, such as card.a100=80".to_owned();
    let (sku, price) = text.split_once('=').filter(|(sku, _)| !sku.is_empty()).ok_or_else(bad)?;
    Ok((sku.to_owned(), price.parse().map_err(|_| bad())?))
}

impl Price {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self {
            Self::List { book } => {
                let of = match book {
                    Some(book) => vec![("book", find::book(api, &book).await?.to_string())],
                    None => vec![],
                };
                out.list(&PRICE, &api.whole("/prices", &of).await?)
            }
            Self::Publish { book, prices, effective_at } => {
                let book = find::book(api, &book).await?;
                let mut of: Map<_, _> = Map::new();
                for (sku, price) in prices {
                    if of.insert(sku.clone(), json!(price.to_string())).is_some() {
                        return Err(Fault::Usage(format!("`{sku}` has two prices")));
                    }
                }
                let body = json!({ "effective_at": effective_at, "prices": of });
                let published = api.post(&format!("/price-books/{book}/versions"), Some(&body)).await?;
                out.done(&VERSION, &published, &format!("version {} is published", text(&published["version"])))
            }
            Self::Books => out.list(&BOOK, &api.whole("/price-books", &[]).await?),
            Self::Open { name, currency } => {
                let made = api.post("/price-books", Some(&json!({ "name": name, "currency": currency }))).await?;
                let note = format!("it has no prices yet: kashi price publish --book {} SKU=PRICE", text(&made["id"]));
                out.done(&BOOK, &made, &note)
            }
        }
    }
}

impl Product {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self {
            Self::List => out.list(&PRODUCT, &api.whole("/products", &[]).await?),
            Self::Add { sku, resource, name_zh, name_en } => {
                let body = json!({
                    "sku": sku, "resource": resource,
                    "name_zh": name_zh.unwrap_or_else(|| sku.clone()), "name_en": name_en.unwrap_or_else(|| sku.clone()),
                });
                let mut made = api.post("/products", Some(&body)).await?;
                made["sku"] = sku.into();
                out.done(&PRODUCT, &made, "it is offered; it can be ordered once it has a price: kashi price publish")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exact() {
        assert_eq!(price("card.a100=80.10"), Ok(("card.a100".into(), Decimal::new(8010, 2))));
        for bad in ["", "core", "=1", "core=", "core=1,5"] {
            assert!(price(bad).is_err(), "{bad}");
        }
    }
}
