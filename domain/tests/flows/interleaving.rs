//! The same stories in any order: people, machines and flows take turns by chance, and flows lose their checkpoint.

use super::world::{World, decimal, tenant};
use domain::Event;
use domain::allocation::Job;
use domain::billing::Ledger;
use domain::billing::ledger::{self, Heading};
use domain::billing::statement::ledger_key;
use domain::kernel::JobId;
use domain::kernel::spec::{bill_to, member};
use domain::metering::{Meter, meter};
use domain::ordering::{Order, order};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_decimal::Decimal;
use std::collections::BTreeSet;

/// What happens next.
#[derive(Debug, Clone)]
enum Turn {
    Order {
        cards: i64,
    },
    Return {
        order: prop::sample::Index,
    },
    Submit {
        cards: u32,
    },
    Cancel {
        job: prop::sample::Index,
    },
    /// The scheduler places a job that it believes to be waiting.
    Place {
        job: prop::sample::Index,
    },
    /// Scheduler or node do what is next for them, some time later.
    Act {
        seconds: i64,
    },
    /// The flows handle so many events.
    Flow {
        events: usize,
    },
    Forget,
    /// Some time later the clock reads every meter.
    Read {
        seconds: i64,
    },
    /// The clock closes a month, here at any time.
    Close {
        month: &'static str,
    },
    Pass {
        seconds: i64,
    },
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        2 => (1_i64..5).prop_map(|cards| Turn::Order { cards }),
        1 => any::<prop::sample::Index>().prop_map(|order| Turn::Return { order }),
        3 => (1_u32..5).prop_map(|cards| Turn::Submit { cards }),
        2 => any::<prop::sample::Index>().prop_map(|job| Turn::Cancel { job }),
        1 => any::<prop::sample::Index>().prop_map(|job| Turn::Place { job }),
        6 => (0_i64..5000).prop_map(|seconds| Turn::Act { seconds }),
        8 => (1_usize..8).prop_map(|events| Turn::Flow { events }),
        1 => Just(Turn::Forget),
        2 => (0_i64..5000).prop_map(|seconds| Turn::Read { seconds }),
        1 => prop::sample::select(vec!["2026-11", "2026-12"]).prop_map(|month| Turn::Close { month }),
        1 => (0_i64..1_000_000).prop_map(|seconds| Turn::Pass { seconds }),
    ]
}

fn take(world: &World, at: usize, turn: &Turn) {
    match turn {
        Turn::Order { cards } => drop(world.order(&format!("order {at}"), *cards)),
        Turn::Submit { cards } => drop(world.submit(&format!("job {at}"), *cards)),
        Turn::Return { order } => {
            let orders = orders(world);
            if !orders.is_empty() {
                // One that is not active is refused to who asks, which changes nothing.
                drop(world.ask::<Order>(order.get(&orders), tenant(), order::Command::Return { by: member("li") }));
            }
        }
        Turn::Cancel { job } => drop(one_of(world, job).map(|job| world.cancel(job))),
        Turn::Place { job } => drop(one_of(world, job).map(|job| world.place(job))),
        Turn::Act { seconds } => {
            world.pass(*seconds);
            world.act();
        }
        Turn::Flow { events } => {
            for _ in 0..*events {
                world.step();
            }
        }
        Turn::Forget => world.forget(),
        Turn::Read { seconds } => {
            world.pass(*seconds);
            for (lease, _) in world.leases() {
                // A lease that has not begun has no meter.
                drop(world.ask::<Meter>(lease, tenant(), meter::Command::Cut { at: world.now.get() }));
            }
        }
        Turn::Close { month } => close(world, month),
        Turn::Pass { seconds } => world.pass(*seconds),
    }
}

fn close(world: &World, month: &str) {
    let (to, month) = (bill_to(), month.parse().unwrap());
    let heading = Heading { customer: to.customer, tenant: tenant(), month, zone: to.zone, currency: to.currency };
    let close = ledger::Command::Close { heading };
    world.ask::<Ledger>(ledger_key(to.customer, month), tenant(), close).unwrap();
}

/// What the ledgers of all months charge.
fn charged(world: &World) -> Decimal {
    let ledgers: BTreeSet<String> = world
        .events()
        .iter()
        .filter(|(_, event)| matches!(event, Event::Ledger(_)))
        .map(|(stream, _)| stream.key().to_owned())
        .collect();
    ledgers.iter().flat_map(|key| world.state::<Ledger>(key).lines()).map(|line| line.amount).sum()
}

fn orders(world: &World) -> Vec<String> {
    let events = world.events();
    let requested = events.iter().filter(|(_, event)| matches!(event, Event::Order(order::Event::Requested { .. })));
    requested.map(|(stream, _)| stream.key().to_owned()).collect()
}

fn one_of(world: &World, index: &prop::sample::Index) -> Option<JobId> {
    let jobs = world.jobs();
    (!jobs.is_empty()).then(|| *index.get(&jobs))
}

/// Writes a failing case's seed beside this file.
fn config(cases: u32) -> ProptestConfig {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn whatever_happens_everything_ends_and_nothing_stays_held(turns in vec(turn(), 1..60)) {
        let world = World::with(10, "2000");
        for (at, turn) in turns.iter().enumerate() {
            take(&world, at, turn);
            let quota = world.quota();
            prop_assert!(quota.in_use() <= quota.ordered() && quota.ordered() <= quota.ceiling());
        }
        loop {
            world.settle();
            world.pass(59);
            if !world.act() {
                break;
            }
        }
        for job in world.jobs() {
            prop_assert!(matches!(world.job(job), Job::Ended(_)), "{:?} waits for ever", world.job(job));
        }
        for order in orders(&world) {
            let state: Order = world.state(order);
            prop_assert!(matches!(state, Order::Active { .. } | Order::Ended), "{:?} waits for ever", state);
        }
        prop_assert_eq!(world.wallet().available() + charged(&world), decimal("2000"));
        world.is_free();
        world.is_sound();
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn of_a_hundred_orders_a_quota_of_ten_admits_ten_in_any_interleaving(steps in vec(0_usize..12, 100)) {
        let world = World::with(10, "1");
        for (at, steps) in steps.into_iter().enumerate() {
            world.order(&format!("order {at}"), 1);
            for _ in 0..steps {
                world.step();
            }
        }
        world.settle();
        let refused = order::Event::Refused { wanted_milli: 1000, free_milli: 0, node: Some(tenant()) };
        let count = |wanted: &order::Event| {
            world.events().iter().filter(|(_, event)| matches!(event, Event::Order(event) if event == wanted)).count()
        };
        prop_assert_eq!((count(&order::Event::Activated), count(&refused)), (10, 90));
        prop_assert_eq!(world.quota().ordered(), 10_000);
        world.is_sound();
    }
}
