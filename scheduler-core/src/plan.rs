//! One pass over the queue, in its order.
//!
//! Owns: `plan`, the only entry. Does not own: what is preferred (`score`), why a job waits (`why`).
//! Invariant: a placement is all of a job or none of it, and is taken from the room before the next job is looked at.

use crate::{Demand, Facts, Job, Readiness, Room, Score, Why, digest::digest, why};
use domain::kernel::{JobId, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What should be. Nothing has changed until it is appended to the log and leases are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// In the order in which they were decided.
    pub placements: Vec<Placement>,
    /// In the order of the queue.
    pub waiting: Vec<(JobId, Why)>,
    /// SHA-256 of the canonical facts, in hex.
    pub facts_digest: String,
    /// SHA-256 of placements and waiting, in hex: equal decisions have equal digests, whenever they were made.
    pub digest: String,
}

/// A job's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub job: JobId,
    pub node: NodeId,
    /// By their index on the node, ascending.
    pub cards: Vec<u32>,
    pub demand: Demand,
    /// Why this node: it was the lowest.
    pub score: Score,
    pub rule: Rule,
}

/// How a place was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The lowest [`Score`] among the ready nodes with enough free room.
    BestFit,
}

impl fmt::Display for Rule {
    /// As the log records it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BestFit => "best_fit",
        })
    }
}

/// Decides for every job of the queue; changes nothing. Time grows with jobs × nodes.
pub fn plan(facts: &Facts) -> Plan {
    let facts = facts.canonical();
    let mut rooms: Vec<Room> = facts.nodes.iter().map(|node| node.free.clone()).collect();
    let (mut placements, mut waiting) = (Vec::new(), Vec::new());
    for job in &facts.queue {
        match place(&facts, &mut rooms, job) {
            Some(placement) => placements.push(placement),
            None => waiting.push((job.id, why::explain(&facts.nodes, &rooms, placements.len(), &job.demand))),
        }
    }
    let (facts_digest, digest) = (digest(&facts), digest(&(&placements, &waiting)));
    Plan { placements, waiting, facts_digest, digest }
}

/// The best place there is now, taken out of its node's room.
fn place(facts: &Facts, rooms: &mut [Room], job: &Job) -> Option<Placement> {
    let ready = facts.nodes.iter().zip(rooms).filter(|(node, _)| node.ready == Readiness::Ready);
    let scored = ready.filter_map(|(node, room)| Some((Score::of(&job.demand, node, room)?, room)));
    let (score, room) = scored.min_by(|a, b| a.0.cmp(&b.0))?;
    let cards = room.take(&job.demand);
    Some(Placement { job: job.id, node: score.node, cards, demand: job.demand.clone(), score, rule: Rule::BestFit })
}
