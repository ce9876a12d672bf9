//! On whose account something is asked for, and at which price: what orders and jobs look up before they are decided.
//!
//! Owns: finding the product and the price in the book of the tenant's contract. Does not own: rating (`domain`).
//! Invariant: what has no price now is refused here, so that nothing is ever free by accident.

use axum::http::StatusCode;
use domain::catalog::contract::{Terms, contract_of};
use domain::catalog::{Contract, PriceBook, Product, product};
use domain::kernel::{Ancestors, BillTo, Resource, TenantId};
use kit::{Kit, Problem};
use projections::prices;
use rust_decimal::Decimal;

/// What is asked for.
pub(crate) enum Wanted {
    /// This product.
    Sku(String),
    /// Any product that gives the right to this and has a price in the book.
    Resource(Resource),
}

/// A product at its price of now, on a tenant's account.
pub(crate) struct Priced {
    pub(crate) bill_to: BillTo,
    pub(crate) resource: Resource,
    /// Per unit-hour.
    pub(crate) price: Decimal,
    pub(crate) price_version: u32,
}

/// A tenant's contract, or that of the next tenant above it that has one; 409 `contract.missing` where there is none.
pub(crate) async fn contract(kit: &Kit, tenant: TenantId, above: &Ancestors) -> Result<Terms, Problem> {
    for node in above.upwards(tenant) {
        if let Contract::Signed(terms) = kit.executor.load::<Contract>(contract_of(node)).await?.state {
            return Ok(terms);
        }
    }
    let hint = if tenant == TenantId::PLATFORM {
        "the platform itself uses nothing: sign in as a member of a tenant"
    } else {
        "an operator signs it: POST /api/v1/tenants/{tenant}/contract"
    };
    let detail =
        "neither the tenant nor one above it has a contract, so there is no account to order or to run jobs on";
    Err(Problem::new(StatusCode::CONFLICT, "contract.missing", detail).with_hint(hint))
}

/// What is wanted, at the price of the contract's book now; 409 `price.missing` where it has none.
pub(crate) async fn priced(kit: &Kit, terms: &Terms, wanted: Wanted) -> Result<Priced, Problem> {
    let (offers, what) = match wanted {
        Wanted::Sku(sku) => (vec![offered(kit, sku.clone()).await?], sku),
        Wanted::Resource(resource) => {
            let products = prices::products(&kit.read).await?.into_iter();
            let of_it = products.filter(|product| product.resource.0 == resource).map(|product| product.sku);
            (of_it.map(|sku| (sku, resource.clone())).collect(), resource.to_string())
        }
    };
    let book = kit.executor.load::<PriceBook>(terms.book).await?.state;
    let now = kit.clock.now();
    let found = offers.into_iter().find_map(|(sku, resource)| Some((book.price_at(&sku, now)?, sku, resource)));
    let Some(((price, price_version), sku, resource)) = found else {
        let detail = format!("the price book of the contract has no price for `{what}` now");
        return Err(Problem::new(StatusCode::CONFLICT, "price.missing", detail)
            .with_hint("GET /api/v1/prices lists what has a price; an operator publishes others"));
    };
    let bill_to = BillTo {
        contract: contract_of(terms.tenant),
        customer: terms.customer,
        book: terms.book,
        sku,
        zone: terms.zone,
        currency: terms.currency,
    };
    Ok(Priced { bill_to, resource, price, price_version })
}

async fn offered(kit: &Kit, sku: String) -> Result<(String, Resource), Problem> {
    match kit.executor.load::<Product>(product::product_of(&sku)).await?.state {
        Product::Offered { sku, resource } => Ok((sku, resource)),
        Product::Absent => Err(Problem::not_found("product.not_found").with_hint("GET /api/v1/products lists them")),
    }
}
