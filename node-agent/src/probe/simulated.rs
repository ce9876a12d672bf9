//! Made-up cards, to try the platform where there are none.
//!
//! Owns: their names. Invariants: each is marked as simulated, and its model and uuid say so too, so that an order, a job
//! and a bill say it as well.

use agent_protocol::{Card, SIMULATED_PREFIX};
use domain::kernel::{BadResource, Model};

/// The model of a simulated card: `a100` is offered as `sim-a100`. An error where that is too long a name.
pub fn model(asked: &Model) -> Result<Model, BadResource> {
    let text = asked.as_str();
    if text.starts_with(SIMULATED_PREFIX) { Ok(asked.clone()) } else { format!("{SIMULATED_PREFIX}{text}").parse() }
}

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
        let named = |text: &str| model(&text.parse().unwrap()).unwrap();
        assert_eq!(named("h100").as_str(), "sim-h100");
        assert_eq!(named("sim-h100"), named("h100"));
        assert!(model(&"x".repeat(38).parse().unwrap()).is_err());
        let cards = cards("box", &named("h100"), 2, 80);
        assert!(cards.iter().all(|card| card.simulated));
        assert_eq!((cards[0].index, cards[1].index), (0, 1));
        assert_eq!(cards[1].uuid, "SIM-box-1");
    }
}
