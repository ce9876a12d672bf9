//! Samples of wallets, ledgers, statements and series.

use super::samples;
use super::values::{account, decimal, id, period, tenant};
use domain::Event;
use domain::billing::ledger::{Charge, Heading, Posting, Source, Unrated};
use domain::billing::line::{Line, LineKey, Total};
use domain::billing::{ledger, series, statement, wallet};
use domain::kernel::{Currency, Quantity, Unit};

pub(super) fn all() -> Vec<Event> {
    let core_hours =
        Charge { unit: Unit::CoreHour, price: decimal("0.35"), quantity: Quantity(36_000_000), ..charge() };
    [wallets(), ledgers(), statements(), series_of_numbers(), vec![ledger::Event::Deferred(core_hours).into()]].concat()
}

fn heading() -> Heading {
    let to = account();
    Heading {
        customer: to.customer,
        tenant: tenant(),
        month: "2026-11".parse().unwrap(),
        zone: to.zone,
        currency: Currency::Cny,
    }
}

fn key() -> LineKey {
    LineKey { sku: "a100.card".into(), book: account().book, price_version: 1 }
}

/// A card for 59 seconds.
fn quantity() -> Quantity {
    Quantity(1000 * 59_000)
}

fn charge() -> Charge {
    Charge {
        source: Source { event: id("reading"), part: 0 },
        lease: id("lease"),
        job: id("job"),
        period: period("01:00:01.25", "01:01:00.25"),
        key: key(),
        unit: Unit::CardHour,
        price: decimal("80"),
        quantity: quantity(),
    }
}

fn lines() -> Vec<Line> {
    let (price, amount) = (decimal("80"), decimal("1.31111111"));
    vec![Line { key: key(), unit: Unit::CardHour, price, quantity: quantity(), amount }]
}

fn total() -> Total {
    Total { total: decimal("1.31"), rounding: decimal("0.00") }
}

samples! { wallets of wallet:
    Opened { currency: Currency::Cny };
    ToppedUp { amount: decimal("10000.00"), by: id("wang"), reference: "bank 2026-117".into() };
    CreditSet { amount: decimal("500"), by: id("wang") };
    Held { job: id("job"), amount: decimal("320") };
    HoldRefused { job: id("job"), wanted: decimal("320"), available: decimal("12.5") };
    Consumed { source: charge().source, job: id("job"), amount: decimal("1.31111111") };
    Released { job: id("job"), amount: decimal("318.68888889") };
}

samples! { ledgers of ledger:
    Opened(heading());
    Charged {
        charge: charge(),
        amount: decimal("1.31111111"),
        postings: vec![
            Posting { account: "receivable".into(), amount: decimal("1.31111111") },
            Posting { account: "revenue.a100.card".into(), amount: decimal("-1.31111111") },
        ],
    };
    Unrated(Unrated {
        source: charge().source,
        lease: id("lease"),
        job: id("job"),
        period: charge().period,
        sku: "a100.card".into(),
        quantity: quantity(),
    });
    Deferred(charge());
    Closed { lines: lines(), total: total() };
}

samples! { statements of statement:
    Drafted(heading());
    Issued { number: "2026-11-000001".into(), lines: lines(), total: total() };
}

samples! { series_of_numbers of series:
    Taken { statement: id("statement"), number: 1 };
}
