//! Wallets: what was granted, is held, was consumed and is left. Tables `wallets`, `wallet_holds`.

use domain::Event;
use domain::billing::wallet;
use domain::kernel::Recorded;
use store::{Amount, Currency, CustomerId, Db, Id, Result, TenantId, Tx};

/// A customer's wallet.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Wallet {
    /// Whose it is.
    pub customer: CustomerId,
    /// The tenant that uses it.
    pub tenant: TenantId,
    /// What its amounts are in.
    pub currency: Currency,
    /// What was paid in.
    pub granted: Amount,
    /// How far below zero it may go.
    pub credit: Amount,
    /// What was charged.
    pub consumed: Amount,
    /// What is set aside for jobs.
    pub held: Amount,
    /// What is left; below zero: arrears.
    pub available: Amount,
}

/// Folds one event into the tables.
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let Event::Wallet(event) = event else { return Ok(()) };
    let Some(customer) = stored.stream.key().split('-').next().map(ToOwned::to_owned) else { return Ok(()) };
    match event {
        wallet::Event::Opened { currency } => {
            tx.sql(
                "insert into wallets (customer, tenant, currency, granted, credit, consumed)
                 values ($1, $2, $3, 0, 0, 0)",
            )
            .bind(customer)
            .bind(Id(stored.meta.tenant))
            .bind(Currency(*currency))
            .run()
            .await?;
        }
        wallet::Event::ToppedUp { amount, .. } => {
            tx.sql("update wallets set granted = granted + $2 where customer = $1")
                .bind(customer)
                .bind(Amount(*amount))
                .run()
                .await?;
        }
        wallet::Event::CreditSet { amount, .. } => {
            tx.sql("update wallets set credit = $2 where customer = $1")
                .bind(customer)
                .bind(Amount(*amount))
                .run()
                .await?;
        }
        wallet::Event::Held { job, amount } => {
            tx.sql(
                "insert into wallet_holds (customer, job, amount) values ($1, $2, $3)
                 on conflict (customer, job) do update set amount = excluded.amount",
            )
            .bind(customer)
            .bind(Id(*job))
            .bind(Amount(*amount))
            .run()
            .await?;
        }
        wallet::Event::Consumed { job, amount, .. } => consume(tx, customer, Id(*job), Amount(*amount)).await?,
        wallet::Event::Released { job, .. } => {
            tx.sql("delete from wallet_holds where customer = $1 and job = $2")
                .bind(customer)
                .bind(Id(*job))
                .run()
                .await?;
        }
        wallet::Event::HoldRefused { .. } => {}
    }
    Ok(())
}

/// A charge is taken from the job's hold first; a correction does not raise the hold again.
async fn consume(tx: &mut Tx, customer: String, job: store::JobId, amount: Amount) -> Result<()> {
    tx.sql("update wallets set consumed = consumed + $2 where customer = $1")
        .bind(customer.clone())
        .bind(amount)
        .run()
        .await?;
    tx.sql(
        "update wallet_holds set amount = case when amount < $3 then 0 else amount - $3 end
         where customer = $1 and job = $2 and $3 > 0",
    )
    .bind(customer)
    .bind(job)
    .bind(amount)
    .run()
    .await?;
    Ok(())
}

/// A tenant's wallets.
pub async fn of_tenant(db: &Db, tenant: TenantId) -> Result<Vec<Wallet>> {
    db.sql(
        "select w.customer, w.tenant, w.currency, w.granted, w.credit, w.consumed,
                coalesce(cast(sum(h.amount) as bigint), 0) as held,
                w.granted - w.consumed - coalesce(cast(sum(h.amount) as bigint), 0) as available
         from wallets w left join wallet_holds h on h.customer = w.customer
         where w.tenant = $1
         group by w.customer, w.tenant, w.currency, w.granted, w.credit, w.consumed order by w.customer",
    )
    .bind(tenant)
    .all()
    .await
}
