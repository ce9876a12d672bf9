//! Money for running jobs: each full hour of a lease, the wallet's hold grows to cover what was used and one hour more.
//!
//! Owns: when. Does not own: what is held or refused (`domain::billing::Wallet`). On failure: a wallet that has no more
//! says so by an event; the job runs on, and what it uses is charged.
//! Invariant: the command of a lease's hour has an id of its own, so an hour is extended once.

use crate::ControlError;
use crate::periods::{Step, give};
use chrono::{DateTime, Utc};
use domain::billing::{Wallet, wallet};
use domain::catalog::PriceBook;
use domain::flows::wallet_key;
use domain::kernel::{Period, Quantity};
use domain::metering::Meter;
use kit::Kit;
use projections::meters;
use rust_decimal::Decimal;

const HOUR_MS: i64 = 3_600_000;

/// Extends the holds of all leases that have begun another hour. Returns how many were asked for.
pub async fn extend_due(kit: &Kit) -> Result<usize, ControlError> {
    let now = kit.clock.now();
    let mut asked = 0;
    for open in meters::open(&kit.read).await? {
        let hours = Period { from: open.from_at.at(), to: now }.ms() / HOUR_MS;
        if hours < 1 {
            continue;
        }
        let Some(amount) = amount(kit, &open, now).await? else { continue };
        let key = wallet_key(open.customer.0);
        let step = Step { name: format!("hold/{}/{hours}", open.lease.0), tenant: open.tenant.0 };
        give::<Wallet>(kit, &key, step, wallet::Command::Hold { job: open.job.0, amount }).await?;
        asked += 1;
    }
    Ok(asked)
}

/// What was used since the last reading and one hour more cost now. `None` where there is no price now.
async fn amount(kit: &Kit, open: &meters::Meter, now: DateTime<Utc>) -> Result<Option<Decimal>, ControlError> {
    let meter = kit.executor.load::<Meter>(open.lease.0).await?.state;
    let Some(subject) = meter.subject() else { return Ok(None) };
    let book = kit.executor.load::<PriceBook>(subject.bill_to.book).await?.state;
    let used = Period { from: open.until_at.at(), to: now }.ms();
    let quantity = Quantity::held(subject.milli, used.saturating_add(HOUR_MS));
    let price = book.price_at(&subject.bill_to.sku, now);
    Ok(quantity.zip(price).and_then(|(quantity, (price, _))| quantity.cost(price)))
}
