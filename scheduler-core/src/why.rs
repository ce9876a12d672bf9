//! Why a job waits: a closed list of reasons with their numbers. Never free text.
//!
//! Owns: the reasons and how the planner finds the one that applies. Does not own: how they read (`words`).
//! Invariant: the first of these that is true is given: no node at all; no such card; no node could ever hold it; those
//! that could take no work; it would have fitted, had it been first; too little is free.

use crate::{
    Demand, Node, Readiness, Room,
    fit::{self, Gap, RoomSummary},
};
use domain::kernel::{Model, Resource, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Stored and shown: variants and fields are only added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
    /// No node has a card of that model, whether it takes work or not.
    NoSuchModel {
        model: Model,
        /// The models there are, sorted.
        known: Vec<Model>,
    },
    /// It would not fit even if all nodes were empty and took work.
    NeverFits {
        need: Demand,
        /// The empty room of the node that comes closest, its cards counted of the wanted model.
        largest: RoomSummary,
    },
    /// Nodes that could hold it take work, but not enough of them is free now.
    InsufficientFree {
        /// What is short on the node that comes closest; cards before cores before memory.
        short: Shortage,
        /// How much of it the job needs: cards, thousandths of a core, or MiB.
        need: i64,
        /// How much of it is free on the node that comes closest.
        best_free: i64,
        /// How much of it is free on all ready nodes that could hold the job when empty.
        free_total: i64,
        /// In total enough of it is free, only not where the job could use it.
        fragmented: bool,
    },
    /// Only nodes that take no new work could hold it. Both are 0 where there is no node at all.
    NodesUnavailable { drained: u32, unreachable: u32 },
    /// It would have fitted, had jobs before it not been placed in this plan. The next plan, in which they hold their
    /// room, says [`Why::InsufficientFree`].
    QueuePosition {
        /// How many jobs were placed before it.
        ahead: u32,
    },
    /// The tenant, or one above its own, is suspended. Said by who tells the planner what waits, never by the planner.
    TenantSuspended { tenant: TenantId },
    /// The tenant may hold no more. Said by the quota's flow, never by the planner.
    QuotaExceeded {
        resource: Resource,
        /// Thousandths of a card or core.
        wanted_milli: i64,
        free_milli: i64,
    },
}

/// What is short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Shortage {
    Cards { model: Model },
    Cores,
    Memory,
}

/// Why a demand has no place now. `rooms` is the present room of each node; `placed` jobs have been given room before.
pub(crate) fn explain(nodes: &[Node], rooms: &[Room], placed: usize, demand: &Demand) -> Why {
    let models: BTreeSet<&Model> = nodes.iter().flat_map(|node| &node.total.cards).map(|card| &card.model).collect();
    if let Some(wanted) = fit::cards(demand).filter(|wanted| !nodes.is_empty() && !models.contains(&wanted.model)) {
        return Why::NoSuchModel { model: wanted.model.clone(), known: models.into_iter().cloned().collect() };
    }
    let could = |node: &Node| fit::fits(demand, &node.total);
    if !nodes.is_empty() && !nodes.iter().any(could) {
        return Why::NeverFits { need: demand.clone(), largest: closest(nodes.iter().map(|node| &node.total), demand) };
    }
    let count = |state: Readiness| {
        nodes.iter().filter(|node| node.ready == state && could(node)).fold(0_u32, |count, _| count.saturating_add(1))
    };
    if count(Readiness::Ready) == 0 {
        return Why::NodesUnavailable {
            drained: count(Readiness::Drained),
            unreachable: count(Readiness::Unreachable),
        };
    }
    if nodes.iter().any(|node| node.ready == Readiness::Ready && fit::fits(demand, &node.free)) {
        return Why::QueuePosition { ahead: u32::try_from(placed).unwrap_or(u32::MAX) };
    }
    let usable = nodes.iter().zip(rooms).filter(|(node, _)| node.ready == Readiness::Ready && could(node));
    insufficient(&usable.map(|(_, room)| room).collect::<Vec<_>>(), demand)
}

/// Of these rooms the one that misses least; the first of equals.
fn closest<'a>(rooms: impl Iterator<Item = &'a Room>, demand: &Demand) -> RoomSummary {
    let summaries = rooms.map(|room| RoomSummary::of(room, demand));
    summaries.min_by_key(|summary| Gap::of(demand, *summary)).unwrap_or_default()
}

fn insufficient(rooms: &[&Room], demand: &Demand) -> Why {
    let best = closest(rooms.iter().copied(), demand);
    let total = rooms.iter().map(|room| RoomSummary::of(room, demand)).fold(RoomSummary::default(), RoomSummary::plus);
    let gap = Gap::of(demand, best);
    let (short, need, best_free, free_total) = match fit::cards(demand) {
        Some(wanted) if gap.cards > 0 => (
            Shortage::Cards { model: wanted.model.clone() },
            i64::from(wanted.count),
            i64::from(best.cards),
            i64::from(total.cards),
        ),
        _ if gap.milli_cores > 0 => (Shortage::Cores, demand.milli_cores, best.milli_cores, total.milli_cores),
        _ => (Shortage::Memory, demand.memory_mib, best.memory_mib, total.memory_mib),
    };
    let (need, best_free) = (need.max(0), best_free.max(0));
    Why::InsufficientFree { short, need, best_free, free_total, fragmented: free_total >= need }
}
