//! Jobs, orders and leases under random commands: each ends at most once, and no history is refused.

use super::given::{config, history, instant, one_of, text};
use domain::allocation::job::{self, Outcome, Refusal, Spec, Submission};
use domain::allocation::lease::{self, Grant};
use domain::allocation::{Cards, Demand, Job, Lease};
use domain::kernel::spec::{bill_to, member};
use domain::kernel::{Aggregate, Ancestors, Id, NodeId, TenantId, fold};
use domain::ordering::order::{self, Order};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use rust_decimal::Decimal;

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Succeeded),
        any::<i32>().prop_map(|code| Outcome::Failed { code }),
        any::<i32>().prop_map(|signal| Outcome::Killed { signal }),
        Just(Outcome::TimedOut),
        Just(Outcome::Cancelled),
        text().prop_map(|reason| Outcome::NotStarted { reason }),
        Just(Outcome::Vanished),
        Just(Outcome::Lost),
        refusal().prop_map(|reason| Outcome::Refused { reason }),
    ]
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        any::<(i64, i64)>().prop_map(|(wanted_milli, ordered_milli)| Refusal::Quota { wanted_milli, ordered_milli }),
        any::<(i64, i64)>().prop_map(|(wanted, available)| Refusal::Money {
            wanted: Decimal::new(wanted, 8),
            available: Decimal::new(available, 2),
        }),
        text().prop_map(|sku| Refusal::NoPrice { sku }),
    ]
}

pub(crate) fn demand() -> impl Strategy<Value = Demand> {
    let cards = option::of((1_u32..9).prop_map(|count| Cards { model: "a100".parse().unwrap(), count }));
    (cards, 1_i64..100_000, 1_i64..100_000).prop_map(|(cards, milli_cores, memory_mib)| Demand {
        cards,
        milli_cores,
        memory_mib,
    })
}

fn spec() -> impl Strategy<Value = Spec> {
    let env = btree_map("[A-Z]{1,8}", text(), 0..3);
    let limit = option::of(1_i64..100_000);
    (text(), vec(text(), 1..4), env, option::of(text()), demand(), limit, 0_u32..3).prop_map(
        |(name, command, env, folder, demand, time_limit_s, restarts)| Spec {
            name,
            command,
            env,
            folder,
            demand,
            time_limit_s,
            restarts,
        },
    )
}

pub(crate) fn job_commands() -> impl Strategy<Value = Vec<job::Command>> {
    use job::Command;
    let submit = spec().prop_map(|spec| {
        let (tenant, by) = (TenantId::PLATFORM, member("li"));
        Command::Submit(Submission { tenant, above: Ancestors::NONE, by, spec, bill_to: bill_to() })
    });
    let others = prop_oneof![
        1 => any::<(i64, i64)>().prop_map(|(wanted_milli, free_milli)| Command::Queue { wanted_milli, free_milli }),
        4 => Just(Command::Admit),
        1 => refusal().prop_map(|reason| Command::Refuse { reason }),
        4 => (one_of(3), one_of(2), vec(any::<u32>(), 0..3)).prop_map(|(lease, node, cards)| {
            Command::Place { lease, node, cards }
        }),
        4 => (one_of(3), instant()).prop_map(|(lease, at)| Command::Start { lease, at }),
        2 => (one_of(3), outcome(), instant()).prop_map(|(lease, outcome, at)| Command::End { lease, outcome, at }),
        1 => text().prop_map(|reason| Command::Cancel { by: member("li"), reason }),
    ];
    let first = vec(submit, 1..3);
    (first, vec(others, 0..20)).prop_map(|(submits, others)| submits.into_iter().chain(others).collect())
}

pub(crate) fn order_commands() -> impl Strategy<Value = Vec<order::Command>> {
    use order::Command;
    let request = (-1_i64..20).prop_map(|units| {
        let (resource, price) = ("card.a100".parse().unwrap(), Decimal::from(80));
        let (tenant, bill_to, milli) = (TenantId::PLATFORM, bill_to(), units * 1000);
        let above = if units % 2 == 0 { Ancestors::NONE } else { Ancestors::NONE.with(Id::derived(tenant, "root")) };
        let terms = order::Terms { tenant, above, bill_to, resource, milli, price, price_version: 1 };
        Command::Request { by: member("li"), terms }
    });
    let by = || prop_oneof![Just(member("li")), Just(member("wang"))];
    let others = prop_oneof![
        3 => by().prop_map(|by| Command::Approve { by }),
        1 => (by(), text()).prop_map(|(by, reason)| Command::Reject { by, reason }),
        3 => Just(Command::Activate),
        1 => (any::<(i64, i64)>(), option::of(one_of(2))).prop_map(|((wanted_milli, free_milli), node)| {
            Command::Refuse { wanted_milli, free_milli, node }
        }),
        2 => by().prop_map(|by| Command::Return { by }),
        1 => Just(Command::ConfirmReturn),
        2 => any::<i64>().prop_map(|in_use_milli| Command::RefuseReturn { in_use_milli }),
    ];
    (vec(request, 1..3), vec(others, 0..30)).prop_map(|(requests, others)| requests.into_iter().chain(others).collect())
}

pub(crate) fn lease_commands() -> impl Strategy<Value = Vec<lease::Command>> {
    use lease::Command;
    let (id, node) = (TenantId::PLATFORM, NodeId::derived(TenantId::PLATFORM, "0"));
    let grant = Command::Grant(Grant {
        tenant: id,
        job: Id::derived(id, "job"),
        node,
        cards: vec![0],
        milli_cores: 1000,
        memory_mib: 512,
        resource: "card.a100".parse().unwrap(),
        milli: 1000,
        bill_to: bill_to(),
        generation: 1,
    });
    let report = || (one_of::<NodeId>(2), 1_i64..3, instant());
    let others = prop_oneof![
        3 => report().prop_map(|(node, generation, at)| Command::ReportStart { node, generation, at }),
        3 => (report(), option::of(instant()), outcome()).prop_map(|((node, generation, at), started_at, outcome)| {
            Command::ReportEnd { node, generation, started_at, at, outcome }
        }),
        1 => Just(Command::Void),
        1 => instant().prop_map(|alive_until| Command::Lose { alive_until }),
        1 => Just(grant.clone()),
    ];
    vec(others, 0..12).prop_map(move |others| [grant.clone()].into_iter().chain(others).collect())
}

/// A history and the same events in an order that cannot have been.
fn shuffled<A: Aggregate>(
    commands: impl Strategy<Value = Vec<A::Command>>,
) -> impl Strategy<Value = (Vec<A::Event>, Vec<A::Event>)> {
    commands.prop_map(history::<A>).prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle()))
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn a_job_ends_at_most_once_and_no_history_is_refused((events, shuffled) in shuffled::<Job>(job_commands())) {
        let ends = events.iter().filter(|event| matches!(event, job::Event::Ended { .. })).count();
        let job: Job = fold(&events);
        prop_assert_eq!(ends, usize::from(matches!(job, Job::Ended(_))), "{:?}", events);
        let places = events.iter().filter(|event| matches!(event, job::Event::Placed { .. })).count();
        let again = events.iter().filter(|event| matches!(event, job::Event::Requeued { .. })).count();
        prop_assert!(places <= 1 + again, "a job has one place at a time: {:?}", events);
        let may = job.submission().map_or(0, |of| of.spec.restarts);
        prop_assert!(again <= usize::try_from(may).unwrap(), "{} of {} restarts: {:?}", again, may, events);
        let after = events.iter().skip_while(|event| !matches!(event, job::Event::Ended { .. })).skip(1);
        for event in after {
            let voided = matches!(event, job::Event::AdmissionVoided | job::Event::PlacementVoided { .. });
            prop_assert!(voided, "{:?} comes after the end", event);
        }
        fold::<Job>(&shuffled);
    }

    #[test]
    fn an_order_ends_at_most_once_and_nothing_follows((events, shuffled) in shuffled::<Order>(order_commands())) {
        let ends = |event: &order::Event| {
            matches!(event, order::Event::Rejected { .. } | order::Event::Refused { .. } | order::Event::Returned)
        };
        let count = events.iter().filter(|event| ends(event)).count();
        prop_assert_eq!(count, usize::from(matches!(fold::<Order>(&events), Order::Ended)), "{:?}", events);
        prop_assert!(count == 0 || events.last().is_some_and(ends), "{:?}", events);
        let asked = events.iter().position(|event| matches!(event, order::Event::Approved { by } if *by == member("li")));
        prop_assert_eq!(asked, None, "li approved li's own order");
        fold::<Order>(&shuffled);
    }

    #[test]
    fn a_lease_ends_at_most_once_and_not_before_it_began((events, shuffled) in shuffled::<Lease>(lease_commands())) {
        let mut began = None;
        let mut ends = 0;
        for event in &events {
            prop_assert_eq!(ends, 0, "{:?} comes after the end", event);
            match event {
                lease::Event::Granted(_) => {}
                lease::Event::Started { at } => {
                    prop_assert_eq!(began, None);
                    began = Some(*at);
                }
                lease::Event::Ended { started_at, at, .. } => {
                    ends += 1;
                    prop_assert_eq!(*started_at, began);
                    prop_assert!(began.is_none_or(|began| began <= *at));
                }
                lease::Event::Voided => {
                    ends += 1;
                    prop_assert_eq!(began, None);
                }
            }
        }
        prop_assert_eq!(ends == 1, matches!(fold::<Lease>(&events), Lease::Over(_) | Lease::Lost(_)));
        fold::<Lease>(&shuffled);
    }
}
