//! How good a node is for a job.
//!
//! Owns: what is preferred, as the order of the fields. A new preference is one field in its place.

use crate::{Demand, Node, Room, fit};
use domain::kernel::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lower is better; the fields are compared from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Score {
    /// Free cards of the model asked for that would be left: fill a node up before starting on another.
    pub cards_left: u32,
    /// Cards of the node that the job does not ask for, free or not: a card in use today will want its cores again
    /// tomorrow, so a job without cards goes to a node without cards first.
    pub other_cards: u32,
    /// Thousandths of a core that would be left.
    pub milli_cores_left: i64,
    /// MiB that would be left.
    pub memory_mib_left: i64,
    /// Ties break by id, so that a plan is reproducible.
    pub node: NodeId,
}

impl fmt::Display for Score {
    /// As the log records it, without the node, which is recorded beside it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cards_left, other_cards, milli_cores_left, memory_mib_left, node: _ } = self;
        write!(f, "cards_left {cards_left}, other_cards {other_cards}, ")?;
        write!(f, "milli_cores_left {milli_cores_left}, memory_mib_left {memory_mib_left}")
    }
}

impl Score {
    /// `None` where the job does not fit into the node's present room.
    pub(crate) fn of(demand: &Demand, node: &Node, room: &Room) -> Option<Self> {
        if !fit::fits(demand, room) {
            return None;
        }
        let wanted = fit::cards(demand);
        let others = node.total.cards.iter().filter(|card| wanted.is_none_or(|wanted| wanted.model != card.model));
        Some(Self {
            cards_left: wanted.map_or(0, |wanted| fit::count(room, &wanted.model).saturating_sub(wanted.count)),
            other_cards: others.fold(0, |count, _| count + 1),
            milli_cores_left: room.milli_cores - demand.milli_cores.max(0),
            memory_mib_left: room.memory_mib - demand.memory_mib.max(0),
            node: node.id,
        })
    }
}
