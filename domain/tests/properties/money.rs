//! Wallets and ledgers under random commands.

use super::given::{cents, config, give, history, one_of};
use domain::billing::ledger::{self, Charge, Heading, Ledger, Source, Unrated};
use domain::billing::line::{Line, LineKey};
use domain::billing::wallet::{self, Wallet};
use domain::kernel::spec::{bill_to, member};
use domain::kernel::{Aggregate, Currency, Id, JobId, LeaseId, Period, Quantity, TenantId, Unit, fold, money};
use proptest::collection::vec;
use proptest::prelude::*;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn source() -> impl Strategy<Value = Source> {
    (one_of(12), 0_u32..3).prop_map(|(event, part)| Source { event, part })
}

pub(crate) fn wallet_commands() -> impl Strategy<Value = Vec<wallet::Command>> {
    use wallet::Command;
    let by = member("wang");
    let commands = prop_oneof![
        2 => cents(-100..100_000).prop_map(move |amount| Command::TopUp { amount, by, reference: "bank".into() }),
        1 => cents(-100..50_000).prop_map(move |amount| Command::SetCredit { amount, by }),
        4 => (one_of(6), cents(0..60_000)).prop_map(|(job, amount)| Command::Hold { job, amount }),
        // A correction gives back.
        4 => (source(), one_of(6), cents(-20_000..60_000)).prop_map(|(source, job, amount)| {
            Command::Consume { source, job, amount }
        }),
        2 => one_of(6).prop_map(|job| Command::Release { job }),
    ];
    vec(commands, 1..60).prop_map(|commands| {
        let open = Command::Open { currency: Currency::Cny };
        [open].into_iter().chain(commands).collect()
    })
}

/// Some uses of two products under three price versions; the price follows from product and version.
fn charge() -> impl Strategy<Value = Charge> {
    let key = (0_usize..2, 1_u32..4);
    (key, source(), -3_600_000_000_000_i64..36_000_000_000_000).prop_map(
        |((product, price_version), source, milli_ms)| {
            let sku = ["core", "card.a100"][product];
            let price = [Decimal::new(35, 2), Decimal::new(8_012_345_678, 8)][product] * Decimal::from(price_version);
            let from = chrono::DateTime::UNIX_EPOCH;
            Charge {
                source,
                lease: LeaseId::derived(TenantId::PLATFORM, "lease"),
                job: JobId::derived(TenantId::PLATFORM, "job"),
                period: Period { from, to: from },
                key: LineKey { sku: sku.into(), book: bill_to().book, price_version },
                unit: [Unit::CoreHour, Unit::CardHour][product],
                price,
                quantity: Quantity(milli_ms),
            }
        },
    )
}

/// Charges that each come from another reading.
fn charges() -> impl Strategy<Value = Vec<Charge>> {
    vec(charge(), 0..40).prop_map(|charges| {
        let by_source: BTreeMap<Source, Charge> = charges.into_iter().map(|charge| (charge.source, charge)).collect();
        by_source.into_values().collect()
    })
}

/// The same charges in another order, some of them more than once.
fn told_anew() -> impl Strategy<Value = (Vec<Charge>, Vec<Charge>)> {
    charges().prop_flat_map(|once| {
        let again = proptest::sample::subsequence(once.clone(), 0..=once.len());
        let anew = again.prop_flat_map({
            let once = once.clone();
            move |again| Just([once.clone(), again].concat()).prop_shuffle()
        });
        (Just(once), anew)
    })
}

fn heading() -> Heading {
    let to = bill_to();
    let month = "2026-11".parse().unwrap();
    Heading { customer: to.customer, tenant: TenantId::PLATFORM, month, zone: to.zone, currency: to.currency }
}

fn to_charge(charge: Charge) -> ledger::Command {
    ledger::Command::Charge { heading: heading(), charge }
}

pub(crate) fn ledger_commands() -> impl Strategy<Value = Vec<ledger::Command>> {
    let unrated = |Charge { source, lease, job, period, key, quantity, .. }: Charge| {
        let unrated = Unrated { source, lease, job, period, sku: key.sku, quantity };
        ledger::Command::RecordUnrated { heading: heading(), unrated }
    };
    vec(
        prop_oneof![
            20 => charge().prop_map(to_charge),
            1 => charge().prop_map(unrated),
            1 => Just(ledger::Command::Close { heading: heading() }),
        ],
        1..40,
    )
}

fn charged(charges: Vec<Charge>) -> Ledger {
    fold(&history::<Ledger>(charges.into_iter().map(to_charge).collect()))
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn what_was_granted_is_available_or_held_or_consumed_at_every_event(commands in wallet_commands()) {
        let (mut wallet, mut granted, mut credit) = (Wallet::default(), Decimal::ZERO, Decimal::ZERO);
        let (mut consumed, mut sources) = (Decimal::ZERO, BTreeSet::<Source>::new());
        for command in commands {
            for event in wallet.decide(command).unwrap_or_default() {
                let held = wallet.held();
                wallet = wallet.evolve(&event);
                match event {
                    wallet::Event::ToppedUp { amount, .. } => granted += amount,
                    wallet::Event::CreditSet { amount, .. } => credit = amount,
                    wallet::Event::Consumed { source, amount, .. } => {
                        consumed += amount;
                        prop_assert!(sources.insert(source), "{:?} was consumed twice", source);
                    }
                    wallet::Event::Held { .. } if wallet.held() > held => {
                        prop_assert!(wallet.available() + credit >= Decimal::ZERO, "more is held than there is");
                    }
                    wallet::Event::Opened { .. }
                    | wallet::Event::Held { .. }
                    | wallet::Event::HoldRefused { .. }
                    | wallet::Event::Released { .. } => {}
                }
                prop_assert!(wallet.held() >= Decimal::ZERO);
                prop_assert_eq!(granted, wallet.available() + wallet.held() + consumed);
            }
        }
    }

    #[test]
    fn a_hold_or_release_is_always_answered_and_what_comes_twice_changes_nothing(commands in wallet_commands()) {
        let mut wallet = Wallet::default();
        for command in commands {
            let asks = matches!(command, wallet::Command::Hold { .. } | wallet::Command::Release { .. });
            let grows = matches!(command, wallet::Command::TopUp { .. });
            let (after, events) = give(&wallet, command.clone());
            prop_assert!(!asks || !events.is_empty(), "{:?} was not answered", command);
            prop_assert!(grows || give(&after, command.clone()).0 == after, "{:?} was repeated", command);
            wallet = after;
        }
    }

    #[test]
    fn every_posting_sums_to_zero_and_a_lines_charges_to_its_amount(commands in ledger_commands()) {
        let events = history::<Ledger>(commands);
        let mut lines: BTreeMap<LineKey, (Quantity, Decimal)> = BTreeMap::new();
        let mut sources: BTreeSet<Source> = BTreeSet::new();
        for event in &events {
            let ledger::Event::Charged { charge, amount, postings } = event else { continue };
            prop_assert_eq!(postings.iter().map(|posting| posting.amount).sum::<Decimal>(), Decimal::ZERO);
            prop_assert_eq!(postings[0].amount, *amount);
            prop_assert!(sources.insert(charge.source), "{:?} was charged twice", charge.source);
            let (quantity, sum) = lines.entry(charge.key.clone()).or_default();
            *quantity = quantity.plus(charge.quantity).unwrap();
            *sum += amount;
        }
        let ledger: Ledger = fold(&events);
        prop_assert_eq!(ledger.lines().len(), lines.len());
        for Line { key, quantity, price, amount, .. } in ledger.lines() {
            prop_assert_eq!(lines[&key], (quantity, amount));
            prop_assert_eq!(Some(amount), quantity.cost(price), "the price counts once, for the sum");
        }
    }

    #[test]
    fn neither_order_nor_repetition_of_charges_changes_lines_or_total((once, anew) in told_anew()) {
        let (expected, ledger) = (charged(once), charged(anew));
        prop_assert_eq!(ledger.lines(), expected.lines());
        prop_assert_eq!(ledger.total(), expected.total());
    }

    #[test]
    fn a_total_is_the_exact_sum_rounded_once_and_says_the_difference(charges in charges()) {
        let ledger = charged(charges);
        let exact: Decimal = ledger.lines().iter().map(|line| line.amount).sum();
        let shown: Decimal = ledger.lines().iter().map(Line::shown).sum();
        let total = ledger.total();
        prop_assert_eq!(total.total, money::shown(exact));
        prop_assert_eq!(total.total, shown + total.rounding);
        let bound = Decimal::new(5, 3) * Decimal::from(ledger.lines().len() + 1);
        prop_assert!(total.rounding.abs() <= bound, "{:?} of {} lines", total, ledger.lines().len());
    }

    #[test]
    fn nothing_is_charged_after_the_close_and_nothing_is_lost(before in charges(), late in charges()) {
        let ledger = charged(before.clone());
        let (closed, _) = give(&ledger, ledger::Command::Close { heading: heading() });
        let known: BTreeSet<Source> = before.iter().map(|charge| charge.source).collect();
        let mut after = closed.clone();
        for charge in late {
            let (next, events) = give(&after, to_charge(charge.clone()));
            let deferred = if known.contains(&charge.source) { vec![] } else { vec![ledger::Event::Deferred(charge)] };
            prop_assert_eq!(events, deferred);
            after = next;
        }
        prop_assert_eq!(after.lines(), closed.lines());
        prop_assert_eq!(after.total(), closed.total());
    }
}
