//! Lets rows through that may have one of many keys, and few others, at the cost of a hash a row.

use arrow::array::ArrayRef;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};

use crate::error::{Error, Result};
use crate::prepare::keys::normal;

/// Bits for each key: with 32 about one in 32 other rows goes through.
const BITS_A_KEY: usize = 32;
const LEAST_BITS: usize = 4096;
const HASHER: QualityRandomState = QualityRandomState::with_seed(0);

/// The hashes of keys as bits: a Bloom filter of one hash, small enough to stay in the processor's caches.
#[derive(Debug)]
pub(super) struct Sieve {
    bits: Vec<u64>,
    /// Bits of a hash that do not count.
    shift: u32,
}

impl Sieve {
    /// For `keys` keys, given each column's values in pieces that are cut alike.
    pub(super) fn of(columns: &[Vec<ArrayRef>], keys: usize) -> Result<Self> {
        let bits = keys.saturating_mul(BITS_A_KEY).max(LEAST_BITS).next_power_of_two();
        let mut sieve = Self { bits: vec![0; bits / 64], shift: 64 - bits.trailing_zeros() };
        let pieces = columns.first().map_or(0, Vec::len);
        for piece in 0..pieces {
            let columns: Vec<ArrayRef> = columns.iter().filter_map(|column| column.get(piece)).cloned().collect();
            let rows = columns.first().map_or(0, |column| column.len());
            for hash in hashes(&columns, rows)? {
                let (word, bit) = sieve.place(hash);
                if let Some(word) = sieve.bits.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        Ok(sieve)
    }

    /// Which of `rows` rows with these key columns go through, ascending.
    pub(super) fn pass(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        let passes = |hash: u64| {
            let (word, bit) = self.place(hash);
            self.bits.get(word).is_some_and(|word| word & bit != 0)
        };
        let hashes = hashes(columns, rows)?;
        Ok((0..).zip(hashes).filter(|(_, hash)| passes(*hash)).map(|(row, _)| row).collect())
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let place = hash >> self.shift;
        ((place / 64) as usize, 1 << (place % 64))
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
