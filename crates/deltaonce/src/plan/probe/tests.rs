use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::plan::fixture::Table;
use crate::plan::merge;
use crate::plan::probe::Probes;

fn rows(range: std::ops::Range<i64>, value: &str, version: i64) -> Vec<(i64, &str, i64)> {
    range.map(|id| (id, value, version)).collect()
}

#[tokio::test]
async fn planning_again_reads_only_files_that_came_since() {
    let table = Table::of_versions();
    let old = table.versions(&rows(0..1_000, "old", 1));
    let mut table = table.holding(old).await;
    let source = table.source(&[table.versions(&[(1, "new", 2), (2_000, "new", 2)])]).await.unwrap();
    let (revision, probes) = (table.revision(&source).unwrap(), Probes::default());
    merge::plan(&table.target(), &source, &revision, &probes, &table).await.unwrap();
    // Another writer adds the other key.
    let theirs = table.versions(&[(2_000, "theirs", 3)]);
    table = table.holding(theirs).await;
    let change = merge::plan(&table.target(), &source, &revision, &probes, &table).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.stale, change.rows.inserted), (1, 1, 0));
    assert_eq!(change.probed, 2);
    let file = table.files[0].clone();
    assert!(probes.known(&file, &source).is_some_and(|found| found.is_some()));
    // Its first file would not be there any more, but is not read again either where no row of it is to be written.
    let stale = table.source(&[table.versions(&[(1, "older", 0), (2_000, "older", 0)])]).await.unwrap();
    let probes = Probes::default();
    for gone in [false, true] {
        if gone {
            table.store.delete(&Path::from(table.files[0].path.as_str())).await.unwrap();
        }
        let change = merge::plan(&table.target(), &stale, &revision, &probes, &table).await.unwrap();
        assert_eq!(change.rows.stale, 2);
    }
}

#[tokio::test]
async fn keys_that_a_small_file_settles_are_looked_for_no_further() {
    let table = Table::of_versions();
    let old = table.versions(&rows(0..1_000, "old", 1));
    let table = table.holding(old).await;
    let recent = table.versions(&[(5_000, "a", 7), (5_001, "b", 7)]);
    let mut table = table.holding(recent).await;
    // Both keys are in the range of a large file, which is not even there.
    table.files[0].stats = None;
    table.files[0].path = "gone.parquet".to_owned();
    let settled = table.source(&[table.versions(&[(5_000, "a", 7), (5_001, "older", 6)])]).await.unwrap();
    table.files[0].stats =
        Some(r#"{"numRecords":1000,"minValues":{"id":0},"maxValues":{"id":9000},"nullCount":{"id":0}}"#.to_owned());
    let plan = async |source| {
        merge::plan(&table.target(), &source, &table.revision(&source).unwrap(), &Probes::default(), &table).await
    };
    let change = plan(settled).await.unwrap();
    assert_eq!((change.rows.unchanged, change.rows.stale, change.probed, change.pruned), (1, 1, 1, 1));
    // One that is to be updated is looked for everywhere: the table may hold it twice.
    let newer = table.source(&[table.versions(&[(5_000, "A", 8)])]).await.unwrap();
    let error = plan(newer).await.unwrap_err();
    assert!(error.message().contains("gone.parquet"), "{error}");
}
