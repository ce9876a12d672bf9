//! Made-up cards, to try the platform where there are none.
//!
//! Owns: their names. Invariants: each is marked as simulated, and its uuid says so too.

use agent_protocol::Card;
use domain::kernel::Model;

/// So many cards of a model on the machine of this name.
pub fn cards(name: &str, model: &Model, count: u32, memory_mib: i64) -> Vec<Card> {
    let card =
        |index| Card { index, uuid: format!("SIM-{name}-{index}"), model: model.clone(), memory_mib, simulated: true };
    (0..count).map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_marked_and_told_apart() {
        let cards = cards("box", &"h100".parse().unwrap(), 2, 80);
        assert!(cards.iter().all(|card| card.simulated));
        assert_eq!((cards[0].index, cards[1].index), (0, 1));
        assert_eq!(cards[1].uuid, "SIM-box-1");
    }
}
