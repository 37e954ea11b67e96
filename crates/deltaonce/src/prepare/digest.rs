//! A number of a bag of rows that can be kept in a log: it depends on nothing but the rows' values and their columns'
//! names.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType,
};
use twox_hash::XxHash3_128;

use crate::error::{Error, Result};

/// The digest of a bag of rows: the same whatever their order and that of their columns, however they are cut into
/// batches, and whether a column is null or absent. A value has the digest of what it becomes when its column's type is
/// widened (protocol, "Type Widening"); 0.0 has that of -0.0, and one NaN that of any other.
///
/// It tells mistakes apart, not attacks: whoever means to can make two bags of one digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowsDigest {
    rows: u64,
    sum: u64,
}

impl std::ops::AddAssign for RowsDigest {
    fn add_assign(&mut self, other: Self) {
        self.rows = self.rows.wrapping_add(other.rows);
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl RowsDigest {
    /// The digest of a batch in a table's columns and types.
    ///
    /// # Errors
    /// `Internal` for a type that no table has.
    pub(crate) fn of(batch: &RecordBatch) -> Result<Self> {
        let mut rows = vec![0_u64; batch.num_rows()];
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            add(&mut rows, &hashes(column, named(0, field))?);
        }
        // Each row is mixed before rows are summed, so that values cannot move between rows unseen.
        let sum = rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(mixed(*row ^ ROW)));
        Ok(Self { rows: rows.len() as u64, sum })
    }

    /// Its 64 bits.
    pub(crate) fn bits(self) -> u64 {
        mixed(self.sum ^ mixed(self.rows ^ BAG))
    }
}

// Odd numbers without a pattern (digits of pi); what is kept in logs rests on them.
const VALUE: u64 = 0x243f_6a88_85a3_08d3;
const ROW: u64 = 0x1319_8a2e_0370_7345;
const BAG: u64 = 0xa409_3822_299f_31d1;
/// Any NaN, whose own bits differ between machines.
const NAN: u64 = 0x7ff8_0000_0000_0000;
const MICROS_A_DAY: i64 = 86_400_000_000;
const ITEM: u64 = 0x082e_fa98_ec4e_6c89;

/// Every bit of the result depends on every bit of `bits`.
fn mixed(bits: u64) -> u64 {
    let (low, high) = (bits ^ VALUE, bits.rotate_left(32) ^ ITEM);
    let wide = (u128::from(low) * u128::from(BAG)) ^ (u128::from(high) * u128::from(ROW));
    let folded = (wide as u64) ^ ((wide >> 64) as u64);
    (folded ^ (folded >> 29)).wrapping_mul(BAG)
}

/// The seed of a field's values, within those of `parent`.
fn named(parent: u64, field: &Field) -> u64 {
    mixed(parent ^ bytes(field.name().as_bytes()))
}

fn bytes(bytes: &[u8]) -> u64 {
    XxHash3_128::oneshot(bytes) as u64
}

fn add(sums: &mut [u64], hashes: &[u64]) {
    sums.iter_mut().zip(hashes).for_each(|(sum, hash)| *sum = sum.wrapping_add(*hash));
}

/// A hash of each value; 0 for a null.
fn hashes(array: &dyn Array, seed: u64) -> Result<Vec<u64>> {
    let mut hashes = match array.data_type() {
        DataType::Null => vec![0; array.len()],
        DataType::Boolean => array.as_boolean().values().iter().map(|value| mixed(seed ^ u64::from(value))).collect(),
        DataType::Int8 => integers::<Int8Type>(array, seed, 1),
        DataType::Int16 => integers::<Int16Type>(array, seed, 1),
        DataType::Int32 => integers::<Int32Type>(array, seed, 1),
        DataType::Int64 => integers::<Int64Type>(array, seed, 1),
        DataType::Date32 => integers::<Date32Type>(array, seed, MICROS_A_DAY),
        DataType::Timestamp(TimeUnit::Microsecond, _) => integers::<TimestampMicrosecondType>(array, seed, 1),
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().values().iter().map(|value| float(f64::from(*value), seed)).collect()
        }
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().values().iter().map(|value| float(*value, seed)).collect()
        }
        DataType::Decimal128(_, scale) => {
            array.as_primitive::<Decimal128Type>().values().iter().map(|value| decimal(*value, *scale, seed)).collect()
        }
        DataType::Utf8 => texts(array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes)), seed),
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter().map(|text| text.map(str::as_bytes)), seed),
        DataType::Utf8View => texts(array.as_string_view().iter().map(|text| text.map(str::as_bytes)), seed),
        DataType::Binary => texts(array.as_binary::<i32>().iter(), seed),
        DataType::LargeBinary => texts(array.as_binary::<i64>().iter(), seed),
        DataType::BinaryView => texts(array.as_binary_view().iter(), seed),
        DataType::Struct(fields) => {
            let mut sums = vec![mixed(seed); array.len()];
            for (field, values) in fields.iter().zip(array.as_struct().columns()) {
                add(&mut sums, &self::hashes(values, named(seed, field))?);
            }
            sums.into_iter().map(mixed).collect()
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            lists(list.value_offsets(), list.values(), seed)?
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            lists(list.value_offsets(), list.values(), seed)?
        }
        DataType::Map(..) => {
            let map = array.as_map();
            lists(map.value_offsets(), map.entries(), seed)?
        }
        other => return Err(Error::internal(format!("rows with values of the type {other} have no digest"))),
    };
    if let Some(nulls) = array.logical_nulls() {
        hashes.iter_mut().zip(nulls.iter()).filter(|(_, valid)| !valid).for_each(|(hash, _)| *hash = 0);
    }
    Ok(hashes)
}

fn integers<T>(array: &dyn Array, seed: u64, unit: i64) -> Vec<u64>
where
    T: ArrowPrimitiveType<Native: Into<i64>>,
{
    let values = array.as_primitive::<T>().values().iter();
    values.map(|value| integer((*value).into().wrapping_mul(unit), seed)).collect()
}

fn integer(value: i64, seed: u64) -> u64 {
    mixed(seed ^ value.cast_unsigned())
}

fn float(value: f64, seed: u64) -> u64 {
    // A double holds every integer below this one, so that widened integers are told from each other.
    const INTEGERS: f64 = 9_007_199_254_740_992.0;
    if value.is_nan() {
        return mixed(seed ^ NAN);
    }
    if value.fract() == 0.0 && value.abs() < INTEGERS {
        return integer(value as i64, seed);
    }
    mixed(seed ^ value.to_bits())
}

fn decimal(mut unscaled: i128, mut scale: i8, seed: u64) -> u64 {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    match i64::try_from(unscaled) {
        Ok(value) if scale == 0 => integer(value, seed),
        _ => mixed(seed ^ unscaled as u64 ^ mixed((unscaled >> 64) as u64 ^ mixed(ITEM ^ scale as u64))),
    }
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a [u8]>>, seed: u64) -> Vec<u64> {
    texts.map(|text| text.map_or(0, |text| mixed(seed ^ bytes(text)))).collect()
}

/// The hash of each list, of which `offsets` say where in `values` its items begin; other values are not looked at.
fn lists<O: Copy + TryInto<usize>>(offsets: &[O], values: &dyn Array, seed: u64) -> Result<Vec<u64>> {
    let place = |offset: Option<&O>| offset.and_then(|offset| (*offset).try_into().ok()).unwrap_or_default();
    let (first, last) = (place(offsets.first()), place(offsets.last()));
    let items = hashes(&values.slice(first, last - first), mixed(seed))?;
    let list = |ends: &[O]| {
        let items = items.get(place(ends.first()) - first..place(ends.last()) - first).unwrap_or_default();
        items.iter().fold(mixed(seed ^ items.len() as u64), |hash, item| mixed(hash.rotate_left(1) ^ *item))
    };
    Ok(offsets.windows(2).map(list).collect())
}

#[cfg(test)]
mod tests;
