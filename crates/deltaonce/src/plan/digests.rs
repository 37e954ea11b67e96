//! Many byte strings as a small sorted set that ranges are tested against.

/// Byte strings cut to a few bytes each, after what all of them begin with. A test may say that a string is in a range
/// though none is, where they only differ later; it never misses one.
#[derive(Debug)]
pub(super) struct Digests {
    common: Vec<u8>,
    sorted: Sorted,
}

#[derive(Debug)]
enum Sorted {
    /// 8 bytes of each string: one column of a fixed width is told apart exactly.
    Narrow(Vec<u64>),
    /// 32 bytes of each string: a column or two of text and a number.
    Wide(Vec<[u8; WIDE]>),
}

const WIDE: usize = 32;

impl Digests {
    /// Digests of strings that are given in the same order each time; `wide` for those of several columns.
    pub(super) fn new<'a, I>(strings: impl Fn() -> I, wide: bool) -> Self
    where
        I: Iterator<Item = &'a [u8]>,
    {
        let common = common_prefix(strings());
        let rests = strings().map(|string| string.get(common.len()..).unwrap_or_default());
        let sorted = if wide {
            Sorted::Wide(sorted(rests.map(|rest| padded(rest, 0))))
        } else {
            Sorted::Narrow(sorted(rests.map(|rest| u64::from_be_bytes(padded(rest, 0)))))
        };
        Self { common, sorted }
    }

    /// Whether a string may be at or above `least` and also at or below `greatest`, or begin with `greatest`.
    pub(super) fn any_between(&self, least: &[u8], greatest: &[u8]) -> bool {
        match &self.sorted {
            Sorted::Narrow(sorted) => any_between(
                sorted,
                self.from(least, |rest| u64::from_be_bytes(padded(rest, 0)), 0),
                self.to(greatest, |rest| u64::from_be_bytes(padded(rest, u8::MAX)), u64::MAX),
            ),
            Sorted::Wide(sorted) => any_between(
                sorted,
                self.from(least, |rest| padded(rest, 0), [0; WIDE]),
                self.to(greatest, |rest| padded(rest, u8::MAX), [u8::MAX; WIDE]),
            ),
        }
    }

    /// The least digest that a string at or above `least` can have; none where no string is.
    fn from<T>(&self, least: &[u8], digest: impl Fn(&[u8]) -> T, all: T) -> Option<T> {
        match least.strip_prefix(self.common.as_slice()) {
            Some(rest) => Some(digest(rest)),
            None => (least < self.common.as_slice()).then_some(all),
        }
    }

    /// The greatest digest that a string at or below `greatest`, or one that begins with it, can have; none where no
    /// string is.
    fn to<T>(&self, greatest: &[u8], digest: impl Fn(&[u8]) -> T, all: T) -> Option<T> {
        match greatest.strip_prefix(self.common.as_slice()) {
            Some(rest) => Some(digest(rest)),
            None => (greatest > self.common.as_slice() || self.common.starts_with(greatest)).then_some(all),
        }
    }
}

fn any_between<T: Ord>(sorted: &[T], from: Option<T>, to: Option<T>) -> bool {
    let (Some(from), Some(to)) = (from, to) else { return false };
    sorted.get(sorted.partition_point(|digest| *digest < from)).is_some_and(|digest| *digest <= to)
}

/// The first bytes, filled up with `fill`.
fn padded<const N: usize>(bytes: &[u8], fill: u8) -> [u8; N] {
    let mut padded = [fill; N];
    padded.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    padded
}

fn sorted<T: Ord>(digests: impl Iterator<Item = T>) -> Vec<T> {
    let mut digests: Vec<T> = digests.collect();
    digests.sort_unstable();
    digests.dedup();
    digests
}

fn common_prefix<'a>(mut strings: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let Some(first) = strings.next() else { return Vec::new() };
    let mut common = first;
    for string in strings {
        let length = common.iter().zip(string).take_while(|(one, other)| one == other).count();
        common = common.get(..length).unwrap_or_default();
    }
    common.to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0_u8, 1, 127, 255]), 0..5)
    }

    proptest! {
        #[test]
        fn short_strings_are_told_apart_and_none_is_missed(
            start in string(),
            strings in prop::collection::vec(string(), 0..12),
            ends in (string(), string()),
            within in any::<bool>(),
            wide in any::<bool>(),
        ) {
            let strings: Vec<Vec<u8>> = strings.into_iter().map(|string| [start.clone(), string].concat()).collect();
            let end = |end: &Vec<u8>| if within { [start.clone(), end.clone()].concat() } else { end.clone() };
            let (least, greatest) = (end(&ends.0), end(&ends.1));
            let digests = Digests::new(|| strings.iter().map(Vec::as_slice), wide);
            let fits = |string: &Vec<u8>| *string >= least && (*string <= greatest || string.starts_with(&greatest));
            let any = strings.iter().any(fits);
            if any {
                prop_assert!(digests.any_between(&least, &greatest));
            }
            // What follows a zero byte cannot be told from the end; everything else of this length can.
            if !any && !strings.iter().chain([&least, &greatest]).any(|string| string.contains(&0)) {
                prop_assert!(!digests.any_between(&least, &greatest));
            }
        }
    }

    #[test]
    fn long_common_prefixes_do_not_blunt_the_test() {
        let strings: Vec<Vec<u8>> = [10_u64, 20, 30].map(|n| [vec![7; 50], n.to_be_bytes().to_vec()].concat()).to_vec();
        let digests = Digests::new(|| strings.iter().map(Vec::as_slice), false);
        let end = |n: u64| [vec![7; 50], n.to_be_bytes().to_vec()].concat();
        assert!(digests.any_between(&end(20), &end(20)));
        assert!(!digests.any_between(&end(11), &end(19)));
        assert!(!digests.any_between(&end(31), &end(u64::MAX)));
    }
}
