//! A number that two bags of rows share only if they hold the same rows, in whatever order.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use twox_hash::XxHash3_128;

use crate::error::{Error, Result};

/// The fingerprint of a bag of rows: their count and the sum of their 128-bit hashes.
///
/// Meant for comparing within one process: it rests on Arrow's row format, which may change between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint {
    rows: u64,
    sum: u128,
}

impl Extend<u128> for Fingerprint {
    /// Adds rows, given their [hashes](Fingerprinter::hashes).
    fn extend<I: IntoIterator<Item = u128>>(&mut self, hashes: I) {
        for hash in hashes {
            self.rows += 1;
            self.sum = self.sum.wrapping_add(hash);
        }
    }
}

/// Hashes the rows of batches of one schema.
#[derive(Debug)]
pub(crate) struct Fingerprinter {
    converter: RowConverter,
}

impl Fingerprinter {
    pub(crate) fn new(schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields)
            .map_err(|e| Error::unsupported("rows of these types cannot be compared").caused_by(e))?;
        Ok(Self { converter })
    }

    /// A number of each row that only equal rows share.
    pub(crate) fn hashes(&self, batch: &RecordBatch) -> Result<Vec<u128>> {
        let rows = self
            .converter
            .convert_columns(batch.columns())
            .map_err(|e| Error::internal("rows cannot be compared").caused_by(e))?;
        Ok(rows.iter().map(|row| XxHash3_128::oneshot(row.as_ref())).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn print(ids: &[i64], names: &[Option<&str>]) -> Fingerprint {
        let columns: [(&str, ArrayRef); 2] =
            [("id", Arc::new(Int64Array::from(ids.to_vec()))), ("name", Arc::new(StringArray::from(names.to_vec())))];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
        let mut print = Fingerprint::default();
        print.extend(Fingerprinter::new(&batch.schema()).unwrap().hashes(&batch).unwrap());
        print
    }

    #[test]
    fn order_and_batching_do_not_matter() {
        let whole = print(&[1, 2], &[Some("a"), None]);
        assert_eq!(whole, print(&[2, 1], &[None, Some("a")]));
    }

    #[test]
    fn content_and_multiplicity_do() {
        let one = print(&[1], &[Some("a")]);
        assert_ne!(one, print(&[1], &[None]));
        assert_ne!(one, print(&[1], &[Some("")]));
        assert_ne!(one, print(&[1, 1], &[Some("a"), Some("a")]));
        assert_ne!(print(&[1, 2], &[Some("a"), Some("b")]), print(&[1, 2], &[Some("b"), Some("a")]));
    }
}
