//! From a lease's edges to a statement.

use super::world::{World, decimal, instant, tenant};
use chrono::{DateTime, Utc};
use domain::Event;
use domain::allocation::job::Outcome;
use domain::billing::ledger::{self, Heading};
use domain::billing::statement::{ledger_key, statement_of};
use domain::billing::{Ledger, Statement, statement};
use domain::catalog::{PriceBook, price_book};
use domain::kernel::spec::bill_to;
use domain::kernel::{Currency, LeaseId, Month, StreamName, TenantId};
use domain::metering::{Meter, meter};
use std::collections::BTreeMap;

fn month(text: &str) -> Month {
    text.parse().unwrap()
}

fn ledger(world: &World, of: &str) -> Ledger {
    world.state(ledger_key(bill_to().customer, month(of)))
}

/// The lines as a person reads them.
fn lines(world: &World, of: &str) -> Vec<String> {
    ledger(world, of).lines().iter().map(|line| format!("{} at {}", line.shown(), line.price)).collect()
}

/// The clock closes a month.
fn close(world: &World, of: &str) -> Result<(), ledger::Error> {
    let to = bill_to();
    let heading =
        Heading { customer: to.customer, tenant: tenant(), month: month(of), zone: to.zone, currency: Currency::Cny };
    world.ask::<Ledger>(ledger_key(to.customer, month(of)), tenant(), ledger::Command::Close { heading })
}

/// What was issued for a month: the number and the total.
fn issued(world: &World, of: &str) -> Vec<(String, String)> {
    let stream = StreamName::new("statement", statement_of(bill_to().customer, month(of)));
    let issues = world.events().into_iter().filter(|(of, _)| *of == stream).filter_map(|(_, event)| {
        let Event::Statement(statement::Event::Issued { number, total, .. }) = event else { return None };
        Some((number, total.total.to_string()))
    });
    issues.collect()
}

/// A job of so many cards that began at an instant.
fn begun(world: &World, name: &str, cards: u32, at: &str) -> LeaseId {
    world.now.set(instant(at));
    let job = world.submit(name, cards);
    world.settle();
    world.place(job);
    world.settle();
    let lease = world.leases().pop().unwrap().0;
    world.start(lease);
    world.settle();
    lease
}

fn end(world: &World, lease: LeaseId, at: &str) {
    world.end(lease, instant(at), Outcome::Succeeded);
    world.settle();
}

fn cut(world: &World, lease: LeaseId, at: DateTime<Utc>) {
    world.ask::<Meter>(lease, tenant(), meter::Command::Cut { at }).unwrap();
    world.settle();
}

#[test]
fn what_a_lease_held_is_metered_charged_consumed_and_drafted() {
    let world = World::ordered(4, "1000");
    let one = begun(&world, "one", 1, "2026-11-05T01:00:00Z");
    end(&world, one, "2026-11-05T01:20:00Z");
    let two = begun(&world, "two", 2, "2026-11-05T02:00:00Z");
    assert_eq!(world.wallet().held(), decimal("160"));
    end(&world, two, "2026-11-05T02:20:00Z");
    assert_eq!(lines(&world, "2026-11"), ["80.00 at 80"]);
    assert_eq!(world.wallet().available(), decimal("920"));
    world.is_free();
    let statement: Statement = world.state(statement_of(bill_to().customer, month("2026-11")));
    assert!(matches!(&statement, Statement::Draft(heading) if heading.month == month("2026-11")), "{statement:?}");
    world.is_sound();
}

#[test]
fn what_runs_longer_than_its_hold_is_charged_all_the_same() {
    let world = World::ordered(1, "100");
    let lease = begun(&world, "long", 1, "2026-11-05T01:00:00Z");
    end(&world, lease, "2026-11-05T04:00:00Z");
    assert_eq!(lines(&world, "2026-11"), ["240.00 at 80"]);
    assert_eq!(world.wallet().available(), decimal("-140"));
    world.is_free();
    world.is_sound();
}

#[test]
fn a_closed_month_is_numbered_and_issued_once() {
    let world = World::ordered(4, "1000");
    let lease = begun(&world, "train", 1, "2026-11-05T01:00:00Z");
    end(&world, lease, "2026-11-05T01:00:59Z");
    for _ in 0..2 {
        close(&world, "2026-11").unwrap();
        world.settle();
    }
    close(&world, "2026-12").unwrap();
    world.settle();
    assert_eq!(issued(&world, "2026-11"), [("2026-11-000001".into(), "1.31".into())]);
    assert_eq!(issued(&world, "2026-12"), [("2026-12-000002".into(), "0.00".into())]);
    world.is_sound();
}

#[test]
fn a_reading_at_the_months_end_divides_what_runs_on() {
    let world = World::ordered(1, "100000");
    let lease = begun(&world, "train", 1, "2026-11-30T15:00:00Z");
    cut(&world, lease, month("2026-11").period(bill_to().zone).to);
    close(&world, "2026-11").unwrap();
    world.settle();
    end(&world, lease, "2026-11-30T18:00:00Z");
    assert_eq!(lines(&world, "2026-11"), ["80.00 at 80"]);
    assert_eq!(lines(&world, "2026-12"), ["160.00 at 80"]);
    assert_eq!(issued(&world, "2026-11"), [("2026-11-000001".into(), "80.00".into())]);
    world.is_sound();
}

#[test]
fn a_charge_that_comes_after_the_close_is_deferred_with_its_own_dates() {
    let world = World::ordered(1, "100000");
    let lease = begun(&world, "train", 1, "2026-11-30T15:00:00Z");
    // The node is out of reach; both months are closed before it says when the work had ended.
    for of in ["2026-11", "2026-12"] {
        close(&world, of).unwrap();
        world.settle();
    }
    end(&world, lease, "2026-11-30T15:30:00Z");
    assert_eq!(lines(&world, "2026-11"), Vec::<String>::new());
    assert_eq!(lines(&world, "2026-12"), Vec::<String>::new());
    assert_eq!(lines(&world, "2027-01"), ["40.00 at 80"]);
    assert_eq!(issued(&world, "2026-11"), [("2026-11-000001".into(), "0.00".into())]);
    assert_eq!(world.wallet().available(), decimal("99960"));
    let charged: Vec<DateTime<Utc>> = world
        .events()
        .into_iter()
        .filter_map(|(_, event)| {
            let Event::Ledger(ledger::Event::Charged { charge, .. }) = event else { return None };
            Some(charge.period.to)
        })
        .collect();
    assert_eq!(charged, [instant("2026-11-30T15:30:00Z")]);
    world.is_sound();
}

#[test]
fn what_was_read_too_much_is_given_back() {
    let world = World::ordered(1, "100000");
    let lease = begun(&world, "train", 1, "2026-11-05T01:00:00Z");
    cut(&world, lease, instant("2026-11-05T03:00:00Z"));
    assert_eq!(lines(&world, "2026-11"), ["160.00 at 80"]);
    end(&world, lease, "2026-11-05T02:00:00Z");
    assert_eq!(lines(&world, "2026-11"), ["80.00 at 80"]);
    assert_eq!(world.wallet().available(), decimal("99920"));
    world.is_free();
    world.is_sound();
}

#[test]
fn what_has_no_price_is_visible_and_keeps_the_month_open() {
    let world = World::ordered(1, "100000");
    let lease = begun(&world, "train", 1, "2026-11-05T01:00:00Z");
    let prices = BTreeMap::from([("core".into(), decimal("0.35"))]);
    let now = world.now.get();
    let publish = price_book::Command::Publish { effective_at: instant("2026-11-05T02:00:00Z"), prices, now };
    world.ask::<PriceBook>(bill_to().book, TenantId::PLATFORM, publish).unwrap();
    end(&world, lease, "2026-11-05T03:00:00Z");
    assert_eq!(lines(&world, "2026-11"), ["80.00 at 80"]);
    assert_eq!(close(&world, "2026-11"), Err(ledger::Error::HasUnrated(1)));
    world.is_free();
    world.is_sound();
}
