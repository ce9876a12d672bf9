//! Samples of products, prices, contracts, orders and quotas.

use super::samples;
use super::values::{a100, account, at, decimal, id, tenant};
use domain::Event;
use domain::catalog::{contract, price_book, product};
use domain::kernel::{Ancestors, Currency, Resource, TenantId};
use domain::ordering::order;
use domain::quota::allowance;
use std::collections::BTreeMap;

pub(super) fn all() -> Vec<Event> {
    let dollars = price_book::Event::Opened { name: "dollar list".into(), currency: Currency::Usd };
    let cores = product::Event::Offered {
        sku: "core".into(),
        resource: Resource::Core,
        name_zh: "核时".into(),
        name_en: "Core-hours".into(),
    };
    let more = vec![dollars.into(), cores.into()];
    [products(), price_books(), contracts(), orders(), quotas(), in_a_tree(), more].concat()
}

samples! { products of product:
    Offered {
        sku: "a100.card".into(),
        resource: a100(),
        name_zh: "A100 卡时".into(),
        name_en: "A100 card-hours".into(),
    };
}

samples! { price_books of price_book:
    Opened { name: "list".into(), currency: Currency::Cny };
    Published(price_book::Version {
        number: 1,
        effective_at: at("00:00:00"),
        prices: BTreeMap::from([("a100.card".into(), decimal("80")), ("core".into(), decimal("0.35"))]),
    });
}

samples! { contracts of contract:
    Signed(contract::Terms {
        tenant: tenant(),
        customer: account().customer,
        book: account().book,
        zone: account().zone,
        currency: Currency::Cny,
    });
}

samples! { orders of order:
    Requested {
        by: id("li"),
        terms: order::Terms {
            tenant: tenant(),
            above: Ancestors::NONE,
            bill_to: account(),
            resource: a100(),
            milli: 8000,
            price: decimal("80"),
            price_version: 1,
        },
    };
    Approved { by: id("wang") };
    Rejected { by: id("wang"), reason: "no budget left".into() };
    Activated;
    Refused { wanted_milli: 8000, free_milli: 2000, node: None };
    ReturnRequested { by: id("li") };
    Returned;
    ReturnRefused { in_use_milli: 4000 };
}

samples! { quotas of allowance:
    Opened { tenant: tenant(), resource: a100() };
    CeilingSet { milli: 10_000, by: id("wang"), node: None };
    OrderHeld { order: id("order"), milli: 8000, below: vec![] };
    OrderHoldRefused { order: id("order"), wanted_milli: 8000, free_milli: 2000, node: None };
    OrderReleased { order: id("order"), milli: 8000 };
    OrderReleaseRefused { order: id("order"), in_use_milli: 4000 };
    JobHeld { job: id("job"), milli: 4000, node: None };
    JobQueued { job: id("job"), wanted_milli: 4000, free_milli: 1000, node: None };
    JobHoldRefused { job: id("job"), wanted_milli: 9000, ordered_milli: 8000 };
    JobReleased { job: id("job"), milli: 4000 };
}

/// The same in a tree: of a project below the tenant.
fn in_a_tree() -> Vec<Event> {
    let (project, order, job) = (id::<TenantId>("project"), id("order"), id("job"));
    let terms = order::Terms {
        tenant: project,
        above: Ancestors::NONE.with(tenant()),
        bill_to: account(),
        resource: a100(),
        milli: 2000,
        price: decimal("80"),
        price_version: 1,
    };
    let node = Some(project);
    vec![
        order::Event::Requested { by: id("li"), terms }.into(),
        order::Event::Refused { wanted_milli: 2000, free_milli: 0, node: Some(tenant()) }.into(),
        allowance::Event::CeilingSet { milli: 4000, by: id("wang"), node }.into(),
        allowance::Event::OrderHeld { order, milli: 2000, below: vec![project] }.into(),
        allowance::Event::OrderHoldRefused { order, wanted_milli: 2000, free_milli: 0, node }.into(),
        allowance::Event::JobHeld { job, milli: 1000, node }.into(),
        allowance::Event::JobQueued { job, wanted_milli: 2000, free_milli: 1000, node }.into(),
    ]
}
