//! Tenants, the tree that they make, and the terms on which they are billed. Tables `tenants`, `tenant_tree`, which has a
//! row for each node and each node above it, itself included.

use crate::Whose;
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
    /// What it is.
    pub kind: TenantKind,
    /// The tenant above it.
    pub parent: Option<TenantId>,
    /// Why it is suspended, while it is; all below it is suspended with it.
    pub suspended: Option<String>,
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

/// What a node of the organisation tree is; the rules are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, async_graphql::Enum, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TenantKind {
    /// A customer, or a part of one.
    Tenant,
    /// Something that a tenant works on, below it.
    Project,
}

impl Keyset for Tenant {
    fn cursor(&self) -> String {
        self.id.0.to_string()
    }
}

/// Folds one event into the table.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events do not concern it")]
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    match event {
        Event::Tenant(tenant::Event::Created { tenant, name, parent, kind, above }) => {
            let kind = match kind {
                tenant::Level::Tenant => TenantKind::Tenant,
                tenant::Level::Project => TenantKind::Project,
            };
            tx.sql("insert into tenants (id, name, kind, parent) values ($1, $2, $3, $4)")
                .bind(Id(*tenant))
                .bind(name.clone())
                .bind(kind)
                .bind(parent.map(Id))
                .run()
                .await?;
            for (distance, node) in (0_i64..).zip(above.upwards(*tenant)) {
                tx.sql("insert into tenant_tree (node, below, distance) values ($1, $2, $3)")
                    .bind(Id(node))
                    .bind(Id(*tenant))
                    .bind(distance)
                    .run()
                    .await?;
            }
        }
        Event::Tenant(tenant::Event::Suspended { reason, .. }) => {
            suspend(tx, stored, Some(reason.clone())).await?;
        }
        Event::Tenant(tenant::Event::Resumed { .. }) => suspend(tx, stored, None).await?,
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

async fn suspend(tx: &mut Tx, stored: &Recorded, reason: Option<String>) -> Result<()> {
    let id = stored.stream.key().to_owned();
    tx.sql("update tenants set suspended = $2 where id = $1").bind(id).bind(reason).run().await?;
    Ok(())
}

/// These tenants.
pub async fn of(db: &Db, whose: Whose, page: &Page) -> Result<Slice<Tenant>> {
    let rows = db
        .sql(
            "select * from tenants
             where (id = $1 or $1 is null or id in (select below from tenant_tree where node = $2)) and id > $3
             order by id limit $4",
        )
        .bind(whose.one())
        .bind(whose.top())
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
