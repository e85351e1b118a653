//! Choices that are the same for the same seed.

/// A source of choices: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The choices of one run of a seed.
    pub(crate) fn new(seed: u64, run: u64) -> Dice {
        let mut dice = Dice(seed ^ run.wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is above zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
