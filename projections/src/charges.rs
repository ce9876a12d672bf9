//! Charges: what each reading of a meter came to. Table `charges`.

use crate::Whose;
use domain::Event;
use domain::billing::ledger;
use domain::billing::statement::{ledger_of, statement_of};
use domain::kernel::Recorded;
use store::{
    Amount, Db, EventId, Id, JobId, Keyset, LeaseId, Page, PriceBookId, Result, Slice, StatementId, TenantId, Time, Tx,
};

/// A charge.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Charge {
    /// The event that made it.
    pub event: EventId,
    /// That event's place in the log.
    pub position: i64,
    /// Whose it is.
    pub tenant: TenantId,
    /// The statement that it is on.
    pub statement: StatementId,
    /// The product.
    pub sku: String,
    /// The price book.
    pub book: PriceBookId,
    /// The version of the book.
    pub price_version: i64,
    /// The right that was used.
    pub lease: LeaseId,
    /// The job that used it.
    pub job: JobId,
    /// Since when.
    pub from_at: Time,
    /// Until when.
    pub to_at: Time,
    /// In thousandths of a unit × milliseconds; exact.
    pub quantity: i64,
    /// Per unit-hour.
    pub price: Amount,
    /// By how much it moved its line; exact to eight places.
    pub amount: Amount,
    /// The meter's reading that it comes from.
    pub reading: EventId,
}

impl Keyset for Charge {
    fn cursor(&self) -> String {
        self.position.to_string()
    }
}

/// Folds one event into the table.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Ledger(ledger::Event::Charged { charge, amount, .. }) = event else { return Ok(()) };
    let Some(statement) = statement(stored) else { return Ok(()) };
    tx.sql(
        "insert into charges (event, position, tenant, statement, sku, book, price_version, lease, job, from_at, to_at,
                              quantity, price, amount, reading)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .bind(Id(stored.event))
    .bind(stored.position)
    .bind(Id(stored.meta.tenant))
    .bind(statement)
    .bind(charge.key.sku.clone())
    .bind(Id(charge.key.book))
    .bind(i64::from(charge.key.price_version))
    .bind(Id(charge.lease))
    .bind(Id(charge.job))
    .bind(Time::from(charge.period.from))
    .bind(Time::from(charge.period.to))
    .bind(charge.quantity.0)
    .bind(Amount(charge.price))
    .bind(Amount(*amount))
    .bind(Id(charge.source.event))
    .run()
    .await?;
    Ok(())
}

/// The statement of the ledger that an event belongs to.
pub(crate) fn statement(stored: &Recorded) -> Option<StatementId> {
    let (customer, month) = ledger_of(stored.stream.key())?;
    Some(Id(statement_of(customer, month)))
}

/// The line of a statement that charges are on.
#[derive(Debug, Clone, Copy)]
pub struct OnLine<'a> {
    pub statement: StatementId,
    pub sku: &'a str,
    pub price_version: i64,
}

/// The charges of a line that are of these tenants, in the order of the log.
pub async fn of_line(db: &Db, whose: Whose, line: OnLine<'_>, page: &Page) -> Result<Slice<Charge>> {
    let rows = db
        .sql(
            "select * from charges
             where (tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2))
               and statement = $3 and sku = $4 and price_version = $5 and position > $6
             order by position limit $7",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(line.statement)
        .bind(line.sku.to_owned())
        .bind(line.price_version)
        .bind(page.after_or(0_i64)?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// The charges of a job, in the order of the log.
pub async fn of_job(db: &Db, job: JobId) -> Result<Vec<Charge>> {
    db.sql("select * from charges where job = $1 order by position").bind(job).all().await
}
