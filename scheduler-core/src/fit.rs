//! Whether a demand fits into a room, and by how much it does not.
//!
//! Owns: the arithmetic of fitting. Invariant: an amount of zero or below asks for nothing, fits everywhere and never
//! gives room; a room below zero (a node that shrank under its leases) gives nothing more of what it is short of.

use crate::{Cards, Demand, Room};
use domain::kernel::Model;
use serde::{Deserialize, Serialize};

/// How much room there is, as far as one demand is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomSummary {
    /// Of the model that is asked for; 0 where none is.
    pub cards: u32,
    /// Thousandths of a CPU core.
    pub milli_cores: i64,
    pub memory_mib: i64,
}

/// How much is missing. The smallest gap is the closest: cards are compared first, being the hardest to come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Gap {
    pub(crate) cards: u32,
    pub(crate) milli_cores: i64,
    pub(crate) memory_mib: i64,
}

/// The cards that are asked for, if any are.
pub(crate) fn cards(demand: &Demand) -> Option<&Cards> {
    demand.cards.as_ref().filter(|cards| cards.count > 0)
}

/// How many cards of a model are there.
pub(crate) fn count(room: &Room, model: &Model) -> u32 {
    room.cards.iter().filter(|card| card.model == *model).fold(0, |count, _| count + 1)
}

impl RoomSummary {
    pub(crate) fn of(room: &Room, demand: &Demand) -> Self {
        let cards = cards(demand).map_or(0, |wanted| count(room, &wanted.model));
        Self { cards, milli_cores: room.milli_cores, memory_mib: room.memory_mib }
    }

    /// Both together; a room below zero counts as empty.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            cards: self.cards.saturating_add(other.cards),
            milli_cores: self.milli_cores.max(0).saturating_add(other.milli_cores.max(0)),
            memory_mib: self.memory_mib.max(0).saturating_add(other.memory_mib.max(0)),
        }
    }
}

impl Gap {
    pub(crate) fn of(demand: &Demand, room: RoomSummary) -> Self {
        let missing = |need: i64, have: i64| if need > 0 { need.saturating_sub(have).max(0) } else { 0 };
        Self {
            cards: cards(demand).map_or(0, |wanted| wanted.count.saturating_sub(room.cards)),
            milli_cores: missing(demand.milli_cores, room.milli_cores),
            memory_mib: missing(demand.memory_mib, room.memory_mib),
        }
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Whether all of it fits.
pub(crate) fn fits(demand: &Demand, room: &Room) -> bool {
    Gap::of(demand, RoomSummary::of(room, demand)).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(milli_cores: i64, memory_mib: i64) -> Demand {
        Demand { cards: None, milli_cores, memory_mib }
    }

    #[test]
    fn a_room_below_zero_gives_only_what_it_has() {
        let room = Room { milli_cores: -1, memory_mib: 10, cards: Vec::new() };
        assert!(!fits(&demand(1, 0), &room));
        assert!(fits(&demand(0, 10), &room));
    }

    #[test]
    fn an_amount_below_zero_gives_no_room() {
        let mut room = Room { milli_cores: 10, memory_mib: 10, cards: Vec::new() };
        assert!(fits(&demand(-5, i64::MIN), &room));
        room.take(&demand(-5, i64::MIN));
        assert_eq!((room.milli_cores, room.memory_mib), (10, 10));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let room = Room { milli_cores: i64::MIN, memory_mib: i64::MAX, cards: Vec::new() };
        assert!(!fits(&demand(i64::MAX, i64::MAX), &room));
        let summary = RoomSummary { cards: u32::MAX, milli_cores: i64::MAX, memory_mib: i64::MIN };
        assert_eq!(summary.plus(summary), RoomSummary { memory_mib: 0, ..summary });
    }
}
