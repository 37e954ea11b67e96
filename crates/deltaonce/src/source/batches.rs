//! Record batches that the caller gives.

use std::sync::Arc;

use arrow::array::RecordBatchReader;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::{Places, SourceBatch, Unit, worker};
use crate::error::{Error, Result};
use crate::table::columns::sql_type;

/// Numbers the rows of `batches` from 1 and sees to it that each has the columns of `schema`.
pub(super) fn read(
    name: Arc<str>,
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch, ArrowError>>,
) -> BoxStream<'static, Result<SourceBatch>> {
    let failed = name.clone();
    let batches = batches.map_err(move |e| fault(&failed, e));
    stream::try_unfold((batches.boxed(), 1), move |(mut batches, row)| {
        let (name, schema) = (name.clone(), schema.clone());
        async move {
            let Some(rows) = batches.try_next().await? else { return Ok(None) };
            same_columns(&name, row, &schema, rows.schema_ref())?;
            let next = row + rows.num_rows() as u64;
            let places = Places::consecutive(name, Unit::Row, row);
            Ok(Some((SourceBatch { rows, places }, (batches, next))))
        }
    })
    .boxed()
}

/// The batches of `reader`, drawn on a blocking thread.
pub(super) fn drawn(
    name: &Arc<str>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> BoxStream<'static, Result<RecordBatch, ArrowError>> {
    worker::run(name.clone(), 2, move |out| {
        for batch in reader {
            let failed = batch.is_err();
            if !out.send(batch) || failed {
                break;
            }
        }
        Ok(())
    })
    .map(|drawn| drawn.unwrap_or_else(|e| Err(ArrowError::ExternalError(Box::new(e)))))
    .boxed()
}

fn fault(name: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::retryable(format!("{name} broke off: {other}")).caused_by(other),
        },
        ArrowError::IoError(what, inner) => Error::retryable(format!("{name} broke off: {what}")).caused_by(inner),
        other => Error::refused(format!("{name} broke off: {other}")).caused_by(other),
    }
}

fn same_columns(name: &str, row: u64, declared: &Schema, actual: &Schema) -> Result<()> {
    let differs = |what: String| {
        Err(Error::invalid(format!("{name}: the batch at row {row} is not of the declared schema: {what}")))
    };
    if declared.fields().len() != actual.fields().len() {
        return differs(format!("{} columns, not {}", actual.fields().len(), declared.fields().len()));
    }
    for (declared, actual) in declared.fields().iter().zip(actual.fields()) {
        if declared.name() != actual.name() {
            return differs(format!("column {} where {} should be", actual.name(), declared.name()));
        }
        if !declared.data_type().equals_datatype(actual.data_type()) {
            let (is, should) = (sql_type(actual.data_type()), sql_type(declared.data_type()));
            return differs(format!("column {} is {is}, not {should}", actual.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, Int64Array};
    use arrow::record_batch::RecordBatchIterator;

    use super::*;

    fn ids(ids: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("id", ids)]).unwrap()
    }

    #[tokio::test]
    async fn rows_are_numbered_across_batches() {
        let batch = ids(Arc::new(Int64Array::from(vec![1, 2])));
        let reader = RecordBatchIterator::new([Ok(batch.clone()), Ok(batch.clone())], batch.schema());
        let name: Arc<str> = "the queue".into();
        let read = read(name.clone(), batch.schema(), drawn(&name, Box::new(reader)));
        let batches: Vec<_> = read.try_collect().await.unwrap();
        assert_eq!(batches[1].places.of(1).to_string(), "the queue row 4");
        assert_eq!(batches[1].rows.column(0).as_ref(), &Int64Array::from(vec![1, 2]));
    }

    #[tokio::test]
    async fn a_batch_of_another_schema_is_refused() {
        let batch = ids(Arc::new(Int64Array::from(vec![1, 2])));
        let other = ids(Arc::new(Int32Array::from(vec![1])));
        let given = stream::iter([Ok(batch.clone()), Ok(other)]).boxed();
        let error = read("q".into(), batch.schema(), given).try_collect::<Vec<_>>().await.unwrap_err();
        assert_eq!(
            error.message(),
            "q: the batch at row 3 is not of the declared schema: column id is int, not bigint"
        );
    }
}
