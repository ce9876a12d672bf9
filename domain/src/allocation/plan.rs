//! The record of a cluster's placements: what the scheduler decided, with what it knew.
//!
//! Invariants: decisions are appended at the revision that their facts were folded at, so that a second scheduler acting
//! on old facts is refused by the log; so is the loss of a node with its leases, so that no placement on it comes after
//! by old facts; every decision names the digest of its facts, its rule and its score. Releases
//! only add capacity and stay on their leases.

use crate::allocation::Demand;
use crate::kernel::{Aggregate, JobId, Kind, LeaseId, NodeId, PoolId, Rejection, TenantId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan;

/// Where a job goes, and why there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    pub pool: PoolId,
    pub tenant: TenantId,
    pub job: JobId,
    pub node: NodeId,
    /// The cards by their index on the node.
    pub cards: Vec<u32>,
    pub demand: Demand,
    /// Which rule chose the node.
    pub rule: String,
    /// Its score there, as text; lower is better.
    pub score: String,
    /// SHA-256 of the facts that the plan was made from.
    pub facts: String,
}

/// A node is lost, and with it all that was placed there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    pub node: NodeId,
    /// Nothing there counts after that.
    pub alive_until: DateTime<Utc>,
    pub leases: Vec<LeaseId>,
}

#[derive(Debug, Clone)]
pub enum Command {
    Record(Vec<Placement>),
    RecordLoss(Loss),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Placed(Placement),
    NodeLost(Loss),
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("a plan names a card twice")]
    CardTwice,
}

impl Aggregate for Plan {
    const STREAM: &'static str = "plan";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        let placements = match command {
            Command::Record(placements) => placements,
            Command::RecordLoss(loss) => return Ok(vec![Event::NodeLost(loss)]),
        };
        let mut cards: Vec<_> =
            placements.iter().flat_map(|placed| placed.cards.iter().map(|card| (placed.node, *card))).collect();
        let given = cards.len();
        cards.sort_unstable();
        cards.dedup();
        if cards.len() < given {
            return Err(Error::CardTwice);
        }
        Ok(placements.into_iter().map(Event::Placed).collect())
    }

    fn evolve(self, _: &Event) -> Self {
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        "plan.card_twice"
    }

    fn kind(&self) -> Kind {
        Kind::Invalid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Id;
    use crate::kernel::spec::given;

    fn placement(job: &str, cards: Vec<u32>) -> Placement {
        let id = TenantId::PLATFORM;
        Placement {
            pool: Id::derived(id, "pool"),
            tenant: id,
            job: Id::derived(id, job),
            node: Id::derived(id, "node"),
            cards,
            demand: Demand { cards: None, milli_cores: 1, memory_mib: 1 },
            rule: "best_fit".into(),
            score: "0".into(),
            facts: "00".into(),
        }
    }

    #[test]
    fn gives_a_card_once() {
        let (a, b) = (placement("a", vec![0, 1]), placement("b", vec![2]));
        given::<Plan>([])
            .when(Command::Record(vec![a.clone(), b.clone()]))
            .then([Event::Placed(a.clone()), Event::Placed(b)]);
        given::<Plan>([]).when(Command::Record(vec![a, placement("b", vec![1])])).then_refused(Error::CardTwice);
    }
}
