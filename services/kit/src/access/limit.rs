//! How much evidence one actor makes in a minute.
//!
//! Invariants: what is left out is counted, and told in a later event; the memory is bounded, whoever asks.

use std::collections::HashMap;

/// The most events of one actor in one minute.
pub(super) const PER_MINUTE_MAX: u32 = 60;
/// How many actors are told apart; the others share one measure.
const ACTORS_MAX: usize = 10_000;
const OTHERS: &str = "others";

#[derive(Debug, Default)]
pub(super) struct Limit {
    actors: HashMap<String, Measure>,
    /// What was left out of actors that are no longer told apart.
    untold: u64,
}

#[derive(Debug, Default)]
struct Measure {
    minute: i64,
    written: u32,
    dropped: u64,
}

impl Limit {
    /// Takes a place in this minute. Says how many events were left out since the last one, or `None` to leave this one
    /// out too.
    pub(super) fn take(&mut self, actor: &str, minute: i64) -> Option<u64> {
        let actor = if self.knows(actor, minute) { actor } else { OTHERS };
        let measure = self.actors.entry(actor.to_owned()).or_default();
        if measure.minute != minute {
            (measure.minute, measure.written) = (minute, 0);
        }
        if measure.written >= PER_MINUTE_MAX {
            measure.dropped += 1;
            return None;
        }
        measure.written += 1;
        Some(std::mem::take(&mut measure.dropped) + std::mem::take(&mut self.untold))
    }

    /// An event could not be written: it and what it would have told is told later.
    pub(super) fn give_back(&mut self, dropped: u64) {
        self.untold += dropped + 1;
    }

    /// Whether there is a measure for this actor alone; makes room for one if that can be.
    fn knows(&mut self, actor: &str, minute: i64) -> bool {
        if self.actors.len() >= ACTORS_MAX && !self.actors.contains_key(actor) {
            let over = self.actors.extract_if(|_, measure| measure.minute != minute);
            self.untold += over.map(|(_, measure)| measure.dropped).sum::<u64>();
        }
        self.actors.len() < ACTORS_MAX || self.actors.contains_key(actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_later() {
        let mut limit = Limit::default();
        for _ in 0..PER_MINUTE_MAX {
            assert_eq!(limit.take("li", 1), Some(0));
        }
        assert_eq!((limit.take("li", 1), limit.take("li", 1)), (None, None));
        assert_eq!(limit.take("wang", 1), Some(0));
        assert_eq!(limit.take("li", 2), Some(2));
        assert_eq!(limit.take("li", 2), Some(0));
        limit.give_back(3);
        assert_eq!(limit.take("wang", 2), Some(4));
    }

    #[test]
    fn many_actors_share_one_measure() {
        let mut limit = Limit::default();
        for n in 0..2 * ACTORS_MAX {
            limit.take(&n.to_string(), 1);
        }
        assert!(limit.actors.len() <= ACTORS_MAX + 1);
        assert_eq!(limit.take("late", 1), None);
        let left_out = (ACTORS_MAX as u64) + 1 - u64::from(PER_MINUTE_MAX);
        assert_eq!(limit.take("late", 2), Some(left_out));
    }
}
