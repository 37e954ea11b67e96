//! Whether two rows say the same.

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::buffer::BooleanBuffer;
use arrow::compute::SortOptions;
use arrow::compute::kernels::cmp::distinct;

use crate::error::{Error, Result};
use crate::prepare::keys::normal;

/// For each row, whether the two columns (of one type and length) hold different values there. A null equals a null,
/// 0.0 equals -0.0, any NaN any other; within nested values, floats are compared by their bits.
pub(crate) fn differing(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanBuffer> {
    let defect =
        |e| Error::internal(format!("values of the type {} could not be compared", left.data_type())).caused_by(e);
    if left.data_type().is_nested() {
        let compare = make_comparator(left, right, SortOptions::default()).map_err(defect)?;
        return Ok(BooleanBuffer::collect_bool(left.len(), |row| compare(row, row).is_ne()));
    }
    let (left, right) = (normal(left), normal(right));
    let different = distinct(&left, &right).map_err(defect)?;
    Ok(different.values().clone())
}

/// For each row, whether it differs between the two in any column; `rows` is how many there are.
pub(crate) fn any_differing(left: &[ArrayRef], right: &[ArrayRef], rows: usize) -> Result<BooleanBuffer> {
    let mut any = BooleanBuffer::new_unset(rows);
    for (left, right) in left.iter().zip(right) {
        any = &any | &differing(left, right)?;
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn flags(left: impl Array + 'static, right: impl Array + 'static) -> Vec<bool> {
        differing(&(Arc::new(left) as ArrayRef), &(Arc::new(right) as ArrayRef)).unwrap().iter().collect()
    }

    #[test]
    fn null_is_a_value_like_any_other() {
        let left = StringArray::from(vec![Some("a"), None, None, Some("")]);
        let right = StringArray::from(vec![Some("a"), None, Some(""), Some("b")]);
        assert_eq!(flags(left, right), [false, false, true, true]);
    }

    #[test]
    fn equal_floats_are_the_same() {
        let left = Float64Array::from(vec![0.0, f64::NAN, 1.0]);
        let right = Float64Array::from(vec![-0.0, -f64::NAN, f64::NAN]);
        assert_eq!(flags(left, right), [false, false, true]);
    }

    #[test]
    fn nested_values_are_compared_too() {
        let list = |rows| arrow::array::ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
        let left = list(vec![Some(vec![Some(1), None]), None, Some(vec![])]);
        let right = list(vec![Some(vec![Some(1), None]), Some(vec![]), Some(vec![])]);
        assert_eq!(flags(left, right), [false, true, false]);
    }
}
