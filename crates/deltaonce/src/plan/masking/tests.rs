use crate::plan::fixture::Table;

fn rows(range: std::ops::Range<i64>, value: &str, version: i64) -> Vec<(i64, &str, i64)> {
    range.map(|id| (id, value, version)).collect()
}

#[tokio::test]
async fn few_updated_rows_are_masked_and_written_apart() {
    let table = Table::of_versions().masking();
    let (one, two) = (table.versions(&rows(0..100, "old", 1)), table.versions(&rows(100..200, "old", 1)));
    let mut table = table.holding(one).await.holding(two).await;
    let change = table.merge(table.versions(&[(7, "new", 2), (150, "new", 2), (500, "new", 2)])).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.inserted), (2, 1));
    assert_eq!((change.adds.len(), change.removes.len(), change.masks.len(), change.copied), (1, 0, 2, 0));
    let vectors: Vec<_> =
        change.masks.iter().map(|mask| mask.masked.deletion_vector.as_ref().unwrap().cardinality).collect();
    assert_eq!(vectors, [1, 1]);
    assert_eq!(change.staged().len(), 2, "one data file, and one file with both vectors");
    let all = table.all().await;
    assert_eq!(all.len(), 201);
    assert_eq!(all.iter().filter(|row| row.ends_with("|new|2")).count(), 3);

    // A file that is masked already gets one vector for all its masked rows, and its rows are found where they now are.
    let change = table.merge(table.versions(&[(7, "newer", 3), (8, "newer", 3), (150, "new", 2)])).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.unchanged), (2, 1));
    let mut masked: Vec<_> =
        change.masks.iter().map(|mask| mask.masked.deletion_vector.as_ref().unwrap().cardinality).collect();
    masked.sort_unstable();
    assert_eq!(masked, [1, 2]);
    assert_eq!(table.all().await.len(), 201);
    assert!(table.merge(table.versions(&[(7, "newer", 3), (8, "newer", 3)])).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_with_no_row_left_goes_and_one_with_few_is_written_again() {
    let table = Table::of_versions().masking();
    let (one, two) = (table.versions(&rows(0..10, "old", 1)), table.versions(&rows(10..20, "old", 1)));
    let mut table = table.holding(one).await.holding(two).await;
    let change = table.merge(table.versions(&rows(0..5, "new", 2))).await.unwrap();
    assert_eq!((change.masks.len(), change.removes.len(), change.adds.len()), (1, 0, 1), "half may be masked");
    let change = table.merge(table.versions(&rows(5..16, "new", 2))).await.unwrap();
    assert_eq!((change.masks.len(), change.removes.len(), change.copied), (0, 2, 4));
    assert_eq!(table.all().await.iter().filter(|row| row.ends_with("|new|2")).count(), 16);
    assert_eq!(table.all().await.len(), 20);
}

#[tokio::test]
async fn masked_rows_are_no_rows_also_where_files_are_written_again() {
    let table = Table::of_versions().masking();
    let old = table.versions(&rows(0..100, "old", 1));
    let mut table = table.holding(old).await;
    table.merge(table.versions(&rows(0..3, "new", 2))).await.unwrap();
    let mut table = table.rewriting();
    let change = table.merge(table.versions(&[(50, "newer", 3)])).await.unwrap();
    assert_eq!((change.masks.len(), change.removes.len(), change.copied), (0, 1, 96));
    assert_eq!(table.all().await.len(), 100);
    // An insert does not take a masked row for one that holds its key.
    let change = table.insert(table.versions(&rows(0..101, "x", 9))).await.unwrap();
    assert_eq!((change.rows.inserted, change.rows.unchanged), (1, 100));
}
