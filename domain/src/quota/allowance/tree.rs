//! The nodes of a quota: what each may hold, what counts against it, and who waits there.
//!
//! Owns: sums along a way of the tree. Does not own: what is decided with them (`Allowance`).
//! Invariant: what counts against a node is the sum of all orders whose way leads through it.

use crate::kernel::{JobId, TenantId};
use std::collections::{BTreeMap, VecDeque};

/// What is known of a node. Quantities in thousandths of a card or core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Its own ceiling, if it has one.
    pub ceiling_milli: Option<i64>,
    /// What active orders of it and of all below it hold: what counts against the ceiling.
    pub counted_milli: i64,
    /// What its own active orders hold: what its jobs may use at most.
    pub ordered_milli: i64,
    /// What its jobs hold.
    pub in_use_milli: i64,
    /// How many of its jobs wait.
    pub waiting: usize,
}

impl Figures {
    /// What its jobs may still take.
    pub fn free_milli(&self) -> i64 {
        self.ordered_milli - self.in_use_milli
    }
}

/// Every node that was ever named; the root is the one without a name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tree(BTreeMap<Option<TenantId>, Node>);

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Node {
    pub(super) ceiling_milli: Option<i64>,
    counted_milli: i64,
    ordered_milli: i64,
    pub(super) in_use_milli: i64,
    waiting: VecDeque<(JobId, i64)>,
}

/// The nodes of a way, from its end up to the root.
fn upwards(below: &[TenantId]) -> impl Iterator<Item = Option<TenantId>> {
    below.iter().rev().copied().map(Some).chain([None])
}

impl Tree {
    pub(super) fn figures(&self, node: Option<TenantId>) -> Figures {
        let Some(of) = self.0.get(&node) else { return Figures::default() };
        Figures {
            ceiling_milli: of.ceiling_milli,
            counted_milli: of.counted_milli,
            ordered_milli: of.ordered_milli,
            in_use_milli: of.in_use_milli,
            waiting: of.waiting.len(),
        }
    }

    pub(super) fn node(&mut self, node: Option<TenantId>) -> &mut Node {
        self.0.entry(node).or_default()
    }

    /// The ceilings of a way, from its end up to the root, which has 0 unless it is said.
    fn ceilings(&self, below: &[TenantId]) -> impl Iterator<Item = (i64, Option<TenantId>)> {
        upwards(below).filter_map(|node| {
            let known = self.figures(node).ceiling_milli;
            known.or_else(|| node.is_none().then_some(0)).map(|ceiling| (ceiling, node))
        })
    }

    /// The lowest ceiling of a way, and whose it is: the one next to its end among equals.
    pub(super) fn lowest(&self, below: &[TenantId]) -> Option<(i64, Option<TenantId>)> {
        self.ceilings(below).min_by_key(|(ceiling, _)| *ceiling)
    }

    /// How much an order at the end of a way may hold, and the node that allows no more.
    pub(super) fn room(&self, below: &[TenantId]) -> (i64, Option<TenantId>) {
        let rooms = self.ceilings(below).map(|(ceiling, node)| (ceiling - self.figures(node).counted_milli, node));
        rooms.min_by_key(|(room, _)| *room).unwrap_or_default()
    }

    /// An order at the end of a way holds so much more.
    pub(super) fn count(&mut self, below: &[TenantId], milli: i64) {
        for node in upwards(below) {
            self.node(node).counted_milli += milli;
        }
        self.node(below.last().copied()).ordered_milli += milli;
    }

    /// Who asks again keeps the place.
    pub(super) fn wait(&mut self, node: Option<TenantId>, job: JobId, milli: i64) {
        if self.waits(job).is_none() {
            self.node(node).waiting.push_back((job, milli));
        }
    }

    pub(super) fn wait_no_more(&mut self, job: JobId) {
        for node in self.0.values_mut() {
            node.waiting.retain(|(waiting, _)| *waiting != job);
        }
    }

    /// Where a job waits, and for how much.
    pub(super) fn waits(&self, job: JobId) -> Option<(Option<TenantId>, i64)> {
        self.0.iter().find_map(|(node, of)| {
            of.waiting.iter().find(|(waiting, _)| *waiting == job).map(|(_, milli)| (*node, *milli))
        })
    }

    pub(super) fn first_waiting(&self, node: Option<TenantId>) -> Option<(JobId, i64)> {
        self.0.get(&node).and_then(|of| of.waiting.front().copied())
    }
}
