//! Lets rows through that may have one of many keys, and few others, at the cost of a hash a row.

use arrow::array::ArrayRef;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};

use crate::error::{Error, Result};
use crate::prepare::keys::normal;

/// Bits for each hash: with 32 about one in 32 others goes through.
const BITS_A_HASH: usize = 32;
const LEAST_BITS: usize = 4096;
/// 32 MiB.
const MOST_BITS: usize = 1 << 28;
const HASHER: QualityRandomState = QualityRandomState::with_seed(0);

/// Hashes as bits: a Bloom filter of one hash, small enough to stay in the processor's caches.
#[derive(Debug)]
pub(super) struct HashBits {
    words: Vec<u64>,
    /// Bits of a hash that do not count.
    shift: u32,
}

impl HashBits {
    /// Without a hash, with room for `hashes`.
    pub(super) fn with_room(hashes: usize) -> Self {
        let bits = hashes.saturating_mul(BITS_A_HASH).clamp(LEAST_BITS, MOST_BITS).next_power_of_two();
        Self { words: vec![0; bits / 64], shift: 64 - bits.trailing_zeros() }
    }

    pub(super) fn insert(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether `hash` was inserted, or one that shares its bit.
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let place = hash >> self.shift;
        ((place / 64) as usize, 1 << (place % 64))
    }
}

/// The hashes of keys.
#[derive(Debug)]
pub(super) struct Sieve(HashBits);

impl Sieve {
    /// For `keys` keys, given each column's values in pieces that are cut alike.
    pub(super) fn of(columns: &[Vec<ArrayRef>], keys: usize) -> Result<Self> {
        let mut bits = HashBits::with_room(keys);
        let pieces = columns.first().map_or(0, Vec::len);
        for piece in 0..pieces {
            let columns: Vec<ArrayRef> = columns.iter().filter_map(|column| column.get(piece)).cloned().collect();
            let rows = columns.first().map_or(0, |column| column.len());
            hashes(&columns, rows)?.into_iter().for_each(|hash| bits.insert(hash));
        }
        Ok(Self(bits))
    }

    /// Which of `rows` rows with these key columns go through, ascending.
    pub(super) fn pass(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        let hashes = hashes(columns, rows)?;
        Ok((0..).zip(hashes).filter(|(_, hash)| self.0.may_hold(*hash)).map(|(row, _)| row).collect())
    }
}

fn hashes(columns: &[ArrayRef], rows: usize) -> Result<Vec<u64>> {
    let columns: Vec<ArrayRef> = columns.iter().map(normal).collect();
    let mut hashes = vec![0; rows];
    create_hashes(&columns, &HASHER, &mut hashes)
        .map_err(|e| Error::internal("keys could not be hashed").caused_by(e))?;
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn every_key_goes_through_and_few_others() {
        let ids = |ids: std::ops::Range<i64>| -> ArrayRef { Arc::new(Int64Array::from_iter_values(ids)) };
        let sieve = Sieve::of(&[vec![ids(0..500), ids(500..1000)]], 1000).unwrap();
        let passed = sieve.pass(&[ids(0..100_000)], 100_000).unwrap();
        assert_eq!(passed.iter().take_while(|row| **row < 1000).count(), 1000);
        assert!((1000..6_000).contains(&passed.len()), "{} of 100,000", passed.len());
    }

    #[test]
    fn equal_keys_hash_alike_however_they_are_spelt() {
        let key = |x: &[Option<f64>], s: &[Option<&str>]| -> Vec<ArrayRef> {
            vec![Arc::new(Float64Array::from(x.to_vec())), Arc::new(StringArray::from(s.to_vec()))]
        };
        let source = key(&[Some(0.0), Some(f64::NAN), None], &[Some("a"), None, Some("b")]);
        let sieve = Sieve::of(&source.into_iter().map(|column| vec![column]).collect::<Vec<_>>(), 3).unwrap();
        let rows = key(&[Some(-0.0), Some(-f64::NAN), None], &[Some("a"), None, Some("b")]);
        assert_eq!(sieve.pass(&rows, 3).unwrap(), [0, 1, 2]);
    }
}
