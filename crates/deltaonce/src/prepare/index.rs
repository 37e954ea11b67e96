//! Numbers distinct keys from 0, in the order in which they first come.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use hashbrown::HashTable;

use crate::error::{Error, Result};

/// The number of a key.
pub(crate) type Slot = u32;

/// Distinct keys as bytes in one buffer, with a hash table of their numbers.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`; it starts where the one before ends.
    ends: Vec<usize>,
    table: HashTable<Slot>,
    // Keyed with constants, so that one input is one run. The result does not depend on it.
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl KeyIndex {
    /// The key's bytes; none for a number that was not given out.
    pub(crate) fn key(&self, slot: Slot) -> &[u8] {
        key(&self.bytes, &self.ends, slot)
    }

    /// The number of a key that came before.
    pub(crate) fn find(&self, wanted: &[u8]) -> Option<Slot> {
        let hash = self.hasher.hash_one(wanted);
        self.table.find(hash, |&slot| self.key(slot) == wanted).copied()
    }

    /// The key's number, and whether it comes for the first time.
    ///
    /// # Errors
    /// `Refused` past 2^32 keys.
    pub(crate) fn number(&mut self, wanted: &[u8]) -> Result<(Slot, bool)> {
        let Self { bytes, ends, table, hasher } = self;
        let hash = hasher.hash_one(wanted);
        if let Some(&slot) = table.find(hash, |&slot| key(bytes, ends, slot) == wanted) {
            return Ok((slot, false));
        }
        let slot = Slot::try_from(ends.len()).map_err(|e| {
            Error::refused("the source holds more than 4,294,967,296 keys, which is more than one load can take")
                .caused_by(e)
        })?;
        bytes.extend_from_slice(wanted);
        ends.push(bytes.len());
        table.insert_unique(hash, slot, |&slot| hasher.hash_one(key(bytes, ends, slot)));
        Ok((slot, true))
    }
}

fn key<'a>(bytes: &'a [u8], ends: &[usize], slot: Slot) -> &'a [u8] {
    let slot = slot as usize;
    let start = slot.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    ends.get(slot).and_then(|&end| bytes.get(start..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_numbers_as_the_index_grows() {
        let mut index = KeyIndex::default();
        for n in 0..10_000_u32 {
            assert_eq!(index.number(n.to_string().as_bytes()).unwrap(), (n, true));
        }
        for n in 0..10_000_u32 {
            assert_eq!(index.number(n.to_string().as_bytes()).unwrap(), (n, false));
            assert_eq!(index.find(n.to_string().as_bytes()), Some(n));
            assert_eq!(index.key(n), n.to_string().as_bytes());
        }
        assert_eq!(index.find(b"x"), None);
        assert_eq!(index.find(b""), None);
    }
}
