use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Fields;

use super::*;

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn digest<const N: usize>(columns: [(&str, ArrayRef); N]) -> u64 {
    RowsDigest::of(&batch(columns)).unwrap().bits()
}

fn ids(ids: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(ids.to_vec()))
}

fn names(names: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

#[test]
fn order_and_batching_and_absent_columns_do_not_matter() {
    let whole = digest([("id", ids(&[1, 2, 2])), ("name", names(&[Some("a"), None, None]))]);
    assert_eq!(whole, digest([("name", names(&[None, Some("a"), None])), ("id", ids(&[2, 1, 2]))]));
    let mut parts = RowsDigest::of(&batch([("id", ids(&[2, 2]))])).unwrap();
    parts += RowsDigest::of(&batch([("name", names(&[Some("a")])), ("id", ids(&[1]))])).unwrap();
    assert_eq!(whole, parts.bits());
}

#[test]
fn values_and_their_columns_rows_and_number_do() {
    let rows = digest([("id", ids(&[1, 2])), ("name", names(&[Some("a"), Some("b")]))]);
    let others = [
        digest([("id", ids(&[2, 1])), ("name", names(&[Some("a"), Some("b")]))]),
        digest([("id", ids(&[1, 2])), ("eman", names(&[Some("a"), Some("b")]))]),
        digest([("id", ids(&[1, 2])), ("name", names(&[Some("a"), Some("")]))]),
        digest([("id", ids(&[1, 2])), ("name", names(&[Some("a"), None]))]),
        digest([("id", ids(&[1, 1, 2, 2])), ("name", names(&[Some("a"), Some("a"), Some("b"), Some("b")]))]),
        digest([("id", ids(&[]))]),
    ];
    for other in others {
        assert_ne!(rows, other);
    }
    let swapped = |one: i64, other: i64| digest([("a", ids(&[one])), ("b", ids(&[other]))]);
    assert_ne!(swapped(1, 2), swapped(2, 1));
}

#[test]
fn a_wider_type_says_the_same() {
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![7, -1]));
    assert_eq!(digest([("n", narrow)]), digest([("n", ids(&[7, -1]))]));
    let float: ArrayRef = Arc::new(Float32Array::from(vec![0.5, -0.0, f32::NAN]));
    let double: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.0, -f64::NAN]));
    assert_eq!(digest([("f", float)]), digest([("f", double)]));

    let decimals = |unscaled: &[i128], precision, scale| -> ArrayRef {
        let decimals = Decimal128Array::from(unscaled.to_vec());
        Arc::new(decimals.with_precision_and_scale(precision, scale).unwrap())
    };
    assert_eq!(digest([("d", decimals(&[-1250, 300], 10, 2))]), digest([("d", decimals(&[-125_000, 30_000], 12, 4))]));
    assert_ne!(digest([("d", decimals(&[125], 10, 2))]), digest([("d", decimals(&[125], 10, 1))]));
    assert_eq!(digest([("n", ids(&[7, -1]))]), digest([("n", decimals(&[700, -100], 20, 2))]));
    assert_eq!(
        digest([("n", ids(&[7, -1]))]),
        digest([("n", Arc::new(Float64Array::from(vec![7.0, -1.0])) as ArrayRef)])
    );
    let days: ArrayRef = Arc::new(Date32Array::from(vec![20_000, -1]));
    let midnights = TimestampMicrosecondArray::from(vec![20_000 * MICROS_A_DAY, -MICROS_A_DAY]);
    assert_eq!(digest([("t", days)]), digest([("t", Arc::new(midnights) as ArrayRef)]));
}

#[test]
fn a_slice_of_lists_is_only_its_own_items() {
    let lists = (0..40).map(|row| Some((0..row % 4).map(Some).collect::<Vec<_>>()));
    let whole = batch([("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)) as ArrayRef)]);
    let mut parts = RowsDigest::default();
    for start in [0, 10, 20, 30] {
        parts += RowsDigest::of(&whole.slice(start, 10)).unwrap();
    }
    assert_eq!(parts, RowsDigest::of(&whole).unwrap());
}

#[test]
fn within_nested_values_places_and_nulls_matter() {
    let lists = |lists: Vec<Option<Vec<Option<i32>>>>| -> u64 {
        digest([("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)) as ArrayRef)])
    };
    let all = [
        lists(vec![None]),
        lists(vec![Some(vec![])]),
        lists(vec![Some(vec![None])]),
        lists(vec![Some(vec![Some(1), Some(2)])]),
        lists(vec![Some(vec![Some(2), Some(1)])]),
        lists(vec![Some(vec![Some(1)]), Some(vec![Some(2)])]),
    ];
    let structs = |valid: bool, a: Option<i64>| {
        let fields: Fields = vec![Field::new("a", DataType::Int64, true)].into();
        let values: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![a]))];
        digest([("s", Arc::new(StructArray::new(fields, values, Some(vec![valid].into()))) as ArrayRef)])
    };
    let all = all.into_iter().chain([structs(true, Some(1)), structs(true, None)]);
    let distinct: std::collections::BTreeSet<u64> = all.chain([digest([("a", ids(&[1]))])]).collect();
    assert_eq!(distinct.len(), 9);
    assert_eq!(structs(false, Some(1)), structs(false, None), "what a null hides does not matter");
}

#[test]
fn logs_hold_digests_so_they_never_change() {
    let columns: [(&str, ArrayRef); 11] = [
        ("id", ids(&[1])),
        ("name", names(&[Some("Zoë")])),
        ("paid", Arc::new(BooleanArray::from(vec![true]))),
        ("amount", Arc::new(Decimal128Array::from(vec![-1234]).with_precision_and_scale(12, 2).unwrap())),
        ("rate", Arc::new(Float64Array::from(vec![0.25]))),
        ("small", Arc::new(Float32Array::from(vec![1.5e-3]))),
        ("odd", Arc::new(Float64Array::from(vec![f64::NAN]))),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![&[0, 255]]))),
        ("tags", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]))),
        ("day", Arc::new(Date32Array::from(vec![20_000]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![1_790_000_000_000_000]).with_timezone("UTC"))),
    ];
    assert_eq!(digest(columns), 777_679_954_596_730_352);
}
