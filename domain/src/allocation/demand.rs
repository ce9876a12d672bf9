//! What a job needs on one node.
//!
//! Owns: the demand and its bounds. Invariants: it is counted in whole cards, thousandths of a core and MiB; a job that
//! has cards is charged for the cards, with its cores and memory included; a job without is charged for its cores.

use crate::kernel::{MILLI, Model, Resource};
use serde::{Deserialize, Serialize};

const CARDS_MAX: u32 = 1024;
const MILLI_CORES_MAX: i64 = 10_000_000;
const MEMORY_MIB_MAX: i64 = 100_000_000;

/// What a job needs on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    #[serde(default)]
    pub cards: Option<Cards>,
    /// Thousandths of a core.
    pub milli_cores: i64,
    pub memory_mib: i64,
}

/// So many whole cards of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cards {
    pub model: Model,
    pub count: u32,
}

impl Demand {
    /// Whether a machine could be meant.
    pub fn is_sane(&self) -> bool {
        let cards = self.cards.as_ref().is_none_or(|cards| (1..=CARDS_MAX).contains(&cards.count));
        cards && (1..=MILLI_CORES_MAX).contains(&self.milli_cores) && (1..=MEMORY_MIB_MAX).contains(&self.memory_mib)
    }

    /// What is charged and held under the quota.
    pub fn resource(&self) -> Resource {
        self.cards.as_ref().map_or(Resource::Core, |cards| Resource::Card(cards.model.clone()))
    }

    /// How much of that, in thousandths.
    pub fn milli(&self) -> i64 {
        self.cards.as_ref().map_or(self.milli_cores, |cards| i64::from(cards.count) * MILLI)
    }
}
