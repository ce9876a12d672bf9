//! What hardware a node has, as its agent reports it.
//!
//! Owns: the shape (which is also the agents' wire) and what makes an inventory acceptable. Does not own: how hardware
//! is probed. Invariants: stored in events, so fields are only added, with defaults.

use crate::kernel::Model;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const MILLI_CORES_MAX: i64 = 10_000_000;
const MEMORY_MIB_MAX: i64 = 1 << 30;
const CARDS_MAX: usize = 1024;
const CARD_MEMORY_MIB_MAX: i64 = 1 << 24;
const TEXT_LENGTH_MAX: usize = 200;
/// What the model of a simulated card, and of no other, begins with.
pub const SIMULATED_PREFIX: &str = "sim-";

/// What hardware is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Thousandths of a CPU core.
    pub milli_cores: i64,
    pub memory_mib: i64,
    #[serde(default)]
    pub cards: Vec<Card>,
    /// Such as `linux 6.1 x86_64`.
    #[serde(default)]
    pub platform: String,
    /// The agent's version.
    #[serde(default)]
    pub agent: String,
}

/// One accelerator card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its place on the node, from 0.
    pub index: u32,
    pub uuid: String,
    pub model: Model,
    pub memory_mib: i64,
    /// Made up for a trial: there is no such hardware. Said wherever the card is shown.
    #[serde(default)]
    pub simulated: bool,
}

/// What is wrong with an inventory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadInventory {
    #[error("`milli_cores` is {0}, but a node has 1 to {MILLI_CORES_MAX} thousandths of a core")]
    MilliCores(i64),
    #[error("`memory_mib` is {0}, but a node has 1 to {MEMORY_MIB_MAX} MiB of memory")]
    MemoryMib(i64),
    #[error("there are {0} cards, but a node has at most {CARDS_MAX}")]
    TooManyCards(usize),
    #[error("`memory_mib` of the card {index} is {memory_mib}, but a card has 0 to {CARD_MEMORY_MIB_MAX} MiB")]
    CardMemoryMib { index: u32, memory_mib: i64 },
    #[error(
        "the card {index} is of the model `{model}`: a simulated card's model begins with `{SIMULATED_PREFIX}`, a real one's does not"
    )]
    SimulatedModel { index: u32, model: Model },
    #[error("two cards have the index {0}")]
    SameIndex(u32),
    #[error("two cards have the UUID of the card {0}")]
    SameUuid(u32),
    #[error("`uuid` of the card {0} has not 1 to {TEXT_LENGTH_MAX} characters, or a control character")]
    BadUuid(u32),
    #[error("`{0}` has more than {TEXT_LENGTH_MAX} characters, or a control character")]
    BadText(&'static str),
}

impl Inventory {
    /// Says what is wrong with it, if anything.
    pub fn check(&self) -> Result<(), BadInventory> {
        if !(1..=MILLI_CORES_MAX).contains(&self.milli_cores) {
            return Err(BadInventory::MilliCores(self.milli_cores));
        }
        if !(1..=MEMORY_MIB_MAX).contains(&self.memory_mib) {
            return Err(BadInventory::MemoryMib(self.memory_mib));
        }
        for (name, text) in [("platform", &self.platform), ("agent", &self.agent)] {
            if !text.is_empty() && !is_line(text, TEXT_LENGTH_MAX) {
                return Err(BadInventory::BadText(name));
            }
        }
        if self.cards.len() > CARDS_MAX {
            return Err(BadInventory::TooManyCards(self.cards.len()));
        }
        let (mut indexes, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for &Card { index, ref uuid, ref model, memory_mib, simulated } in &self.cards {
            if simulated != model.as_str().starts_with(SIMULATED_PREFIX) {
                return Err(BadInventory::SimulatedModel { index, model: model.clone() });
            }
            if !(0..=CARD_MEMORY_MIB_MAX).contains(&memory_mib) {
                return Err(BadInventory::CardMemoryMib { index, memory_mib });
            }
            if !is_line(uuid, TEXT_LENGTH_MAX) {
                return Err(BadInventory::BadUuid(index));
            }
            if !indexes.insert(index) {
                return Err(BadInventory::SameIndex(index));
            }
            if !uuids.insert(uuid) {
                return Err(BadInventory::SameUuid(index));
            }
        }
        Ok(())
    }
}

/// Whether a text is one line that people can read: 1 to `length_max` characters, no control character, no space at
/// its beginning or end.
pub(super) fn is_line(text: &str, length_max: usize) -> bool {
    let length = text.chars().take(length_max + 1).count();
    (1..=length_max).contains(&length) && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
pub(super) fn example() -> Inventory {
    let card = |index| Card {
        index,
        uuid: format!("GPU-{index}"),
        model: "a100".parse().unwrap(),
        memory_mib: 81_920,
        simulated: false,
    };
    Inventory { milli_cores: 8_000, memory_mib: 32_768, cards: vec![card(0), card(1)], ..Inventory::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Inventory)) -> BadInventory {
        let mut inventory = example();
        change(&mut inventory);
        inventory.check().unwrap_err()
    }

    #[test]
    fn a_simulated_card_says_so_in_its_model() {
        let model = |text: &str| text.parse::<Model>().unwrap();
        let refused = |text: &str| BadInventory::SimulatedModel { index: 0, model: model(text) };
        assert_eq!(refusal(|stock| stock.cards[0].simulated = true), refused("a100"));
        assert_eq!(refusal(|stock| stock.cards[0].model = model("sim-a100")), refused("sim-a100"));
    }

    #[test]
    fn what_a_machine_has_is_accepted() {
        assert_eq!(example().check(), Ok(()));
        let cards = vec![];
        let platform = "linux 6.1 x86_64".into();
        assert_eq!(Inventory { cards, platform, ..example() }.check(), Ok(()));
    }

    #[test]
    fn cores_and_memory_are_within_bounds() {
        for milli_cores in [-1, 0, MILLI_CORES_MAX + 1] {
            assert_eq!(refusal(|inventory| inventory.milli_cores = milli_cores), BadInventory::MilliCores(milli_cores));
        }
        for memory_mib in [i64::MIN, 0, MEMORY_MIB_MAX + 1] {
            assert_eq!(refusal(|inventory| inventory.memory_mib = memory_mib), BadInventory::MemoryMib(memory_mib));
        }
        let wrong = BadInventory::CardMemoryMib { index: 1, memory_mib: -1 };
        assert_eq!(refusal(|inventory| inventory.cards[1].memory_mib = -1), wrong);
    }

    #[test]
    fn cards_are_told_apart_and_not_too_many() {
        assert_eq!(refusal(|inventory| inventory.cards[1].index = 0), BadInventory::SameIndex(0));
        assert_eq!(refusal(|inventory| inventory.cards[1].uuid = "GPU-0".into()), BadInventory::SameUuid(1));
        assert_eq!(refusal(|inventory| inventory.cards[0].uuid = String::new()), BadInventory::BadUuid(0));
        let many = refusal(|inventory| inventory.cards = vec![inventory.cards[0].clone(); CARDS_MAX + 1]);
        assert_eq!(many, BadInventory::TooManyCards(CARDS_MAX + 1));
    }

    #[test]
    fn texts_are_short_lines() {
        assert_eq!(refusal(|inventory| inventory.agent = "1\n2".into()), BadInventory::BadText("agent"));
        assert_eq!(refusal(|inventory| inventory.platform = "x".repeat(201)), BadInventory::BadText("platform"));
    }

    #[test]
    fn an_unknown_field_is_refused_and_an_absent_one_has_its_default() {
        assert!(serde_json::from_str::<Inventory>(r#"{"milli_cores":1,"memory_mib":1,"disk":1}"#).is_err());
        let least: Inventory = serde_json::from_str(r#"{"milli_cores":1,"memory_mib":1}"#).unwrap();
        assert_eq!(least.check(), Ok(()));
    }
}
