//! Chance from a seed: the same seed throws the same numbers.
//!
//! Owns: the numbers. Does not own: what they decide.

/// Dice of one seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` to `to`, both included.
    pub fn from_to(&mut self, from: i64, to: i64) -> i64 {
        let span = u64::try_from(to - from + 1).unwrap();
        from + i64::try_from(self.throw() % span).unwrap()
    }

    /// Whether the one case of so many has come.
    pub fn one_in(&mut self, cases: u64) -> bool {
        self.throw().is_multiple_of(cases)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = usize::try_from(self.throw()).unwrap_or(usize::MAX) % of.len();
        &of[at]
    }

    /// A key that no other throw gives.
    pub fn key(&mut self) -> String {
        format!("{:016x}{:016x}", self.throw(), self.throw())
    }
}
