//! Which files of a table can hold a key of the source.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::Array;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::ScalarValue;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::plan::RowsRead;
use crate::plan::bounds::FileBounds;
use crate::plan::digests::Digests;
use crate::prepare::keys::normal;
use crate::prepare::winners::Winners;
use crate::table::actions::AddFile;

/// The keys of a source as a set that ranges are tested against. Cheap to clone; what it sorts, it sorts once.
#[derive(Clone)]
pub(crate) struct SourceKeys(Arc<Inner>);

struct Inner {
    winners: Arc<Winners>,
    keys: OnceLock<Digests>,
    columns: Vec<Column>,
}

/// One column of the key.
struct Column {
    name: String,
    converter: RowConverter,
    has_null: bool,
    has_value: bool,
    /// Its values; not asked for the first column, by which the keys are sorted anyhow.
    values: OnceLock<Option<Digests>>,
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
        Ok(Self(Arc::new(Inner { winners, keys: OnceLock::new(), columns })))
    }

    /// The rows whose keys these are.
    pub(crate) fn winners(&self) -> &Arc<Winners> {
        &self.0.winners
    }

    /// Sorts, on a thread for blocking work, what [`may_be_in`](RowsRead::may_be_in) would else sort on its first call.
    pub(crate) async fn sort(&self) -> Result<()> {
        let keys = self.0.clone();
        spawn_blocking(move || {
            keys.keys();
            for column in 1..keys.columns.len() {
                keys.values(column);
            }
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
    /// All keys.
    fn keys(&self) -> &Digests {
        let winners = &self.winners;
        let digests = || Digests::new(|| winners.slots().map(|slot| winners.key(slot)), self.columns.len() > 1);
        self.keys.get_or_init(digests)
    }

    /// The values of a key column in all keys; none where they cannot be told.
    fn values(&self, column: usize) -> Option<&Digests> {
        let index = *self.winners.keyed().key.columns().get(column)?;
        let column = self.columns.get(column)?;
        let digests = || {
            let pieces = self.winners.column(index).map(|values| column.converter.convert_columns(&[normal(values)]));
            let pieces: Vec<Rows> = pieces.collect::<Result<_, _>>().ok()?;
            Some(Digests::new(|| pieces.iter().flat_map(|rows| rows.iter().map(|row| row.data())), false))
        };
        column.values.get_or_init(digests).as_ref()
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
            if number > 0 && self.values(number).is_some_and(|values| !values.any_between(&min, &max)) {
                return false;
            }
            if together {
                least.extend_from_slice(&min);
                greatest.extend_from_slice(&max);
            }
        }
        self.winners.len() > 0 && (least.is_empty() || self.keys().any_between(&least, &greatest))
    }
}

impl Column {
    fn encode(&self, value: &ScalarValue) -> Option<Vec<u8>> {
        let array = value.to_array().ok()?;
        let rows = self.converter.convert_columns(&[normal(&array)]).ok()?;
        (rows.num_rows() == 1).then(|| rows.row(0).data().to_vec())
    }
}
