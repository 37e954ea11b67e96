//! A small generator of numbers: the same seed, the same series, on every machine.

use crate::chance::scattered;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The series of `seed`. Neighbouring seeds give series that have nothing in common.
    #[must_use]
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.next();
        random
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scattered(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number of `least..=greatest`.
    pub(super) fn within(&mut self, least: i64, greatest: i64) -> i64 {
        least + (self.next() % (greatest - least + 1).unsigned_abs()) as i64
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `items`, of which there is at least one.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A length: mostly short, at times up to `longest`.
    pub(super) fn length(&mut self, longest: usize) -> usize {
        let bound = match self.below(8) {
            0 => longest + 1,
            1..=3 => longest.min(8) + 1,
            _ => longest.min(3) + 1,
        };
        self.below(bound)
    }
}
