//! What is known when a plan is made: nodes with their room, and the queue.
//!
//! Owns: the shapes, and the one order in which facts are written. Does not own: where they come from.
//! Invariants of [`Facts::canonical`]: nodes by id, cards by index, jobs in the order in which they are considered;
//! nothing twice.

use crate::{Demand, fit};
use domain::kernel::{JobId, Model, NodeId, TenantId};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeSet};

/// All that a plan depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// When they were gathered, in milliseconds since 1970 UTC. Part of their digest; it decides nothing yet.
    pub now_ms: i64,
    pub nodes: Vec<Node>,
    /// Jobs that wait for a place. Those that hold one are missing from their node's free room instead.
    pub queue: Vec<Job>,
}

/// A machine, or a cluster behind one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    pub ready: Readiness,
    /// What nobody holds.
    pub free: Room,
    /// What it has when it is empty.
    pub total: Room,
}

/// Whether a node takes new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    Ready,
    /// An operator keeps new work away from it.
    Drained,
    /// It does not report. What runs there goes on; nothing new is sent.
    Unreachable,
}

/// Room for work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Room {
    /// Thousandths of a CPU core.
    pub milli_cores: i64,
    pub memory_mib: i64,
    pub cards: Vec<FreeCard>,
}

/// A whole card.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FreeCard {
    /// Its place on the node, from 0.
    pub index: u32,
    pub model: Model,
}

/// A job that waits for a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// Whose it is. It decides nothing yet: fair shares are absent.
    pub tenant: TenantId,
    /// The log position of its submission: lower came first. It is never stamped anew.
    pub submitted_position: i64,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i16,
    pub demand: Demand,
}

impl Facts {
    /// The same facts, written in the one order that digests and plans use. A node or card that is listed twice, or a
    /// job that is queued twice, is a mistake of whoever gathered the facts: the first in that order counts.
    pub fn canonical(&self) -> Self {
        let mut facts = self.clone();
        for node in &mut facts.nodes {
            node.free.sort();
            node.total.sort();
        }
        facts.nodes.sort();
        facts.nodes.dedup_by_key(|node| node.id);
        facts.queue.sort_by(|a, b| a.turn().cmp(&b.turn()));
        let mut seen = BTreeSet::new();
        facts.queue.retain(|job| seen.insert(job.id));
        facts
    }
}

impl Room {
    fn sort(&mut self) {
        self.cards.sort();
        self.cards.dedup_by_key(|card| card.index);
    }

    /// Takes what is asked for out of the room and returns the cards, lowest index first. Only for what fits.
    pub(crate) fn take(&mut self, demand: &Demand) -> Vec<u32> {
        self.milli_cores -= demand.milli_cores.max(0);
        self.memory_mib -= demand.memory_mib.max(0);
        let Some(wanted) = fit::cards(demand) else { return Vec::new() };
        let mut taken = Vec::new();
        self.cards.retain(|card| {
            let takes = card.model == wanted.model && taken.len() < wanted.count as usize;
            if takes {
                taken.push(card.index);
            }
            !takes
        });
        taken
    }
}

impl Job {
    /// What jobs are sorted by: all of the job, so that the order does not depend on how they were listed.
    fn turn(&self) -> impl Ord + '_ {
        let Demand { cards, milli_cores, memory_mib } = &self.demand;
        let cards = cards.as_ref().map(|cards| (&cards.model, cards.count));
        (Reverse(self.priority), self.submitted_position, self.id, self.tenant, cards, milli_cores, memory_mib)
    }
}
