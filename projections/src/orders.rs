//! Orders as the tenant and the portal see them. Table `orders`.

use crate::Whose;
use domain::Event;
use domain::kernel::{MILLI, Recorded};
use domain::ordering::order;
use store::{Amount, Currency, Db, Id, Keyset, MemberId, OrderId, Page, Resource, Result, Slice, TenantId, Time, Tx};

/// An order.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// The log position of its first event; lists are in this order.
    pub position: i64,
    /// Whose it is.
    pub tenant: TenantId,
    /// Who asked for it.
    pub requested_by: MemberId,
    /// Who approved or rejected it.
    pub decided_by: Option<MemberId>,
    /// The product.
    pub sku: String,
    /// What it gives the right to.
    pub resource: Resource,
    /// How many cards or cores.
    pub quantity: i64,
    /// Per unit-hour, when it was asked for.
    pub price: Amount,
    /// What the price is in.
    pub currency: Currency,
    /// Where it stands.
    pub status: OrderStatus,
    /// Why it was rejected or refused, or why its return was.
    pub reason: Option<String>,
    /// When it was asked for.
    pub requested_at: Time,
    /// When it last changed.
    pub changed_at: Time,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, async_graphql::Enum, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// Waits for approval.
    Requested,
    /// Waits for quota.
    Approved,
    /// Somebody said no.
    Rejected,
    /// The quota has no room for it.
    Refused,
    /// May be used.
    Active,
    /// Is being given back.
    Returning,
    /// Was given back.
    Returned,
}

impl Keyset for Order {
    fn cursor(&self) -> String {
        self.position.to_string()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Order(event) = event else { return Ok(()) };
    let units = |milli: &i64| milli / MILLI;
    let (status, by, reason) = match event {
        order::Event::Requested { by, terms } => return request(tx, stored, Id(*by), terms).await,
        order::Event::Approved { by } => (OrderStatus::Approved, Some(*by), None),
        order::Event::Rejected { by, reason } => (OrderStatus::Rejected, Some(*by), Some(reason.clone())),
        order::Event::Activated => (OrderStatus::Active, None, None),
        order::Event::Refused { wanted_milli, free_milli, node } => {
            let reason = format!("quota: {} wanted, {} free", units(wanted_milli), units(free_milli));
            let above = node.filter(|node| *node != stored.meta.tenant);
            let whose = above.map(|node| format!(" under the ceiling of {node}")).unwrap_or_default();
            (OrderStatus::Refused, None, Some(reason + &whose))
        }
        order::Event::ReturnRequested { .. } => (OrderStatus::Returning, None, None),
        order::Event::Returned => (OrderStatus::Returned, None, None),
        order::Event::ReturnRefused { in_use_milli } => {
            (OrderStatus::Active, None, Some(format!("return: {} are in use by jobs", units(in_use_milli))))
        }
    };
    tx.sql(
        "update orders set status = $2, decided_by = coalesce($3, decided_by), reason = $4, changed_at = $5
         where id = $1",
    )
    .bind(stored.stream.key().to_owned())
    .bind(status)
    .bind(by.map(Id))
    .bind(reason)
    .bind(Time::from(stored.meta.occurred_at))
    .run()
    .await?;
    Ok(())
}

async fn request(tx: &mut Tx, stored: &Recorded, by: MemberId, terms: &order::Terms) -> Result<()> {
    let at = Time::from(stored.meta.occurred_at);
    tx.sql(
        "insert into orders (id, tenant, requested_by, sku, resource, quantity, price, currency, status, requested_at,
                             changed_at, position)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(stored.stream.key().to_owned())
    .bind(Id(terms.tenant))
    .bind(by)
    .bind(terms.bill_to.sku.clone())
    .bind(Resource(terms.resource.clone()))
    .bind(terms.milli / MILLI)
    .bind(Amount(terms.price))
    .bind(Currency(terms.bill_to.currency))
    .bind(OrderStatus::Requested)
    .bind(at)
    .bind(at)
    .bind(stored.position)
    .run()
    .await?;
    Ok(())
}

/// The orders of these tenants, newest first.
pub async fn of(db: &Db, whose: Whose, page: &Page) -> Result<Slice<Order>> {
    let rows = db
        .sql(
            "select * from orders
             where (tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2))
               and position < $3
             order by position desc limit $4",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(page.after_or(i64::MAX)?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// One order.
pub async fn find(db: &Db, order: OrderId) -> Result<Option<Order>> {
    db.sql("select * from orders where id = $1").bind(order).optional().await
}

/// Whether a tenant has an active order of a resource.
pub async fn has_active(db: &Db, tenant: TenantId, resource: Resource) -> Result<bool> {
    let row: Option<(String,)> = db
        .sql("select id from orders where tenant = $1 and resource = $2 and status in ('active', 'returning') limit 1")
        .bind(tenant)
        .bind(resource)
        .optional()
        .await?;
    Ok(row.is_some())
}
