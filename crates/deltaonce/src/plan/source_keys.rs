//! Where in a table a key of the source can be: in which files, and by the same test in which parts of a file.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::ScalarValue;
use roaring::RoaringBitmap;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::plan::RowsRead;
use crate::plan::bounds::FileBounds;
use crate::plan::digests::Digests;
use crate::plan::sieve::Sieve;
use crate::prepare::index::Slot;
use crate::prepare::keys::normal;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;

/// Keys of a source as a set that ranges are tested against. Cheap to clone; what it sorts, it sorts once.
#[derive(Clone)]
pub(crate) struct SourceKeys(Arc<Inner>);

struct Inner {
    winners: Arc<Winners>,
    /// The slots whose keys these are; none: all.
    slots: Option<RoaringBitmap>,
    keys: OnceLock<Digests>,
    sieve: OnceLock<Option<Sieve>>,
    columns: Vec<Column>,
}

/// One column of the key.
struct Column {
    /// The table's.
    index: usize,
    name: String,
    converter: RowConverter,
    has_null: bool,
    has_value: bool,
    /// Its values; not asked for the first column, by which the keys are sorted anyhow.
    values: OnceLock<Option<Digests>>,
}

/// What is known of the values of some rows of the table.
pub(super) trait Extents {
    /// Whether one can be null in a column.
    fn may_be_null(&self, column: &str) -> bool;
    /// Whether one can be other than null in a column.
    fn may_be_value(&self, column: &str) -> bool;
    /// The least and the greatest value that a column can have there, nulls apart, where both are known.
    fn range(&self, column: &str) -> Option<(ScalarValue, ScalarValue)>;
}

impl Extents for FileBounds<'_> {
    fn may_be_null(&self, column: &str) -> bool {
        FileBounds::may_be_null(self, column)
    }

    fn may_be_value(&self, column: &str) -> bool {
        FileBounds::may_be_value(self, column)
    }

    fn range(&self, column: &str) -> Option<(ScalarValue, ScalarValue)> {
        FileBounds::range(self, column)
    }
}

impl SourceKeys {
    /// The keys of `winners`.
    pub(crate) fn new(winners: Arc<Winners>) -> Result<Self> {
        Self::of(winners, None)
    }

    fn of(winners: Arc<Winners>, slots: Option<RoaringBitmap>) -> Result<Self> {
        let keyed = winners.keyed();
        let count = slots.as_ref().map_or(winners.len() as u64, RoaringBitmap::len);
        let columns = keyed.key.columns().iter().map(|&index| {
            let field = keyed.schema.columns().field(index);
            let pieces = values(&winners, slots.as_ref(), index)?;
            let nulls: usize = pieces.iter().map(|values| values.null_count()).sum();
            let converter = RowConverter::new(vec![SortField::new(field.data_type().clone())])
                .map_err(|e| Error::internal("the key's types could not be encoded").caused_by(e))?;
            Ok(Column {
                index,
                name: field.name().clone(),
                converter,
                has_null: nulls > 0,
                has_value: (nulls as u64) < count,
                values: OnceLock::new(),
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Self(Arc::new(Inner { winners, slots, keys: OnceLock::new(), sieve: OnceLock::new(), columns })))
    }

    /// These keys but for those of `settled`.
    pub(super) fn without(&self, settled: &RoaringBitmap) -> Result<Self> {
        let mut slots = self.0.slots.clone().unwrap_or_else(|| {
            let mut all = RoaringBitmap::new();
            all.insert_range(0..u32::try_from(self.0.winners.len()).unwrap_or(u32::MAX));
            all
        });
        slots -= settled;
        Self::of(self.0.winners.clone(), Some(slots))
    }

    /// The rows whose keys these are, and perhaps others.
    pub(crate) fn winners(&self) -> &Arc<Winners> {
        &self.0.winners
    }

    /// How many keys these are.
    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The slot of a key (encoded), if it is one of these.
    pub(super) fn find(&self, key: &[u8]) -> Option<Slot> {
        let slot = self.0.winners.find(key)?;
        self.0.slots.as_ref().is_none_or(|slots| slots.contains(slot)).then_some(slot)
    }

    /// Whether these are among `others`, keys of the same source.
    pub(super) fn are_among(&self, others: &Self) -> bool {
        match (&self.0.slots, &others.0.slots) {
            (_, None) => true,
            (None, Some(others)) => others.len() == self.len(),
            (Some(these), Some(others)) => these.is_subset(others),
        }
    }

    /// Whether `slot` is of one of these.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.0.slots.as_ref().is_none_or(|slots| slots.contains(slot))
    }

    /// The values of the key column at `number` in all of these keys, in pieces.
    pub(super) fn values(&self, number: usize) -> Option<Vec<ArrayRef>> {
        values(&self.0.winners, self.0.slots.as_ref(), self.0.columns.get(number)?.index).ok()
    }

    /// Names of the key's columns, in its order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.columns.iter().map(|column| column.name.as_str())
    }

    /// Which of the rows whose key columns are `columns` may have one of these keys, ascending.
    pub(super) fn sift(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        match self.0.sieve() {
            Some(sieve) => sieve.pass(columns, rows),
            None => Ok((0..).take(rows).collect()),
        }
    }

    /// Sorts, on a thread for blocking work, what the tests would else sort when they are first asked.
    pub(crate) async fn sort(&self) -> Result<()> {
        let keys = self.0.clone();
        spawn_blocking(move || {
            keys.keys();
            keys.sieve();
            for column in 1..keys.columns.len() {
                keys.values(column);
            }
        })
        .await
        .map_err(|e| Error::internal("sorting the source's keys broke off").caused_by(e))
    }

    /// Whether a key may be among rows of which so much is known.
    pub(super) fn may_be_within(&self, extents: &impl Extents) -> bool {
        self.0.may_be_within(extents)
    }

    /// Whether a key may be among rows of which this is known of the key column at `number` alone: whether one can be
    /// null, whether one can be other, and the least and greatest value where they are known.
    pub(super) fn may_have(
        &self,
        number: usize,
        null: bool,
        value: bool,
        range: Option<(ScalarValue, ScalarValue)>,
    ) -> bool {
        self.0.may_have(number, null, value, range)
    }
}

impl fmt::Debug for SourceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceKeys").field("keys", &self.len()).finish_non_exhaustive()
    }
}

impl RowsRead for SourceKeys {
    fn may_be_in(&self, file: &AddFile) -> bool {
        self.0.may_be_within(&FileBounds::of(file, &self.0.winners.keyed().schema))
    }
}

fn values(winners: &Winners, slots: Option<&RoaringBitmap>, column: usize) -> Result<Vec<ArrayRef>> {
    match slots {
        None => Ok(winners.column(column).cloned().collect()),
        Some(slots) => winners.gather(&slots.iter().collect::<Vec<_>>(), &[column]),
    }
}

impl Inner {
    fn len(&self) -> u64 {
        self.slots.as_ref().map_or(self.winners.len() as u64, RoaringBitmap::len)
    }

    /// All keys.
    fn keys(&self) -> &Digests {
        let winners = &self.winners;
        let wide = self.columns.len() > 1;
        self.keys.get_or_init(|| match &self.slots {
            None => Digests::new(|| winners.slots().map(|slot| winners.key(slot)), wide),
            Some(slots) => Digests::new(|| slots.iter().map(|slot| winners.key(slot)), wide),
        })
    }

    /// All keys, hashed; none where that is of no use.
    fn sieve(&self) -> Option<&Sieve> {
        let sieve = || {
            let pieces: Vec<Vec<ArrayRef>> = self
                .columns
                .iter()
                .map(|column| values(&self.winners, self.slots.as_ref(), column.index))
                .collect::<Result<_>>()
                .ok()?;
            Sieve::of(&pieces, usize::try_from(self.len()).ok()?).ok()
        };
        self.sieve.get_or_init(sieve).as_ref()
    }

    /// The values of a key column in all keys; none where they cannot be told.
    fn values(&self, number: usize) -> Option<&Digests> {
        let column = self.columns.get(number)?;
        let digests = || {
            let pieces = values(&self.winners, self.slots.as_ref(), column.index).ok()?;
            let pieces: Vec<Rows> = pieces
                .iter()
                .map(|values| column.converter.convert_columns(&[normal(values)]))
                .collect::<Result<_, _>>()
                .ok()?;
            Some(Digests::new(|| pieces.iter().flat_map(|rows| rows.iter().map(|row| row.data())), false))
        };
        column.values.get_or_init(digests).as_ref()
    }

    fn may_have(&self, number: usize, null: bool, value: bool, range: Option<(ScalarValue, ScalarValue)>) -> bool {
        let Some(column) = self.columns.get(number) else { return true };
        if column.has_null && null {
            return true;
        }
        if !(column.has_value && value) {
            return false;
        }
        let range = range.and_then(|(min, max)| Some((column.encode(&min)?, column.encode(&max)?)));
        let Some((min, max)) = range else { return true };
        if number == 0 {
            self.keys().any_between(&min, &max)
        } else {
            self.values(number).is_none_or(|values| values.any_between(&min, &max))
        }
    }

    /// Tests the range in each key column against the values that keys have there, and all of them together against the
    /// keys as wholes: a key within every range is between the tuple of the least values and the tuple of the greatest
    /// ones. Where a file has one value in a column, as in partition columns, the next column's range narrows that
    /// further.
    fn may_be_within(&self, extents: &impl Extents) -> bool {
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        let mut together = true;
        for (number, column) in self.columns.iter().enumerate() {
            let null = column.has_null && extents.may_be_null(&column.name);
            let value = column.has_value && extents.may_be_value(&column.name);
            if !null && !value {
                return false;
            }
            // Ranges say nothing about nulls.
            let range = if null { None } else { extents.range(&column.name) };
            let range = range.and_then(|(min, max)| Some((column.encode(&min)?, column.encode(&max)?)));
            let Some((min, max)) = range else {
                together = false;
                continue;
            };
            if number > 0 && self.values(number).is_some_and(|values| !values.any_between(&min, &max)) {
                return false;
            }
            if together {
                least.extend_from_slice(&min);
                greatest.extend_from_slice(&max);
            }
        }
        self.len() > 0 && (least.is_empty() || self.keys().any_between(&least, &greatest))
    }
}

impl Column {
    fn encode(&self, value: &ScalarValue) -> Option<Vec<u8>> {
        let array = value.to_array().ok()?;
        let rows = self.converter.convert_columns(&[normal(&array)]).ok()?;
        (rows.num_rows() == 1).then(|| rows.row(0).data().to_vec())
    }
}
