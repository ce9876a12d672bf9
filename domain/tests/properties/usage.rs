//! Metering and rating: reading anywhere changes nothing.

use super::given::{config, give, history, instant};
use chrono::{DateTime, TimeDelta, Utc};
use domain::catalog::price_book::{self, PriceBook};
use domain::catalog::rating::{Rated, rate};
use domain::kernel::spec::bill_to;
use domain::kernel::{Currency, Id, Month, Period, Quantity, Resource, TenantId, Zone, fold};
use domain::metering::meter::{self, Meter, Subject};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

const SKU: &str = "card.a100";

pub(crate) fn meter_commands() -> impl Strategy<Value = Vec<meter::Command>> {
    let id = TenantId::PLATFORM;
    let open = (1_i64..2_000_000, instant()).prop_map(move |(milli, from)| {
        let (lease, job, resource) = (Id::derived(id, "lease"), Id::derived(id, "job"), Resource::Core);
        meter::Command::Open { subject: Subject { lease, job, tenant: id, bill_to: bill_to(), resource, milli }, from }
    });
    let readings = vec(
        prop_oneof![
            8 => instant().prop_map(|at| meter::Command::Cut { at }),
            1 => instant().prop_map(|at| meter::Command::Close { at }),
        ],
        0..20,
    );
    (open, readings).prop_map(|(open, readings)| [open].into_iter().chain(readings).collect())
}

/// Any zone of the IANA list.
fn zone() -> impl Strategy<Value = Zone> {
    proptest::sample::select(chrono_tz::TZ_VARIANTS.to_vec()).prop_map(|zone| zone.name().parse().unwrap())
}

/// Prices that change at any instants, some of which leave the product out.
pub(crate) fn price_book() -> impl Strategy<Value = Vec<price_book::Command>> {
    let versions = btree_set(instant(), 0..6).prop_flat_map(|instants| {
        let prices = vec((proptest::bool::weighted(0.8), 1_i64..100_000_000), instants.len());
        (Just(instants), prices)
    });
    versions.prop_map(|(instants, prices)| {
        let open = price_book::Command::Open { name: "list".into(), currency: Currency::Cny };
        let versions = instants.into_iter().zip(prices).map(|(effective_at, (known, price))| {
            let sku = if known { SKU } else { "other" };
            let prices = BTreeMap::from([(sku.to_owned(), Decimal::new(price, 4))]);
            price_book::Command::Publish { effective_at, prices, now: effective_at }
        });
        [open].into_iter().chain(versions).collect()
    })
}

/// A book, a zone, how much is held, and instants in order at which it is read.
fn use_of_a_card() -> impl Strategy<Value = (PriceBook, Zone, i64, Vec<DateTime<Utc>>)> {
    let book = price_book().prop_map(|commands| fold(&history::<PriceBook>(commands)));
    let readings = (instant(), vec(0_i64..20_000_000_000_000, 1..12)).prop_map(|(from, spans)| {
        let instants = spans.into_iter().scan(from, |at, us| {
            *at += TimeDelta::microseconds(us);
            Some(*at)
        });
        [from].into_iter().chain(instants).collect()
    });
    (book, zone(), 1_i64..1_000_000, readings)
}

fn whole(readings: &[DateTime<Utc>]) -> Period {
    Period { from: readings[0], to: readings[readings.len() - 1] }
}

/// What it comes to by month and price, without what is nothing.
fn sums<'a>(parts: impl IntoIterator<Item = &'a Rated>) -> BTreeMap<(Month, Option<(Decimal, u32)>), Quantity> {
    let mut sums: BTreeMap<_, Quantity> = BTreeMap::new();
    for Rated { month, price, quantity, .. } in parts {
        let sum = sums.entry((*month, *price)).or_default();
        *sum = sum.plus(*quantity).unwrap();
    }
    sums.retain(|_, sum| *sum != Quantity::default());
    sums
}

fn total(parts: &[Rated]) -> i64 {
    parts.iter().map(|part| part.quantity.0).sum()
}

fn cost(parts: &[Rated]) -> Decimal {
    let sums = sums(parts);
    sums.iter().filter_map(|((_, price), sum)| sum.cost(price.as_ref()?.0)).sum()
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn readings_tile_and_sum_to_what_was_held(commands in meter_commands()) {
        let events = history::<Meter>(commands);
        let meter::Event::Opened { subject, from: opened } = &events[0] else { panic!("{events:?}") };
        let (mut until, mut sum, mut closed) = (*opened, 0, false);
        for event in &events[1..] {
            let (meter::Event::Measured { from, to, quantity } | meter::Event::Closed { from, to, quantity }) = event else {
                panic!("{event:?} comes twice")
            };
            prop_assert!(!closed && *from == until);
            closed = matches!(event, meter::Event::Closed { .. });
            prop_assert!(closed || *from < *to);
            (until, sum) = (*to, sum + quantity.0);
        }
        prop_assert_eq!(sum, subject.milli * Period { from: *opened, to: until }.ms());
    }

    #[test]
    fn reading_a_meter_anywhere_changes_no_total(commands in meter_commands(), end in instant()) {
        let last = |commands: Vec<meter::Command>| {
            let meter: Meter = fold(&history::<Meter>(commands.clone()));
            let all = [history::<Meter>(commands), give(&meter, meter::Command::Close { at: end }).1].concat();
            let quantity = |event: &meter::Event| match event {
                meter::Event::Opened { .. } => 0,
                meter::Event::Measured { quantity, .. } | meter::Event::Closed { quantity, .. } => quantity.0,
            };
            all.iter().map(quantity).sum::<i64>()
        };
        let cuts: Vec<_> =
            commands.iter().filter(|command| !matches!(command, meter::Command::Close { .. })).cloned().collect();
        prop_assert_eq!(last(cuts), last(commands[..1].to_vec()));
    }

    #[test]
    fn cutting_a_reading_changes_no_sum((book, zone, milli, readings) in use_of_a_card()) {
        let once = rate(&book, SKU, zone, milli, whole(&readings)).unwrap();
        let pieces: Vec<Rated> = readings
            .windows(2)
            .flat_map(|cut| rate(&book, SKU, zone, milli, Period { from: cut[0], to: cut[1] }).unwrap())
            .collect();
        prop_assert_eq!(sums(&pieces), sums(&once));
        prop_assert_eq!(total(&once), milli * whole(&readings).ms());
    }

    #[test]
    fn parts_tile_and_each_is_in_one_month_under_one_price((book, zone, milli, readings) in use_of_a_card()) {
        let reading = whole(&readings);
        let mut until = reading.from;
        for part in rate(&book, SKU, zone, milli, reading).unwrap() {
            prop_assert_eq!(part.period.from, until);
            prop_assert!(part.period.from < part.period.to);
            let last = part.period.to - TimeDelta::microseconds(1);
            for at in [part.period.from, last] {
                prop_assert_eq!(Month::of(at, zone), part.month);
                prop_assert_eq!(book.price_at(SKU, at), part.price);
            }
            until = part.period.to;
        }
        prop_assert_eq!(until, reading.to);
    }

    #[test]
    fn more_use_never_costs_less((book, zone, milli, readings) in use_of_a_card()) {
        let (mut used, mut spent) = (0, Decimal::ZERO);
        for to in &readings {
            let parts = rate(&book, SKU, zone, milli, Period { from: readings[0], to: *to }).unwrap();
            prop_assert!(used <= total(&parts) && spent <= cost(&parts));
            (used, spent) = (total(&parts), cost(&parts));
        }
        let more = rate(&book, SKU, zone, milli + 1, whole(&readings)).unwrap();
        prop_assert!(used <= total(&more) && spent <= cost(&more));
    }

    #[test]
    fn a_reading_backwards_is_the_same_negated((book, zone, milli, readings) in use_of_a_card()) {
        let Period { from, to } = whole(&readings);
        let there = rate(&book, SKU, zone, milli, Period { from, to }).unwrap();
        let back = rate(&book, SKU, zone, milli, Period { from: to, to: from }).unwrap();
        let negated = there.iter().map(|part| Rated { quantity: part.quantity.negated(), ..part.clone() });
        prop_assert_eq!(back, negated.collect::<Vec<_>>());
    }
}

#[test]
fn what_cannot_be_counted_is_not_rated() {
    let day = "2026-11-05T00:00:00Z".parse::<DateTime<Utc>>().unwrap();
    let reading = Period { from: day, to: day + TimeDelta::days(1) };
    assert_eq!(rate(&PriceBook::default(), SKU, Zone::default(), i64::MAX, reading), None);
}

#[test]
fn around_its_first_instant_a_month_begins_once_in_every_zone() {
    for zone in chrono_tz::TZ_VARIANTS {
        let zone: Zone = zone.name().parse().unwrap();
        let mut month: Month = "2024-12".parse().unwrap();
        while month.year() < 2040 {
            let start = month.next().period(zone).from;
            let of = |minutes| Month::of(start + TimeDelta::minutes(minutes), zone);
            assert!([-180, -90, -1].iter().all(|minutes| of(*minutes) == month), "{month} ends at {start} in {zone}");
            assert!([0, 1, 90, 180].iter().all(|minutes| of(*minutes) == month.next()), "{month} {start} {zone}");
            month = month.next();
        }
    }
}
