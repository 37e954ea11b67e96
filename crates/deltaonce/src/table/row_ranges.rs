//! Which rows of a data file are meant, by their places in it.

use std::ops::Range;

use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;

/// Places of rows in a data file, from 0: ranges that ascend, none of which is empty or touches the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RowRanges(Vec<Range<u64>>);

impl RowRanges {
    /// The first `count` rows.
    pub(crate) fn all(count: u64) -> Self {
        Self::of(std::iter::once(0..count))
    }

    /// The rows of `ranges`, which ascend and do not overlap.
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// The rows at `places`, which ascend.
    pub(crate) fn at(places: impl IntoIterator<Item = u64>) -> Self {
        Self::of(places.into_iter().map(|place| place..place.saturating_add(1)))
    }

    /// How many rows that is.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// The rows that are in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let common = one.start.max(two.start)..one.end.min(two.end);
            if one.end < two.end {
                left.next()
            } else {
                right.next()
            };
            if !common.is_empty() {
                both.push(common);
            }
        }
        Self(both)
    }

    /// The rows of these that are not in `masked`.
    pub(crate) fn without(&self, masked: &RoaringTreemap) -> Self {
        if masked.is_empty() {
            return self.clone();
        }
        let end = self.0.last().map_or(0, |last| last.end);
        let mut next = 0;
        let mut left = Vec::new();
        for place in masked.iter().take_while(|place| *place < end) {
            left.push(next..place);
            next = place.saturating_add(1);
        }
        left.push(next..end);
        self.and(&Self::of(left))
    }

    /// The same rows for the Parquet reader, counted from the first of `groups` (ranges of places, ascending, which hold
    /// all of these rows) and as if those followed each other.
    pub(crate) fn selection(&self, groups: &[Range<u64>]) -> RowSelection {
        let mut before = 0;
        let mut ranges = Vec::new();
        for group in groups {
            let inside = self.and(&Self::of([group.clone()]));
            ranges.extend(inside.0.iter().map(|range| {
                let place = |place: u64| (place - group.start + before) as usize;
                place(range.start)..place(range.end)
            }));
            before += group.end - group.start;
        }
        RowSelection::from_consecutive_ranges(ranges.into_iter(), before as usize)
    }
}

/// The places of rows that come one after the other, though not always from neighbouring places.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// The first one's; the others follow it without a gap.
    From(u64),
    /// Each one's.
    Each(Vec<u64>),
}

impl Places {
    /// The place of the row that comes as number `row`.
    pub(crate) fn of(&self, row: usize) -> u64 {
        match self {
            Self::From(first) => first.saturating_add(row as u64),
            Self::Each(places) => places.get(row).copied().unwrap_or(u64::MAX),
        }
    }
}

/// Gives out the places of ranges, some at a time.
#[derive(Debug)]
pub(crate) struct Cursor {
    left: std::vec::IntoIter<Range<u64>>,
    current: Range<u64>,
}

impl Cursor {
    pub(crate) fn new(rows: RowRanges) -> Self {
        Self { left: rows.0.into_iter(), current: 0..0 }
    }

    /// The next `count` places; none where fewer are left.
    pub(crate) fn next(&mut self, count: u64) -> Option<Places> {
        if self.current.is_empty() {
            self.current = self.left.next().unwrap_or(0..0);
        }
        if self.current.end - self.current.start >= count {
            let first = self.current.start;
            self.current.start += count;
            return Some(Places::From(first));
        }
        let mut places = Vec::with_capacity(usize::try_from(count).ok()?);
        while (places.len() as u64) < count {
            if self.current.is_empty() {
                self.current = self.left.next()?;
            }
            let end = self.current.end.min(self.current.start + (count - places.len() as u64));
            places.extend(self.current.start..end);
            self.current.start = end;
        }
        Some(Places::Each(places))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn places(rows: &RowRanges) -> BTreeSet<u64> {
        rows.ranges().iter().flat_map(Clone::clone).collect()
    }

    fn some_rows() -> impl Strategy<Value = BTreeSet<u64>> {
        prop::collection::btree_set(0_u64..60, 0..40)
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_places(one in some_rows(), other in some_rows(), cut in 0_u64..60) {
            let (left, right) = (RowRanges::at(one.clone()), RowRanges::at(other.clone()));
            prop_assert_eq!(places(&left), one.clone());
            prop_assert_eq!(left.count(), one.len() as u64);
            prop_assert_eq!(places(&left.and(&right)), one.intersection(&other).copied().collect::<BTreeSet<_>>());
            let masked: RoaringTreemap = other.iter().copied().collect();
            prop_assert_eq!(places(&left.without(&masked)), one.difference(&other).copied().collect::<BTreeSet<_>>());

            let groups = [0..cut, cut..60];
            let selection = left.selection(&groups);
            prop_assert_eq!(selection.row_count() as u64, left.count());

            let mut cursor = Cursor::new(left);
            let mut given = Vec::new();
            for count in [1, 2, 3, 5].into_iter().cycle() {
                let count = count.min(one.len() - given.len());
                if count == 0 {
                    break;
                }
                let next = cursor.next(count as u64).unwrap();
                given.extend((0..count).map(|row| next.of(row)));
            }
            prop_assert_eq!(given, one.into_iter().collect::<Vec<_>>());
            prop_assert!(cursor.next(1).is_none());
        }
    }

    #[test]
    fn a_selection_counts_from_the_first_of_its_groups() {
        let rows = RowRanges::of([12..14, 31..33]);
        let selection = rows.selection(&[10..20, 30..40]);
        let selectors: Vec<_> = selection.iter().map(|selector| (selector.skip, selector.row_count)).collect();
        assert_eq!(selectors, [(true, 2), (false, 2), (true, 7), (false, 2), (true, 7)]);
    }
}
