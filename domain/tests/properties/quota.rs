//! The quota of a random tree under random commands.

use super::given::{config, give, history, one_of};
use domain::kernel::{Aggregate, Id, JobId, OrderId, Resource, TenantId, spec::member};
use domain::quota::Allowance;
use domain::quota::allowance::{Command, Event};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::{BTreeMap, BTreeSet};

/// The way from below the root down to each node, the root's first: each node hangs below one that came earlier.
fn ways() -> impl Strategy<Value = Vec<Vec<TenantId>>> {
    vec(any::<Index>(), 0..7).prop_map(|parents| {
        let mut ways = vec![vec![]];
        for (number, parent) in parents.into_iter().enumerate() {
            let node = TenantId::derived(TenantId::PLATFORM, &number.to_string());
            ways.push([parent.get(&ways).clone(), vec![node]].concat());
        }
        ways
    })
}

pub(crate) fn commands() -> impl Strategy<Value = Vec<Command>> {
    let (root, by) = (TenantId::PLATFORM, member("wang"));
    ways().prop_flat_map(move |ways| {
        let way = || select(ways.clone());
        // Without a ceiling of the root nothing is held; mostly it comes first.
        let first = Command::SetCeiling { root, below: vec![], resource: Resource::Core, milli: 12_000, by };
        let commands = vec(
            prop_oneof![
                2 => (way(), -1_i64..12_000).prop_map(move |(below, milli)| {
                    Command::SetCeiling { root, below, resource: Resource::Core, milli, by }
                }),
                3 => (one_of(6), way(), -1_i64..6000).prop_map(|(order, below, milli)| {
                    Command::HoldOrder { order, below, milli }
                }),
                1 => one_of(6).prop_map(|order| Command::ReleaseOrder { order }),
                4 => (one_of(8), way(), -1_i64..4000).prop_map(|(job, below, milli)| {
                    Command::HoldJob { job, below, milli }
                }),
                3 => one_of(8).prop_map(|job| Command::ReleaseJob { job }),
            ],
            1..80,
        );
        (commands, 0..8).prop_map(move |(mut commands, at)| {
            let at = if at < 6 { 0 } else { commands.len() };
            commands.insert(at, first.clone());
            commands
        })
    })
}

type Node = Option<TenantId>;

/// What is held, by the events alone.
#[derive(Debug, Default)]
struct Held {
    ceilings: BTreeMap<Node, i64>,
    orders: BTreeMap<OrderId, (i64, Vec<TenantId>)>,
    jobs: BTreeMap<JobId, (i64, Node)>,
}

impl Held {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::CeilingSet { milli, node, .. } => {
                self.ceilings.insert(*node, *milli);
            }
            Event::OrderHeld { order, milli, below } => {
                self.orders.insert(*order, (*milli, below.clone()));
            }
            Event::OrderReleased { order, .. } => {
                self.orders.remove(order);
            }
            Event::JobHeld { job, milli, node } => {
                self.jobs.insert(*job, (*milli, *node));
            }
            Event::JobReleased { job, .. } | Event::JobHoldRefused { job, .. } => {
                self.jobs.remove(job);
            }
            Event::Opened { .. } | Event::JobQueued { .. } => {}
            Event::OrderHoldRefused { .. } | Event::OrderReleaseRefused { .. } => {}
        }
    }

    /// What is wrong with it, if anything.
    fn finding(&self) -> Option<String> {
        let at = |node: Node| move |below: &Vec<TenantId>| node.is_none_or(|node| below.contains(&node));
        let nodes = self.orders.values().flat_map(|(_, below)| below.iter().copied().map(Some)).chain([None]);
        for node in nodes.chain(self.ceilings.keys().copied()).collect::<BTreeSet<_>>() {
            let counted: i64 = self.orders.values().filter(|(_, below)| at(node)(below)).map(|(milli, _)| milli).sum();
            let ceiling = self.ceilings.get(&node).copied().or_else(|| node.is_none().then_some(0));
            if ceiling.is_some_and(|ceiling| counted > ceiling) {
                return Some(format!("{node:?} is oversold: {counted} of {ceiling:?}"));
            }
            let own = self.orders.values().filter(|(_, below)| below.last().copied() == node);
            let ordered: i64 = own.map(|(milli, _)| milli).sum();
            let in_use: i64 = self.jobs.values().filter(|(_, of)| *of == node).map(|(milli, _)| milli).sum();
            if in_use > ordered {
                return Some(format!("jobs of {node:?} hold {in_use} of {ordered}"));
            }
        }
        None
    }
}

/// Who waits and who holds at a node, by the events alone, in the order in which they came.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<(Node, JobId)>,
    holding: BTreeSet<JobId>,
}

impl Queue {
    /// Whether the event keeps to the order.
    fn allows(&mut self, event: &Event) -> bool {
        match event {
            Event::JobQueued { job, node, .. } if !self.waiting.iter().any(|(_, waiting)| waiting == job) => {
                self.waiting.push((*node, *job));
            }
            Event::JobHeld { job, node, .. } if self.holding.insert(*job) => {
                let first = self.waiting.iter().position(|(at, _)| at == node);
                return first.is_none_or(|first| self.waiting.remove(first).1 == *job);
            }
            Event::JobReleased { job, .. } | Event::JobHoldRefused { job, .. } => {
                self.waiting.retain(|(_, waiting)| waiting != job);
                self.holding.remove(job);
            }
            Event::JobQueued { .. } | Event::JobHeld { .. } | Event::Opened { .. } | Event::CeilingSet { .. } => {}
            Event::OrderHeld { .. } | Event::OrderHoldRefused { .. } => {}
            Event::OrderReleased { .. } | Event::OrderReleaseRefused { .. } => {}
        }
        true
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn no_node_is_oversold_and_jobs_are_within_the_orders_of_their_node_at_every_event(commands in commands()) {
        let (mut quota, mut held) = (Allowance::default(), Held::default());
        for command in commands {
            for event in quota.decide(command).unwrap_or_default() {
                quota = quota.evolve(&event);
                held.apply(&event);
                prop_assert_eq!(held.finding(), None, "after {:?}", event);
                prop_assert!(quota.in_use() <= quota.ordered() && quota.ordered() <= quota.ceiling(), "{:?}", quota);
            }
        }
    }

    #[test]
    fn an_order_is_refused_only_where_a_ceiling_on_its_way_is_short(commands in commands()) {
        let (mut quota, mut held) = (Allowance::default(), Held::default());
        for command in commands {
            let asked = if let Command::HoldOrder { below, .. } = &command { below.clone() } else { vec![] };
            for event in quota.decide(command).unwrap_or_default() {
                if let Event::OrderHoldRefused { order, wanted_milli, node, .. } = &event {
                    let on_the_way = node.is_none_or(|node| asked.contains(&node));
                    prop_assert!(on_the_way, "{:?} is not on the way {:?}", node, asked);
                    held.orders.insert(*order, (*wanted_milli, asked.clone()));
                    prop_assert!(*wanted_milli <= 0 || held.finding().is_some(), "there was room for {:?}", event);
                    held.orders.remove(order);
                }
                quota = quota.evolve(&event);
                held.apply(&event);
            }
        }
    }

    #[test]
    fn a_flow_is_always_answered_and_what_comes_twice_changes_nothing(commands in commands()) {
        let mut quota = Allowance::default();
        for command in commands {
            let of_flow = !matches!(command, Command::SetCeiling { .. });
            let (after, events) = give(&quota, command.clone());
            prop_assert!(!of_flow || !events.is_empty(), "{:?} was not answered", command);
            let (again, events) = give(&after, command.clone());
            prop_assert_eq!(&again, &after, "{:?} was repeated: {:?}", command, events);
            quota = after;
        }
    }

    #[test]
    fn jobs_that_wait_are_let_in_in_the_order_in_which_they_came(commands in commands()) {
        let mut queue = Queue::default();
        for event in history::<Allowance>(commands) {
            prop_assert!(queue.allows(&event), "{:?} comes before {:?}", event, queue);
        }
    }
}
