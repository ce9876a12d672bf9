//! Statements (账单) and their lines; a draft shows the open ledger. Tables `statements`, `statement_lines`.

use crate::Whose;
use crate::charges::statement as statement_of;
use domain::Event;
use domain::billing::ledger::{self, Charge};
use domain::billing::line::Line;
use domain::billing::statement;
use domain::kernel::{Quantity, Recorded, money};
use store::{
    Amount, Currency, CustomerId, Db, Id, Keyset, Month, Page, PriceBookId, Result, Slice, StatementId, TenantId, Tx,
    Zone,
};

/// A statement.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Statement {
    /// Its id.
    pub id: StatementId,
    /// Whose use it lists.
    pub tenant: TenantId,
    /// Who pays.
    pub customer: CustomerId,
    /// The month, in the contract's zone.
    pub month: Month,
    /// Whose months these are.
    pub zone: Zone,
    /// What its amounts are in.
    pub currency: Currency,
    /// Whether it can still change.
    pub status: StatementStatus,
    /// Its number, once it is issued.
    pub number: Option<String>,
    /// Whether the month is closed.
    pub closed: bool,
    /// Uses without a price; they block the close.
    pub unrated: i64,
}

/// Whether a statement can still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, async_graphql::Enum, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum StatementStatus {
    /// It can.
    Draft,
    /// Never again.
    Issued,
}

/// A line of a statement: one product under one price.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct StatementLine {
    /// The statement that it is on.
    pub statement: StatementId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The product.
    pub sku: String,
    /// The price book.
    pub book: PriceBookId,
    /// The version of the book.
    pub price_version: i64,
    /// What it is counted in.
    pub unit: String,
    /// Per unit.
    pub price: Amount,
    /// In thousandths of a unit × milliseconds; exact.
    pub quantity: i64,
    /// The same in units, rounded to eight places.
    pub hours: Amount,
    /// Exact to eight places.
    pub amount: Amount,
    /// Rounded once, half to even.
    pub shown: Amount,
}

/// What the lines come to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct StatementTotal {
    /// The exact sum, rounded once.
    pub total: Amount,
    /// What the rounded lines differ from it.
    pub rounding: Amount,
}

impl Keyset for Statement {
    fn cursor(&self) -> String {
        format!("{}/{}", self.month.0, self.id.0)
    }
}

/// Folds one event into the tables.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events do not concern it")]
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    match event {
        Event::Statement(statement::Event::Drafted(_)) | Event::Statement(statement::Event::Issued { .. }) => {
            of_statement(tx, stored, event).await
        }
        Event::Ledger(event) => match statement_of(stored) {
            Some(statement) => of_ledger(tx, statement, event).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

async fn of_statement(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    if let Event::Statement(statement::Event::Issued { number, .. }) = event {
        tx.sql("update statements set status = $2, number = $3 where id = $1")
            .bind(stored.stream.key().to_owned())
            .bind(StatementStatus::Issued)
            .bind(number.clone())
            .run()
            .await?;
    }
    Ok(())
}

async fn of_ledger(tx: &mut Tx, statement: StatementId, event: &ledger::Event) -> Result<()> {
    let change = match event {
        ledger::Event::Opened(heading) => tx
            .sql(
                "insert into statements (id, tenant, customer, month, zone, currency, status, closed, unrated)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
            )
            .bind(statement)
            .bind(Id(heading.tenant))
            .bind(Id(heading.customer))
            .bind(Month(heading.month))
            .bind(Zone(heading.zone))
            .bind(Currency(heading.currency))
            .bind(StatementStatus::Draft)
            .bind(false),
        ledger::Event::Charged { charge, .. } => return add(tx, statement, charge).await,
        ledger::Event::Unrated(_) => {
            tx.sql("update statements set unrated = unrated + 1 where id = $1").bind(statement)
        }
        ledger::Event::Closed { .. } => {
            tx.sql("update statements set closed = $2 where id = $1").bind(statement).bind(true)
        }
        ledger::Event::Deferred(_) => return Ok(()),
    };
    change.run().await?;
    Ok(())
}

/// Adds a charge to its line, which is of the statement's tenant; the amount is the price applied to the whole sum.
async fn add(tx: &mut Tx, statement: StatementId, charge: &Charge) -> Result<()> {
    let row: Option<(i64,)> = tx
        .sql(
            "select quantity from statement_lines
             where statement = $1 and sku = $2 and book = $3 and price_version = $4",
        )
        .bind(statement)
        .bind(charge.key.sku.clone())
        .bind(Id(charge.key.book))
        .bind(i64::from(charge.key.price_version))
        .optional()
        .await?;
    let before = Line {
        key: charge.key.clone(),
        unit: charge.unit,
        price: charge.price,
        quantity: Quantity(row.map_or(0, |(quantity,)| quantity)),
        amount: rust_decimal::Decimal::ZERO,
    };
    let Some(line) = before.plus(charge.quantity) else { return Ok(()) };
    tx.sql(
        "insert into statement_lines (statement, tenant, sku, book, price_version, unit, price, quantity, hours, amount,
                                      shown)
         values ($1, (select tenant from statements where id = $1), $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (statement, sku, book, price_version) do update
         set quantity = excluded.quantity, hours = excluded.hours, amount = excluded.amount, shown = excluded.shown",
    )
    .bind(statement)
    .bind(line.key.sku.clone())
    .bind(Id(line.key.book))
    .bind(i64::from(line.key.price_version))
    .bind(line.unit.to_string())
    .bind(Amount(line.price))
    .bind(line.quantity.0)
    .bind(Amount(money::kept(line.quantity.hours())))
    .bind(Amount(line.amount))
    .bind(Amount(line.shown()))
    .run()
    .await?;
    Ok(())
}

/// The statements of these tenants, newest month first.
pub async fn of(db: &Db, whose: Whose, page: &Page) -> Result<Slice<Statement>> {
    let rows = db
        .sql(
            "select * from statements
             where (tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2))
               and month || '/' || id < $3
             order by month desc, id desc limit $4",
        )
        .bind(whose.one())
        .bind(whose.top())
        .bind(page.after_or("~".to_owned())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// One statement.
pub async fn find(db: &Db, statement: StatementId) -> Result<Option<Statement>> {
    db.sql("select * from statements where id = $1").bind(statement).optional().await
}

/// A customer's ledgers that are not closed.
pub async fn open(db: &Db) -> Result<Vec<Statement>> {
    db.sql("select * from statements where closed = $1 order by month, id").bind(false).all().await
}

/// The lines of a statement, in their order.
pub async fn lines(db: &Db, statement: StatementId) -> Result<Vec<StatementLine>> {
    db.sql("select * from statement_lines where statement = $1 order by sku, price_version").bind(statement).all().await
}

/// What these lines come to.
pub fn total(lines: &[StatementLine]) -> StatementTotal {
    let exact = lines.iter().map(|line| line.amount.0).sum();
    let shown: rust_decimal::Decimal = lines.iter().map(|line| line.shown.0).sum();
    let total = money::shown(exact);
    StatementTotal { total: Amount(total.normalize()), rounding: Amount((total - shown).normalize()) }
}
