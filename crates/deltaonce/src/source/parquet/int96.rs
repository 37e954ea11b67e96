//! Timestamps of the old 96-bit kind, which Spark, Hive and Impala write.
//!
//! They hold nanoseconds over a range of years that 64 bits of nanoseconds do not, and the Parquet crate wraps or cuts
//! them without a word. So they are read in microseconds, which hold all years, and once more in wrapping nanoseconds:
//! the difference is exactly the digits that microseconds lose, whatever the year.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use arrow::datatypes::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type;

use crate::error::{Error, Result};
use crate::source::{Place, Unit};

/// The file's schema with its 96-bit timestamps in microseconds and in nanoseconds; `None` where it has none.
///
/// They count as instants (Spark's and Hive's readers and writers agree on UTC), unless the file's own Arrow schema
/// says that they are wall-clock times.
pub(super) fn schemas(file: &ArrowReaderMetadata) -> Option<(SchemaRef, SchemaRef)> {
    let leaves: Vec<bool> =
        file.parquet_schema().columns().iter().map(|column| column.physical_type() == Type::INT96).collect();
    if !leaves.contains(&true) {
        return None;
    }
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let says_zones = pairs.is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY));
    let with = |unit| {
        let mut leaves = leaves.iter().copied();
        let fields = fields_with(file.schema().fields(), &mut leaves, unit, says_zones);
        Schema::new_with_metadata(fields, file.schema().metadata().clone()).into()
    };
    Some((with(TimeUnit::Microsecond), with(TimeUnit::Nanosecond)))
}

/// Those of the top-level `columns` that hold 96-bit timestamps.
pub(super) fn columns(file: &ArrowReaderMetadata, columns: &[usize]) -> Vec<usize> {
    let parquet = file.parquet_schema();
    let holds = |root: &usize| {
        (0..parquet.num_columns()).any(|leaf| {
            parquet.get_column_root_idx(leaf) == *root && parquet.column(leaf).physical_type() == Type::INT96
        })
    };
    columns.iter().copied().filter(holds).collect()
}

/// Refuses rows whose 96-bit timestamps have digits below the microsecond; `read` rows stood before the batches.
pub(super) fn refuse_lost_digits(name: &Arc<str>, read: u64, micros: &RecordBatch, nanos: &RecordBatch) -> Result<()> {
    for (field, exact) in nanos.schema().fields().iter().zip(nanos.columns()) {
        let Some(cut) = micros.column_by_name(field.name()) else { continue };
        if !loses(cut, exact) {
            continue;
        }
        let row = (0..exact.len()).find(|row| loses(&cut.slice(*row, 1), &exact.slice(*row, 1))).unwrap_or_default();
        let place = Place { source: name.clone(), unit: Unit::Row, number: read + row as u64 + 1 };
        return Err(Error::refused(format!(
            "{place}: column {}: a timestamp with digits below the microsecond does not fit timestamp",
            field.name()
        )));
    }
    Ok(())
}

fn loses(micros: &ArrayRef, nanos: &ArrayRef) -> bool {
    match nanos.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let (Some(micros), Some(nanos)) = (
                micros.as_primitive_opt::<TimestampMicrosecondType>(),
                nanos.as_primitive_opt::<TimestampNanosecondType>(),
            ) else {
                return false;
            };
            micros.iter().zip(nanos.iter()).any(|pair| match pair {
                (Some(micros), Some(nanos)) => nanos.wrapping_sub(micros.wrapping_mul(1000)) != 0,
                _ => false,
            })
        }
        DataType::Struct(_) => {
            let (micros, nanos) = (micros.as_struct(), nanos.as_struct());
            micros.columns().iter().zip(nanos.columns()).any(|(micros, nanos)| loses(micros, nanos))
        }
        DataType::List(_) => loses_within(micros.as_list::<i32>(), nanos.as_list::<i32>()),
        DataType::LargeList(_) => loses_within(micros.as_list::<i64>(), nanos.as_list::<i64>()),
        DataType::Map(..) => {
            let (micros, nanos) = (micros.as_map(), nanos.as_map());
            let range = |offsets: &[i32]| (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
            let (start, end) = range(nanos.value_offsets());
            let (start, length) = (start.unsigned_abs() as usize, (end - start).unsigned_abs() as usize);
            let (micros, nanos) = (micros.entries().slice(start, length), nanos.entries().slice(start, length));
            micros.columns().iter().zip(nanos.columns()).any(|(micros, nanos)| loses(micros, nanos))
        }
        _ => false,
    }
}

fn loses_within<O: arrow::array::OffsetSizeTrait>(
    micros: &arrow::array::GenericListArray<O>,
    nanos: &arrow::array::GenericListArray<O>,
) -> bool {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    let offsets = nanos.value_offsets();
    let (start, end) = (at(offsets.first()), at(offsets.last()));
    loses(&micros.values().slice(start, end - start), &nanos.values().slice(start, end - start))
}

fn fields_with(fields: &Fields, leaves: &mut impl Iterator<Item = bool>, unit: TimeUnit, says_zones: bool) -> Fields {
    fields.iter().map(|field| field_with(field, leaves, unit, says_zones)).collect()
}

fn field_with(field: &FieldRef, leaves: &mut impl Iterator<Item = bool>, unit: TimeUnit, says_zones: bool) -> FieldRef {
    let mut inner = |field: &FieldRef| field_with(field, leaves, unit, says_zones);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields_with(fields, leaves, unit, says_zones)),
        DataType::List(element) => DataType::List(inner(element)),
        DataType::LargeList(element) => DataType::LargeList(inner(element)),
        DataType::FixedSizeList(element, length) => DataType::FixedSizeList(inner(element), *length),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => match (leaves.next(), other) {
            (Some(true), DataType::Timestamp(_, zone)) if says_zones => DataType::Timestamp(unit, zone.clone()),
            (Some(true), _) => DataType::Timestamp(unit, Some("UTC".into())),
            _ => other.clone(),
        },
    };
    let field: &Field = field;
    Arc::new(field.clone().with_data_type(data_type))
}
