use arrow::datatypes::DataType;

use crate::error::ErrorKind;
use crate::plan::fixture::{Table, field};

// Field report C04: reloading a full history writes only what is new, and touches no file that is there.
#[tokio::test]
async fn only_absent_keys_are_written() {
    let table = Table::of_versions().without_order();
    let known: Vec<_> = (0..1_000).map(|id| (id, "first", 1)).collect();
    let rows = table.versions(&known);
    let mut table = table.holding(rows).await;
    // The same keys with other content, and ten that are new.
    let reload: Vec<_> = (0..1_010).map(|id| (id, "second", 2)).collect();
    let change = table.insert(table.versions(&reload)).await.unwrap();
    assert_eq!((change.rows.inserted, change.rows.unchanged), (10, 1_000));
    assert_eq!((change.adds.len(), change.removes.len()), (1, 0));
    assert!(change.reads.files.contains("part-0.parquet"));
    let all = table.all().await;
    assert_eq!(all.iter().filter(|row| row.contains("second")).count(), 10);
    let again = table.insert(table.versions(&reload)).await.unwrap();
    assert_eq!((again.rows.inserted, again.adds.len()), (0, 0));
}

#[tokio::test]
async fn a_key_that_the_table_holds_twice_is_held() {
    let table = Table::of_versions().without_order();
    let rows = table.versions(&[(1, "a", 1), (1, "b", 1)]);
    let mut table = table.holding(rows).await;
    let change = table.insert(table.versions(&[(1, "c", 1), (2, "d", 1), (2, "d", 1)])).await.unwrap();
    assert_eq!((change.rows.inserted, change.rows.unchanged, change.rows.duplicates), (1, 1, 1));
}

#[tokio::test]
async fn two_rows_of_a_new_key_are_refused() {
    let mut table = Table::of_versions().without_order();
    let error = table.insert(table.versions(&[(2, "d", 1), (2, "e", 1)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.evidence(), ["id=2  source row 1 and row 2"]);
}

#[tokio::test]
async fn only_files_of_the_keys_partitions_are_read() {
    let fields = vec![field("p", DataType::Utf8), field("id", DataType::Int64)];
    let mut table = Table::new(fields, &["p"], &["p", "id"]);
    for partition in 0..40 {
        let p = format!("p{partition}");
        let rows = table.rows(&[&[&p, &p], &["1", "2"]]);
        table = table.holding(rows).await;
    }
    // Field report A22.
    let change = table.insert(table.rows(&[&["p3", "p7"], &["2", "3"]])).await.unwrap();
    assert_eq!((change.rows.inserted, change.rows.unchanged), (1, 1));
    assert_eq!((change.probed, change.pruned), (1, 39));
}
