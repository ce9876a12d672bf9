//! Tenants and the terms on which they are billed. Table `tenants`.

use domain::Event;
use domain::catalog::contract;
use domain::identity::tenant;
use domain::kernel::Recorded;
use store::{ContractId, Currency, CustomerId, Db, Id, Keyset, Page, PriceBookId, Result, Slice, TenantId, Tx, Zone};

/// A tenant.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// What people call it.
    pub name: String,
    /// The tenant above it.
    pub parent: Option<TenantId>,
    /// Its contract; without one it cannot order.
    pub contract: Option<ContractId>,
    /// Who pays.
    pub customer: Option<CustomerId>,
    /// The price book of its contract.
    pub book: Option<PriceBookId>,
    /// Whose months its statements follow.
    pub zone: Option<Zone>,
    /// What it is billed in.
    pub currency: Option<Currency>,
}

impl Keyset for Tenant {
    fn cursor(&self) -> String {
        self.id.0.to_string()
    }
}

/// Folds one event into the table.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events do not concern it")]
pub async fn apply(tx: &mut Tx, _: &Recorded, event: &Event) -> Result<()> {
    match event {
        Event::Tenant(tenant::Event::Created { tenant, name, parent }) => {
            tx.sql("insert into tenants (id, name, parent) values ($1, $2, $3)")
                .bind(Id(*tenant))
                .bind(name.clone())
                .bind(parent.map(Id))
                .run()
                .await?;
        }
        Event::Contract(contract::Event::Signed(terms)) => {
            tx.sql(
                "update tenants set contract = $2, customer = $3, book = $4, zone = $5, currency = $6 where id = $1",
            )
            .bind(Id(terms.tenant))
            .bind(Id(contract::contract_of(terms.tenant)))
            .bind(Id(terms.customer))
            .bind(Id(terms.book))
            .bind(Zone(terms.zone))
            .bind(Currency(terms.currency))
            .run()
            .await?;
        }
        _ => {}
    }
    Ok(())
}

/// Every tenant.
pub async fn all(db: &Db, page: &Page) -> Result<Slice<Tenant>> {
    let rows = db
        .sql("select * from tenants where id > $1 order by id limit $2")
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// One tenant.
pub async fn find(db: &Db, tenant: TenantId) -> Result<Option<Tenant>> {
    db.sql("select * from tenants where id = $1").bind(tenant).optional().await
}

/// The tenant of a customer.
pub async fn of_customer(db: &Db, customer: CustomerId) -> Result<Option<Tenant>> {
    db.sql("select * from tenants where customer = $1").bind(customer).optional().await
}
