//! What holds for all facts, careless ones included: nodes, cards and jobs that are listed twice, rooms and demands
//! below zero, free cards of a node that is larger than its total.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use domain::kernel::{Id, JobId, Model, NodeId, TenantId};
use proptest::{collection::vec, option, prelude::*};
use scheduler_core::{Cards, Demand, Facts, FreeCard, Job, Lang, Node, Placement, Readiness, Room, Why, plan};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

fn model() -> impl Strategy<Value = Model> {
    prop_oneof![4 => Just("a100"), 2 => Just("l40s"), 1 => Just("h800")].prop_map(|text| text.parse().unwrap())
}

fn room() -> impl Strategy<Value = Room> {
    let cards = vec((0_u32..6, model()).prop_map(|(index, model)| FreeCard { index, model }), 0..8);
    (-2_i64..16, -2_i64..16, cards).prop_map(|(milli_cores, memory_mib, cards)| Room { milli_cores, memory_mib, cards })
}

/// Mostly a node whose free room is part of its total; sometimes one whose facts contradict each other.
fn node() -> impl Strategy<Value = Node> {
    let ready =
        prop_oneof![4 => Just(Readiness::Ready), 1 => Just(Readiness::Drained), 1 => Just(Readiness::Unreachable)];
    (0_u128..12, ready, room(), room(), prop::bool::weighted(0.8)).prop_map(|(id, ready, free, total, sound)| {
        let total = if sound { grown(&free, total) } else { total };
        Node { id: NodeId::from_uuid(Uuid::from_u128(id)), ready, free, total }
    })
}

fn grown(free: &Room, more: Room) -> Room {
    Room {
        milli_cores: free.milli_cores.max(more.milli_cores),
        memory_mib: free.memory_mib.max(more.memory_mib),
        cards: free.cards.iter().cloned().chain(more.cards).collect(),
    }
}

fn job() -> impl Strategy<Value = Job> {
    let cards = option::of((model(), 0_u32..5).prop_map(|(model, count)| Cards { model, count }));
    let demand = (cards, -1_i64..10, -1_i64..10).prop_map(|(cards, milli_cores, memory_mib)| Demand {
        cards,
        milli_cores,
        memory_mib,
    });
    (0_u128..30, 0_i64..10, -1_i16..2, demand).prop_map(|(id, submitted_position, priority, demand)| Job {
        id: JobId::from_uuid(Uuid::from_u128(id)),
        tenant: TenantId::PLATFORM,
        submitted_position,
        priority,
        demand,
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    (vec(node(), 0..8), vec(job(), 0..16)).prop_map(|(nodes, queue)| Facts { now_ms: 0, nodes, queue })
}

fn shuffled() -> impl Strategy<Value = (Facts, Facts)> {
    facts().prop_flat_map(|facts| {
        let (nodes, queue) = (Just(facts.nodes.clone()).prop_shuffle(), Just(facts.queue.clone()).prop_shuffle());
        (Just(facts), nodes, queue).prop_map(|(facts, mut nodes, queue)| {
            for node in &mut nodes {
                node.free.cards.reverse();
                node.total.cards.reverse();
            }
            let other = Facts { now_ms: facts.now_ms, nodes, queue };
            (facts, other)
        })
    })
}

/// How many cards, milli-cores and MiB a demand asks for; written anew here, so that it checks the planner's.
fn asked(demand: &Demand) -> [i64; 3] {
    let cards = demand.cards.as_ref().map_or(0, |cards| i64::from(cards.count));
    [cards, demand.milli_cores.max(0), demand.memory_mib.max(0)]
}

fn offered(room: &Room, demand: &Demand) -> [i64; 3] {
    let wanted =
        |card: &&FreeCard| demand.cards.as_ref().is_some_and(|cards| cards.count > 0 && cards.model == card.model);
    [room.cards.iter().filter(wanted).count() as i64, room.milli_cores, room.memory_mib]
}

fn fits(demand: &Demand, room: &Room) -> bool {
    asked(demand).iter().zip(offered(room, demand)).all(|(asked, offered)| *asked == 0 || *asked <= offered)
}

/// The facts once the placements are leases: their room is gone, their jobs wait no more.
fn applied(facts: &Facts, placements: &[Placement]) -> Facts {
    let mut facts = facts.canonical();
    for placement in placements {
        let node = facts.nodes.iter_mut().find(|node| node.id == placement.node).unwrap();
        let [_, milli_cores, memory_mib] = asked(&placement.demand);
        node.free.milli_cores -= milli_cores;
        node.free.memory_mib -= memory_mib;
        node.free.cards.retain(|card| !placement.cards.contains(&card.index));
        facts.queue.retain(|job| job.id != placement.job);
    }
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_job_is_placed_or_waits_exactly_once(facts in facts()) {
        let plan = plan(&facts);
        let placed = plan.placements.iter().map(|placement| placement.job);
        let mut answered: Vec<JobId> = placed.chain(plan.waiting.iter().map(|(job, _)| *job)).collect();
        answered.sort();
        let queued: BTreeSet<JobId> = facts.queue.iter().map(|job| job.id).collect();
        prop_assert_eq!(answered, queued.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn no_card_is_given_twice_and_all_of_a_demand_is_met(facts in facts()) {
        let canonical = facts.canonical();
        let mut given = BTreeSet::new();
        for placement in plan(&facts).placements {
            let node = canonical.nodes.iter().find(|node| node.id == placement.node).unwrap();
            let job = canonical.queue.iter().find(|job| job.id == placement.job).unwrap();
            prop_assert_eq!(node.ready, Readiness::Ready);
            prop_assert_eq!(&placement.demand, &job.demand);
            prop_assert_eq!(placement.cards.len() as i64, asked(&job.demand)[0]);
            prop_assert!(placement.cards.is_sorted());
            for index in placement.cards {
                let card = FreeCard { index, model: job.demand.cards.as_ref().unwrap().model.clone() };
                prop_assert!(node.free.cards.contains(&card), "{:?} is not free", card);
                prop_assert!(given.insert((node.id, index)), "{:?} is given twice", card);
            }
        }
    }

    #[test]
    fn no_room_falls_below_nothing(facts in facts()) {
        let (before, after) = (facts.canonical(), applied(&facts, &plan(&facts).placements));
        for (Node { free: before, .. }, Node { free: after, .. }) in before.nodes.iter().zip(&after.nodes) {
            prop_assert!(after.milli_cores >= before.milli_cores.min(0), "{:?} {:?}", before, after);
            prop_assert!(after.memory_mib >= before.memory_mib.min(0), "{:?} {:?}", before, after);
        }
    }

    #[test]
    fn an_applied_plan_is_a_fixed_point(facts in facts()) {
        let first = plan(&facts);
        let second = plan(&applied(&facts, &first.placements));
        prop_assert_eq!(second.placements, vec![]);
        let ids = |waiting: &[(JobId, Why)]| waiting.iter().map(|(job, _)| *job).collect::<Vec<_>>();
        prop_assert_eq!(ids(&first.waiting), ids(&second.waiting));
    }

    #[test]
    fn the_order_of_the_facts_does_not_matter((one, other) in shuffled()) {
        prop_assert_eq!(plan(&one), plan(&other));
    }

    #[test]
    fn the_same_facts_give_the_same_bytes(facts in facts()) {
        let (once, again) = (plan(&facts), plan(&serde_json::from_value(serde_json::to_value(&facts).unwrap()).unwrap()));
        let text = serde_json::to_string(&once).unwrap();
        prop_assert_eq!(&text, &serde_json::to_string(&again).unwrap());
        prop_assert_eq!(serde_json::from_str::<scheduler_core::Plan>(&text).unwrap(), once);
    }

    #[test]
    fn digests_tell_facts_and_decisions_apart(facts in facts(), now_ms in 1_i64..) {
        let (before, after) = (plan(&facts), plan(&Facts { now_ms, ..facts }));
        prop_assert_ne!(before.facts_digest, after.facts_digest);
        prop_assert_eq!(before.digest, after.digest);
    }

    #[test]
    fn a_job_changes_nothing_for_those_before_it(facts in facts(), length in 0_usize..16) {
        let (whole, mut shorter) = (plan(&facts), facts.canonical());
        shorter.queue.truncate(length);
        let part = plan(&shorter);
        prop_assert!(whole.placements.starts_with(&part.placements));
        prop_assert!(whole.waiting.starts_with(&part.waiting));
    }

    #[test]
    fn what_waits_had_no_place_and_says_why(facts in facts()) {
        let (plan, canonical) = (plan(&facts), facts.canonical());
        let left = applied(&facts, &plan.placements);
        let demands: BTreeMap<JobId, &Demand> = canonical.queue.iter().map(|job| (job.id, &job.demand)).collect();
        for (job, why) in &plan.waiting {
            let mut ready = left.nodes.iter().filter(|node| node.ready == Readiness::Ready);
            prop_assert!(!ready.any(|node| fits(demands[job], &node.free)), "{job} has a place");
            if let Err(lie) = check(why, demands[job], &canonical.nodes) {
                panic!("{lie}: {why:?} of {:?}", demands[job]);
            }
            for lang in [Lang::Zh, Lang::En] {
                prop_assert!(!why.render(lang).is_empty() && !why.advice(lang).is_empty());
            }
        }
    }
}

/// Whether a reason is true of the nodes as they were before the plan.
fn check(why: &Why, demand: &Demand, nodes: &[Node]) -> Result<(), &'static str> {
    let holds = |state: Readiness| nodes.iter().filter(|n| n.ready == state && fits(demand, &n.total)).count() as u32;
    let (ready, drained, unreachable) =
        (holds(Readiness::Ready), holds(Readiness::Drained), holds(Readiness::Unreachable));
    let fitted = nodes.iter().any(|node| node.ready == Readiness::Ready && fits(demand, &node.free));
    let known = |model: &Model| nodes.iter().flat_map(|node| &node.total.cards).any(|card| card.model == *model);
    let truth = match why {
        Why::NoSuchModel { model, known: models } => {
            !nodes.is_empty() && !known(model) && models.iter().all(known) && models.is_sorted()
        }
        Why::NeverFits { need, largest } => {
            let largest = [i64::from(largest.cards), largest.milli_cores, largest.memory_mib];
            let some = nodes.iter().any(|node| offered(&node.total, demand) == largest);
            need == demand && some && ready + drained + unreachable == 0
        }
        Why::NodesUnavailable { drained: d, unreachable: u } => ready == 0 && (*d, *u) == (drained, unreachable),
        Why::QueuePosition { ahead } => *ahead > 0 && fitted && ready > 0,
        Why::InsufficientFree { need, best_free, free_total, fragmented, .. } => {
            let enough = free_total >= need;
            ready > 0 && !fitted && best_free < need && best_free <= free_total && *fragmented == enough
        }
        Why::QuotaExceeded { .. } | Why::TenantSuspended { .. } => false,
    };
    truth.then_some(()).ok_or("not true")
}
