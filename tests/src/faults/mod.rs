//! The order-to-bill story under faults: seeded, over a platform in this process with a clock that is moved by hand, and
//! over real processes; at the end nothing is lost, doubled or left over.
//!
//! Owns: the kinds of faults, in what order they come, and the account at the end. Does not own: the platform.

pub mod audit;
pub mod client;
pub mod dice;
pub mod disk;
pub mod kind;
pub mod node;
pub mod real;
pub mod story;
pub mod weather;

use dice::Dice;
use std::collections::BTreeMap;

/// How often each kind was tried.
pub type Tried = BTreeMap<&'static str, u32>;

/// How many faults and which seed: `FAULTS` and `SEED` of the environment, or so many and any seed.
pub fn asked_for(faults: u32) -> (u32, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("SEED").unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
        u64::try_from(now % 1_000_000_007).unwrap()
    });
    (number("FAULTS").map_or(faults, |faults| u32::try_from(faults).unwrap()), seed)
}

/// So many of these kinds by chance, each of them once before any comes again.
fn plan<T: Copy>(kinds: &[T], faults: u32, dice: &mut Dice) -> Vec<T> {
    let mut planned = vec![];
    let mut left: Vec<T> = vec![];
    for _ in 0..faults {
        if left.is_empty() {
            left = kinds.to_vec();
        }
        let at = usize::try_from(dice.throw()).unwrap_or(usize::MAX) % left.len();
        planned.push(left.swap_remove(at));
    }
    planned
}
