//! Which files of a table can hold a key of the source.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::Array;
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::plan::RowsRead;
use crate::plan::bounds::FileBounds;
use crate::prepare::index::{KeyIndex, Slot};
use crate::prepare::keys::normal;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;

/// The keys of a source as a set that ranges are tested against. Cheap to clone; what it sorts, it sorts once.
#[derive(Clone)]
pub(crate) struct SourceKeys(Arc<Inner>);

struct Inner {
    winners: Arc<Winners>,
    /// All keys, by their bytes.
    sorted: OnceLock<Vec<Slot>>,
    columns: Vec<Column>,
}

/// One column of the key.
struct Column {
    name: String,
    converter: RowConverter,
    has_null: bool,
    has_value: bool,
    /// Its distinct values; not needed for the first column, by which the keys are sorted anyhow.
    values: OnceLock<Values>,
}

struct Values {
    distinct: KeyIndex,
    sorted: Vec<Slot>,
}

impl SourceKeys {
    /// The keys of `winners`.
    pub(crate) fn new(winners: Arc<Winners>) -> Result<Self> {
        let keyed = winners.keyed();
        let columns = keyed.key.columns().iter().map(|&column| {
            let field = keyed.schema.columns().field(column);
            let nulls: usize = winners.column(column).map(|values| values.null_count()).sum();
            let converter = RowConverter::new(vec![SortField::new(field.data_type().clone())])
                .map_err(|e| Error::internal("the key's types could not be encoded").caused_by(e))?;
            Ok(Column {
                name: field.name().clone(),
                converter,
                has_null: nulls > 0,
                has_value: nulls < winners.len(),
                values: OnceLock::new(),
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Self(Arc::new(Inner { winners, sorted: OnceLock::new(), columns })))
    }

    /// The rows whose keys these are.
    pub(crate) fn winners(&self) -> &Arc<Winners> {
        &self.0.winners
    }

    /// Sorts, on a thread for blocking work, what [`may_be_in`](RowsRead::may_be_in) would else sort on its first call.
    pub(crate) async fn sort(&self) -> Result<()> {
        let keys = self.0.clone();
        spawn_blocking(move || {
            keys.sorted();
            (1..keys.columns.len()).for_each(|column| {
                keys.values(column);
            });
        })
        .await
        .map_err(|e| Error::internal("sorting the source's keys broke off").caused_by(e))
    }
}

impl fmt::Debug for SourceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceKeys").field("keys", &self.0.winners.len()).finish_non_exhaustive()
    }
}

impl RowsRead for SourceKeys {
    fn may_be_in(&self, file: &AddFile) -> bool {
        self.0.may_be_in(file)
    }
}

impl Inner {
    fn sorted(&self) -> &[Slot] {
        self.sorted.get_or_init(|| {
            let mut slots: Vec<Slot> = self.winners.slots().collect();
            slots.sort_unstable_by(|&one, &other| self.winners.key(one).cmp(self.winners.key(other)));
            slots
        })
    }

    /// The distinct values of a key column; none where they cannot be told.
    fn values(&self, column: usize) -> Option<&Values> {
        let index = *self.winners.keyed().key.columns().get(column)?;
        let column = self.columns.get(column)?;
        Some(column.values.get_or_init(|| {
            let mut distinct = KeyIndex::default();
            for values in self.winners.column(index) {
                let Ok(rows) = column.converter.convert_columns(&[normal(values)]) else { continue };
                for row in rows.iter() {
                    // There are no more distinct values than winners, which were numbered already.
                    let _ = distinct.number(row.data());
                }
            }
            let mut sorted: Vec<Slot> = (0..).take(distinct.len()).collect();
            sorted.sort_unstable_by(|&one, &other| distinct.key(one).cmp(distinct.key(other)));
            Values { distinct, sorted }
        }))
    }

    /// Tests the file's range in each key column against the values that keys have there, and all of them together
    /// against the keys as wholes: a key within every range is between the tuple of the least values and the tuple of
    /// the greatest ones. Where a file has one value in a column, as in partition columns, the next column's range
    /// narrows that further.
    fn may_be_in(&self, file: &AddFile) -> bool {
        let bounds = FileBounds::of(file, &self.winners.keyed().schema);
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        let mut together = true;
        for (number, column) in self.columns.iter().enumerate() {
            let null = column.has_null && bounds.may_be_null(&column.name);
            let value = column.has_value && bounds.may_be_value(&column.name);
            if !null && !value {
                return false;
            }
            // Ranges say nothing about nulls.
            let range = if null { None } else { bounds.range(&column.name) };
            let range = range.and_then(|(min, max)| Some((column.encode(&min)?, column.encode(&max)?)));
            let Some((min, max)) = range else {
                together = false;
                continue;
            };
            if number > 0
                && let Some(values) = self.values(number)
                && !any_between(&values.sorted, |slot| values.distinct.key(slot), &min, &max)
            {
                return false;
            }
            if together {
                least.extend_from_slice(&min);
                greatest.extend_from_slice(&max);
            }
        }
        self.winners.len() > 0
            && (least.is_empty() || any_between(self.sorted(), |slot| self.winners.key(slot), &least, &greatest))
    }
}

impl Column {
    fn encode(&self, value: &ScalarValue) -> Option<Vec<u8>> {
        let array = value.to_array().ok()?;
        let rows = self.converter.convert_columns(&[normal(&array)]).ok()?;
        (rows.num_rows() == 1).then(|| rows.row(0).data().to_vec())
    }
}

/// Whether any of the sorted keys begins with something from `least` to `greatest`.
fn any_between<'a>(sorted: &[Slot], key: impl Fn(Slot) -> &'a [u8], least: &[u8], greatest: &[u8]) -> bool {
    let first = sorted.partition_point(|&slot| key(slot) < least);
    sorted.get(first).is_some_and(|&slot| key(slot) <= greatest || key(slot).starts_with(greatest))
}
