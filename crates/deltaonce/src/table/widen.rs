//! An array as a data file holds it, in the type the table has for the column now.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use arrow::error::ArrowError;

/// `array` in the type `to`: the same, or one that the table's type has widened since the file was written.
/// Fields that a struct of the file lacks are null.
///
/// # Errors
/// Where a value of the file's type could be lost in the table's, and where a column that may not be null lacks values.
pub(crate) fn widen(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let from = array.data_type();
    if from == to {
        return Ok(array.clone());
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => Ok(Arc::new(widen_struct(array.as_struct(), fields)?)),
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = widen(list.values(), item.data_type())?;
            Ok(Arc::new(ListArray::try_new(item.clone(), list.offsets().clone(), values, list.nulls().cloned())?))
        }
        (DataType::Map(_, _), DataType::Map(entries, sorted)) => widen_map(array.as_map(), entries, *sorted),
        _ if widens(from, to) => cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() }),
        _ => Err(ArrowError::CastError(format!("the file holds {from} where the table has {to}"))),
    }
}

fn widen_struct(array: &StructArray, fields: &Fields) -> Result<StructArray, ArrowError> {
    let columns = fields
        .iter()
        .map(|field| match array.column_by_name(field.name()) {
            Some(column) => widen(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), array.len())),
        })
        .collect::<Result<Vec<_>, _>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())
}

fn widen_map(map: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(ArrowError::CastError(format!("a map has entries of the type {}", entries.data_type())));
    };
    // Keys and values go by their place: writers do not agree on their names.
    let columns = fields
        .iter()
        .zip(map.entries().columns())
        .map(|(field, column): (&Arc<Field>, _)| widen(column, field.data_type()))
        .collect::<Result<Vec<_>, _>>()?;
    let pairs = StructArray::try_new(fields.clone(), columns, map.entries().nulls().cloned())?;
    Ok(Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), pairs, map.nulls().cloned(), sorted)?))
}

/// Whether every value of the leaf type `from` is a value of `to`.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp, Utf8};
    let digits = |data_type: &DataType| match data_type {
        Int8 => Some((3, 0)),
        Int16 => Some((5, 0)),
        Int32 => Some((10, 0)),
        Int64 => Some((20, 0)),
        Decimal128(precision, scale) => Some((i16::from(*precision), i16::from(*scale))),
        _ => None,
    };
    match (from, to) {
        (Int8, Int16 | Int32 | Int64 | Float64)
        | (Int16, Int32 | Int64 | Float64)
        | (Int32, Int64 | Float64)
        | (Float32, Float64)
        | (Date32, Timestamp(TimeUnit::Microsecond, None)) => true,
        (_, Decimal128(precision, scale)) => digits(from).is_some_and(|(had, had_scale)| {
            let (precision, scale) = (i16::from(*precision), i16::from(*scale));
            scale >= had_scale && precision - scale >= had - had_scale
        }),
        // Text that its writer did not mark as text; the cast checks that it is UTF-8.
        (Binary, Utf8) => true,
        // A file without the mark "adjusted to UTC" in a timestamp column holds UTC all the same: the column's type is
        // the table's to say. Finer units than the table's are cut to it, as every reader of the table does.
        (Timestamp(_, None), Timestamp(TimeUnit::Microsecond, _)) => true,
        (Timestamp(_, Some(_)), Timestamp(TimeUnit::Microsecond, Some(_))) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray};

    use super::*;

    #[test]
    fn narrower_types_of_older_files_become_the_tables() {
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
        assert_eq!(
            widen(&ints, &DataType::Int64).unwrap().as_ref(),
            &Int64Array::from(vec![Some(7), None]) as &dyn Array
        );
        let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![125]).with_precision_and_scale(5, 2).unwrap());
        let wider = widen(&decimals, &DataType::Decimal128(12, 4)).unwrap();
        assert_eq!(wider.as_primitive::<arrow::datatypes::Decimal128Type>().value(0), 12_500);
    }

    #[test]
    fn a_type_that_could_lose_values_is_an_error() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
        let error = widen(&texts, &DataType::Int64).unwrap_err();
        assert!(error.to_string().contains("Utf8"), "{error}");
        let longs: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        assert!(widen(&longs, &DataType::Int32).is_err());
        assert!(widen(&longs, &DataType::Float64).is_err());
    }

    #[test]
    fn fields_that_a_struct_lacks_are_null() {
        let had: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let had: ArrayRef = Arc::new(StructArray::from(RecordBatch::try_from_iter([("b", had)]).unwrap()));
        let to = Fields::from(vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int64, true)]);
        let widened = widen(&had, &DataType::Struct(to)).unwrap();
        let widened = widened.as_struct();
        assert_eq!(widened.column(0).null_count(), 2);
        assert_eq!(widened.column(1).as_primitive::<arrow::datatypes::Int64Type>().values(), &[1, 2]);
    }
}
