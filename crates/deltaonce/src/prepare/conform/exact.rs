//! Numbers and times in another unit or scale, to the last digit; the errors are rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Int64Array, TimestampMicrosecondArray};
use arrow::compute;
use arrow::datatypes::{
    DataType, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Int64Type, TimeUnit, UInt64Type,
};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Integers or decimals as `decimal(precision, scale)`.
pub(super) fn decimal(array: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef, usize> {
    let from = decimal_scale(array.data_type());
    let at = whole_numbers(array).ok_or(0_usize)?;
    let limit = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        if array.is_null(row) {
            values.push(0);
            continue;
        }
        let value = at(row).and_then(|value| rescale(value, from, scale));
        values.push(value.filter(|value| value.unsigned_abs() < limit.unsigned_abs()).ok_or(row)?);
    }
    let array = Decimal128Array::new(values.into(), array.nulls().cloned());
    array.with_precision_and_scale(precision, scale).map(|array| Arc::new(array) as _).map_err(|_| 0)
}

fn decimal_scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

/// The unscaled number at each row, where 128 bits hold it; `None` for an array of anything else.
fn whole_numbers(array: &ArrayRef) -> Option<Box<dyn Fn(usize) -> Option<i128> + '_>> {
    Some(match array.data_type() {
        DataType::Decimal32(..) => {
            let numbers = array.as_primitive_opt::<Decimal32Type>()?;
            Box::new(move |row| Some(numbers.value(row).into()))
        }
        DataType::Decimal64(..) => {
            let numbers = array.as_primitive_opt::<Decimal64Type>()?;
            Box::new(move |row| Some(numbers.value(row).into()))
        }
        DataType::Decimal128(..) => {
            let numbers = array.as_primitive_opt::<Decimal128Type>()?;
            Box::new(move |row| Some(numbers.value(row)))
        }
        DataType::Decimal256(..) => {
            let numbers = array.as_primitive_opt::<Decimal256Type>()?;
            Box::new(move |row| numbers.value(row).to_i128())
        }
        DataType::UInt64 => {
            let numbers = array.as_primitive_opt::<UInt64Type>()?;
            Box::new(move |row| Some(numbers.value(row).into()))
        }
        other if other.is_integer() => {
            let numbers = compute::cast(array, &DataType::Int64).ok()?;
            let numbers = numbers.as_primitive_opt::<Int64Type>()?.clone();
            Box::new(move |row| Some(numbers.value(row).into()))
        }
        _ => return None,
    })
}

/// `value` units of 10^-`from` in units of 10^-`to`, if that is a whole number of them.
fn rescale(value: i128, from: i8, to: i8) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let shift = i16::from(to) - i16::from(from);
    let factor = 10_i128.checked_pow(u32::from(shift.unsigned_abs()))?;
    if shift >= 0 { value.checked_mul(factor) } else { (value % factor == 0).then(|| value / factor) }
}

/// Refuses integers that a float or double does not hold exactly.
pub(super) fn refuse_inexact_floats(array: &ArrayRef, target: &DataType) -> Result<(), usize> {
    let limit = if *target == DataType::Float32 { 1_u128 << 24 } else { 1_u128 << 53 };
    let at = whole_numbers(array).ok_or(0_usize)?;
    let inexact = |row: &usize| array.is_valid(*row) && at(*row).is_none_or(|value| value.unsigned_abs() > limit);
    (0..array.len()).find(inexact).map_or(Ok(()), Err)
}

/// Dates in milliseconds as dates in days.
pub(super) fn days(array: &ArrayRef) -> Result<ArrayRef, usize> {
    let millis = array.as_primitive_opt::<Date64Type>().ok_or(0_usize)?;
    let mut days = Vec::with_capacity(millis.len());
    for row in 0..millis.len() {
        let millis = if millis.is_null(row) { 0 } else { millis.value(row) };
        let day = (millis % MILLIS_PER_DAY == 0).then_some(millis / MILLIS_PER_DAY);
        days.push(day.and_then(|day| i32::try_from(day).ok()).ok_or(row)?);
    }
    Ok(Arc::new(Date32Array::new(days.into(), array.nulls().cloned())))
}

/// Timestamps of any unit in microseconds, with `zone` on them; the instants stay as they are.
pub(super) fn micros(array: &ArrayRef, unit: TimeUnit, zone: Option<Arc<str>>) -> Result<ArrayRef, usize> {
    let numbers = compute::cast(array, &DataType::Int64).map_err(|_| 0_usize)?;
    let numbers: &Int64Array = numbers.as_primitive_opt().ok_or(0_usize)?;
    let convert = |number: i64| match unit {
        TimeUnit::Second => number.checked_mul(1_000_000),
        TimeUnit::Millisecond => number.checked_mul(1000),
        TimeUnit::Microsecond => Some(number),
        TimeUnit::Nanosecond => (number % 1000 == 0).then_some(number / 1000),
    };
    let values = if unit == TimeUnit::Microsecond {
        numbers.values().clone()
    } else {
        let mut values = Vec::with_capacity(numbers.len());
        for (row, number) in numbers.values().iter().enumerate() {
            values.push(if numbers.is_null(row) { 0 } else { convert(*number).ok_or(row)? });
        }
        values.into()
    };
    Ok(Arc::new(TimestampMicrosecondArray::new(values, array.nulls().cloned()).with_timezone_opt(zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescales_only_exactly() {
        assert_eq!(rescale(150, 2, 1), Some(15));
        assert_eq!(rescale(151, 2, 1), None);
        assert_eq!(rescale(-15, 1, 3), Some(-1500));
        assert_eq!(rescale(3, -2, 0), Some(300));
        assert_eq!(rescale(i128::MAX, 0, 1), None);
        assert_eq!(rescale(0, 0, 38), Some(0));
        assert_eq!(rescale(1, -100, 38), None);
    }
}
