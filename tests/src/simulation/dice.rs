//! Chance, without a generator that has to be asked in order: each question has a name, and the seed and the name decide.
//!
//! So one event can be taken out of a run and all others still happen, which is how a failing run is made short.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::chance::scattered;

/// Answers questions of chance by their names.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    seed: u64,
    /// The only events that may happen; none: all.
    only: Option<Arc<BTreeSet<String>>>,
    happened: Arc<Mutex<BTreeSet<String>>>,
}

impl Dice {
    /// Dice that the seed decides.
    #[must_use]
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, only: None, happened: Arc::default() }
    }

    /// The same dice, where no event but these happens.
    #[must_use]
    pub(super) fn only(seed: u64, events: BTreeSet<String>) -> Self {
        Self { only: Some(Arc::new(events)), ..Self::new(seed) }
    }

    /// Whether the event `name` happens, which it does in so many of a thousand seeds.
    ///
    /// # Panics
    /// Where another thread panicked while it asked.
    #[must_use]
    pub(super) fn happens(&self, name: &str, per_mille: u64) -> bool {
        let happens = match &self.only {
            Some(only) => only.contains(name),
            None => self.below(name, 1_000) < per_mille,
        };
        if happens {
            self.happened.lock().expect("nobody panicked").insert(name.to_owned());
        }
        happens
    }

    /// A number below `bound` for `name`.
    #[must_use]
    pub(super) fn below(&self, name: &str, bound: u64) -> u64 {
        self.drawn(name) % bound.max(1)
    }

    /// One of `from`, for `name`.
    #[must_use]
    pub(super) fn pick<'a, T>(&self, name: &str, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(name, from.len() as u64)).expect("an index is small")]
    }

    /// Any number, for `name`.
    #[must_use]
    pub(super) fn drawn(&self, name: &str) -> u64 {
        // FNV-1a over seed and name, then a finaliser, since FNV's high bits follow the last byte too closely.
        let bytes = self.seed.to_le_bytes().into_iter().chain(name.bytes());
        scattered(
            bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        )
    }

    /// The events that happened so far.
    ///
    /// # Panics
    /// Where another thread panicked while it asked.
    #[must_use]
    pub(super) fn happened(&self) -> BTreeSet<String> {
        self.happened.lock().expect("nobody panicked").clone()
    }
}
