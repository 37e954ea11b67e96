use proptest::prelude::*;

use super::*;
use crate::plan::fixture::Table;

/// What differs, as `-id` for rows that only `before` has and `+id` for those that only `after` has; sorted.
async fn differing(before: &[Vec<i64>], after: &[Vec<i64>], memory: u64) -> Vec<String> {
    let mut table = Table::of_versions();
    for ids in before.iter().chain(after) {
        let rows: Vec<_> = ids.iter().map(|id| (*id, "v", 1)).collect();
        let rows = table.versions(&rows);
        table = table.holding(rows).await;
    }
    let mut open = Vec::new();
    for file in &table.files {
        let file = Arc::new(OpenFile::open(table.store.clone(), &table.schema, file).await.unwrap());
        open.push(Part { file, places: None });
    }
    let after = open.split_off(before.len());
    let mut changes = difference(open, after, memory).unwrap();
    let mut told = Vec::new();
    while let Some((side, rows)) = changes.try_next().await.unwrap() {
        let ids = rows.column(0).clone();
        let ids = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&ids);
        let sign = if side == Side::Before { '-' } else { '+' };
        told.extend(ids.values().iter().map(|id| format!("{sign}{id}")));
    }
    told.sort();
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_that_both_have_cancel_as_often_as_they_do(
        before in prop::collection::vec(prop::collection::vec(0_i64..6, 1..6), 0..3),
        after in prop::collection::vec(prop::collection::vec(0_i64..6, 1..6), 0..3),
        held in 0_u64..8,
    ) {
        let mut expected = Vec::new();
        for id in 0..6 {
            let count = |bag: &[Vec<i64>]| bag.iter().flatten().filter(|row| **row == id).count();
            let (gone, come) = (count(&before), count(&after));
            expected.extend(std::iter::repeat_n(format!("-{id}"), gone.saturating_sub(come)));
            expected.extend(std::iter::repeat_n(format!("+{id}"), come.saturating_sub(gone)));
        }
        expected.sort();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(differing(&before, &after, held * BYTES_A_ROW)), expected);
    }
}
