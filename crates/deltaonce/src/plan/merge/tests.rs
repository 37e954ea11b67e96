use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, TimeUnit};

use crate::error::ErrorKind;
use crate::load::NullKeys;
use crate::plan::Change;
use crate::plan::fixture::{Table, field, texts, utc};
use crate::plan::probe::Probes;

fn is_unchanged(change: &Change) -> bool {
    change.is_empty()
}

fn numbered(count: i64, value: &str, version: i64) -> Vec<(i64, &str, i64)> {
    (0..count).map(|id| (id, value, version)).collect()
}

// Field report A16: no size of file makes unique keys ambiguous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unique_keys_stay_unique_at_any_size_of_file() {
    for count in [8_192, 8_193, 100_000] {
        let table = Table::of_versions();
        let rows = table.versions(&numbered(count, "a", 1));
        let mut table = table.holding(rows.clone()).await;
        for _ in 0..2 {
            let change = table.merge(rows.clone()).await.unwrap();
            assert!(is_unchanged(&change));
            assert_eq!(change.rows.unchanged, count as u64);
        }
        let newer = table.versions(&numbered(count, "b", 2));
        let change = table.merge(newer).await.unwrap();
        assert_eq!((change.rows.updated, change.removes.len()), (count as u64, 1));
        assert!(table.all().await.iter().all(|row| row.ends_with("|b|2")));
    }
}

// Field report A18: files that no key is in are neither read nor written; count of rows before plus inserts is after.
#[tokio::test]
async fn only_files_with_an_updated_row_are_rewritten() {
    let mut table = Table::of_versions();
    for start in (0..120).step_by(10) {
        let rows: Vec<_> = (start..start + 10).map(|id| (id, "old", 1)).collect();
        let rows = table.versions(&rows);
        table = table.holding(rows).await;
    }
    let before: BTreeSet<String> = table.files.iter().map(|file| file.path.clone()).collect();
    // 35..45 overlaps two files; 95 is only probed, since the row there is the same; 500 is new.
    let mut rows: Vec<_> = (35..45).map(|id| (id, "new", 2)).collect();
    rows.extend([(95, "old", 1), (500, "new", 1)]);
    let change = table.merge(table.versions(&rows)).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.inserted, change.rows.unchanged), (10, 1, 1));
    assert_eq!((change.removes.len(), change.probed, change.pruned), (2, 3, 9));
    assert_eq!(change.reads.files.len(), 3);
    let after: BTreeSet<String> = table.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(before.intersection(&after).count(), 10);
    let all = table.all().await;
    assert_eq!(all.len(), 121);
    assert_eq!(all.iter().filter(|row| row.contains("|new|")).count(), 11);
    // A row that is replaced stays where it stood.
    let rewritten = table.rows_of(&change.adds[0]).await;
    assert_eq!(rewritten.first().map(String::as_str), Some("30|old|1"));
    assert_eq!(rewritten.last().map(String::as_str), Some("39|new|2"));
}

// Field report C03, and the guard: an older row never wins, an equally new one with other content is counted and kept.
#[tokio::test]
async fn older_and_divergent_rows_change_nothing() {
    let table = Table::of_versions();
    let rows = table.versions(&[(1, "a", 5), (2, "b", 5), (3, "c", 5)]);
    let mut table = table.holding(rows).await;
    let before = table.all().await;
    let change = table.merge(table.versions(&[(1, "older", 4), (2, "other", 5), (3, "c", 5)])).await.unwrap();
    assert!(is_unchanged(&change));
    assert_eq!((change.rows.stale, change.rows.divergent, change.rows.unchanged), (1, 1, 1));
    assert_eq!(table.all().await, before);
}

#[tokio::test]
async fn the_whole_order_tuple_decides() {
    let fields = ["id", "at", "lsn", "value"].map(|name| field(name, DataType::Int64));
    let table = Table::new(fields.to_vec(), &[], &["id"]).newest_by("at desc, lsn asc");
    let rows = table.rows(&[&["1", "2", "3", "4"], &["7", "7", "7", ""], &["5", "5", "5", "5"], &["0", "0", "0", "0"]]);
    let mut table = table.holding(rows).await;
    // Key 1 is older by the second column, 2 newer by it, 3 has no time at all, 4 has one where the table has none.
    let rows = table.rows(&[&["1", "2", "3", "4"], &["7", "7", "", "1"], &["6", "4", "1", "9"], &["1", "1", "1", "1"]]);
    let change = table.merge(rows).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.stale), (2, 2));
    assert_eq!(table.all().await, ["1|7|5|0", "2|7|4|1", "3|7|5|0", "4|1|9|1"]);
}

// Field report C12: from the first run on, running again changes nothing. Field report A17: other rows stay.
#[tokio::test]
async fn a_repeat_changes_nothing_with_and_without_an_order() {
    for ordered in [true, false] {
        let mut table = if ordered { Table::of_versions() } else { Table::of_versions().without_order() };
        let first = table.versions(&[(1, "a", 1), (2, "b", 1), (3, "c", 1)]);
        let change = table.merge(first.clone()).await.unwrap();
        assert_eq!((change.rows.inserted, change.adds.len()), (3, 1));
        assert!(is_unchanged(&table.merge(first).await.unwrap()));
        let second = table.versions(&[(2, "B", 2), (3, "c", 1), (4, "d", 1)]);
        let change = table.merge(second.clone()).await.unwrap();
        assert_eq!((change.rows.inserted, change.rows.updated, change.rows.unchanged), (1, 1, 1));
        let all = table.all().await;
        assert_eq!(all, ["1|a|1", "2|B|2", "3|c|1", "4|d|1"]);
        assert!(is_unchanged(&table.merge(second).await.unwrap()));
        assert_eq!(table.all().await, all);
    }
}

// Field report A15: several source rows of one key never become several rows of the table.
#[tokio::test]
async fn many_source_rows_of_a_key_become_one() {
    let table = Table::of_versions();
    let rows = table.versions(&[(1, "x", 0), (2, "y", 0)]);
    let mut table = table.holding(rows).await;
    let change = table.merge(table.versions(&[(1, "b", 2), (1, "c", 3), (1, "a", 1), (1, "c", 3)])).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.superseded, change.rows.duplicates), (1, 2, 1));
    assert_eq!(table.all().await, ["1|c|3", "2|y|0"]);
}

// Field report C13: a key with a null part matches itself, or is refused.
#[tokio::test]
async fn keys_with_a_null_part_match_when_asked() {
    let fields = ["a", "b", "version"].map(|name| field(name, DataType::Int64));
    let mut table = Table::new(fields.to_vec(), &[], &["a", "b"]).newest_by("version desc");
    let refused = table.merge(table.rows(&[&["1"], &[""], &["1"]])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(refused.evidence(), ["source row 1: a=1, b=null"]);
    table.null_keys = NullKeys::Match;
    table = {
        let rows = table.rows(&[&["1"], &["2"], &["9"]]);
        table.holding(rows).await
    };
    for version in 1..=5 {
        let change = table.merge(table.rows(&[&["1"], &[""], &[&version.to_string()]])).await.unwrap();
        assert_eq!(change.rows.inserted, u64::from(version == 1));
    }
    assert_eq!(table.all().await, ["1|-|5", "1|2|9"]);
}

#[tokio::test]
async fn a_key_that_the_table_holds_twice_is_refused() {
    let table = Table::of_versions();
    let (one, two) = (
        table.versions(&[(1, "a", 1), (7, "b", 1), (8, "x", 1), (8, "x", 1)]),
        table.versions(&[(7, "c", 2), (9, "d", 1)]),
    );
    let mut table = table.holding(one).await.holding(two).await;
    let error = table.merge(table.versions(&[(7, "z", 9), (1, "z", 9)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.message(), "t holds a key of the source more than once, so it is not a key; nothing was changed");
    assert_eq!(error.evidence(), ["id=7  in part-0.parquet and part-1.parquet"]);
    let error = table.merge(table.versions(&[(7, "z", 9), (8, "z", 9)])).await.unwrap_err();
    assert!(error.message().contains("holds 2 keys"), "{error}");
    assert_eq!(error.evidence()[1], "id=8  in part-0.parquet");
    // Keys that the source does not hold are not looked at.
    assert_eq!(table.merge(table.versions(&[(1, "z", 9)])).await.unwrap().rows.updated, 1);
}

// Field report A14: every type that a column can have is a key, in a partition column too.
#[tokio::test]
async fn every_type_is_a_key() {
    let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
    let cases: [(DataType, [&str; 3]); 12] = [
        (DataType::Boolean, ["true", "false", ""]),
        (DataType::Int8, ["-128", "127", "0"]),
        (DataType::Int16, ["-32768", "32767", "0"]),
        (DataType::Int32, ["-2147483648", "2147483647", "0"]),
        (DataType::Int64, ["-9223372036854775808", "9223372036854775807", "0"]),
        (DataType::Float64, ["-0.0", "1e300", "NaN"]),
        (DataType::Float32, ["0.5", "-1.5", "NaN"]),
        (DataType::Decimal128(6, 1), ["-99999.9", "99999.9", "0.1"]),
        (DataType::Decimal128(38, 18), ["-12345678901234567890.123456789012345678", "0.000000000000000001", "7"]),
        (DataType::Date32, ["0001-01-01", "9999-12-31", "2026-10-05"]),
        (utc(), ["2026-10-05T10:00:00.000001Z", "1969-12-31T23:59:59.999999Z", "2026-10-05T10:00:00.000002Z"]),
        (ntz, ["2026-10-05T10:00:00.000001", "1969-12-31T23:59:59.999999", "2026-10-05T10:00:00.000002"]),
    ];
    for (data_type, keys) in &cases {
        for partition_by in [&[][..], &["k"][..]] {
            let fields = vec![field("k", data_type.clone()), field("id", DataType::Int64), field("v", DataType::Utf8)];
            let mut table = Table::new(fields, partition_by, &["k", "id"]);
            table.null_keys = NullKeys::Match;
            let rows = table.rows(&[&keys[..2], &["1", "1"], &["old", "old"]]);
            let mut table = table.holding(rows).await;
            let change = table.merge(table.rows(&[keys, &["1", "1", "1"], &["new", "old", "new"]])).await.unwrap();
            let counts = (change.rows.inserted, change.rows.updated, change.rows.unchanged);
            assert_eq!(counts, (1, 1, 1), "{data_type} partitioned by {partition_by:?}");
            let again = table.merge(table.rows(&[keys, &["1", "1", "1"], &["new", "old", "new"]])).await.unwrap();
            assert!(is_unchanged(&again), "{data_type} partitioned by {partition_by:?}");
        }
    }
}

#[tokio::test]
async fn text_and_bytes_are_keys() {
    let fields = vec![field("t", DataType::Utf8), field("b", DataType::Binary), field("v", DataType::Int64)];
    let table = Table::new(fields, &[], &["t", "b"]);
    let long = "x".repeat(100);
    let rows = |v: [i64; 3]| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![long.as_str(), "", "é\u{10FFFF}"])),
            Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..], b"", b"\x00"])),
            Arc::new(Int64Array::from(v.to_vec())),
        ];
        RecordBatch::try_new(table.schema.columns().clone(), columns).unwrap()
    };
    let (old, new) = (rows([1, 2, 3]), rows([1, 20, 3]));
    let mut table = table.holding(old).await;
    let change = table.merge(new).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.unchanged), (1, 2));
}

// Field report A27: partition values go by name, whatever the order of columns.
#[tokio::test]
async fn partition_columns_go_by_name() {
    let fields = vec![field("foo", DataType::Utf8), field("bar", DataType::Utf8), field("v", DataType::Int64)];
    let table = Table::new(fields, &["bar", "foo"], &["foo", "bar"]);
    let rows = table.rows(&[&["f1", "f2"], &["b1", "b2"], &["1", "1"]]);
    let mut table = table.holding(rows).await;
    let change = table.merge(table.rows(&[&["f1", "f1"], &["b1", "b2"], &["2", "2"]])).await.unwrap();
    assert_eq!((change.rows.updated, change.rows.inserted, change.pruned), (1, 1, 1));
    assert_eq!(table.all().await, ["f1|b1|2", "f1|b2|2", "f2|b2|1"]);
}

#[tokio::test]
async fn a_row_whose_partition_changes_moves() {
    let fields = vec![field("id", DataType::Int64), field("day", DataType::Date32), field("v", DataType::Int64)];
    let table = Table::new(fields, &["day"], &["id"]);
    let rows = table.rows(&[&["1", "2"], &["2026-10-05", "2026-10-05"], &["1", "1"]]);
    let mut table = table.holding(rows).await;
    let change = table.merge(table.rows(&[&["1"], &["2026-10-06"], &["1"]])).await.unwrap();
    assert_eq!((change.rows.updated, change.adds.len(), change.removes.len()), (1, 2, 1));
    assert_eq!(table.all().await, ["1|2026-10-06|1", "2|2026-10-05|1"]);
}

// Field report A01: partition values with a space, slash or percent sign.
#[tokio::test]
async fn odd_partition_values_do_not_double_rows() {
    let fields = vec![field("g", DataType::Utf8), field("k", DataType::Int64), field("v", DataType::Int64)];
    let mut table = Table::new(fields, &["g"], &["g", "k"]);
    for run in 0..3 {
        let v = run.to_string();
        let rows = table.rows(&[&["a b", "a/b", "a%20b"], &["1", "1", "1"], &[&v, &v, &v]]);
        table.merge(rows).await.unwrap();
        assert_eq!(table.all().await.len(), 3);
        assert_eq!(table.files.len(), 3);
    }
}

// Field report A25: no rows, no work. The table's one file is not even there.
#[tokio::test]
async fn an_empty_source_reads_nothing() {
    let table = Table::of_versions();
    let rows = table.versions(&[(1, "a", 1)]);
    let mut table = table.holding(rows).await;
    let source = table.source(&[table.versions(&[])]).await.unwrap();
    table.files[0].path = "gone.parquet".to_owned();
    let change = super::plan(&table.target(), &source, &table.revision(&source).unwrap(), &Probes::default(), &table)
        .await
        .unwrap();
    assert!(is_unchanged(&change));
    assert_eq!((change.probed, change.pruned), (0, 1));
    let source = table.source(&[table.versions(&[(1, "b", 2)])]).await.unwrap();
    let error = super::plan(&table.target(), &source, &table.revision(&source).unwrap(), &Probes::default(), &table)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retryable);
    assert!(error.message().contains("'gone.parquet'"), "{error}");
    assert!(error.advice().is_some_and(|hint| hint.contains("vacuumed")));
}

#[tokio::test]
async fn what_was_read_covers_later_files_that_hold_a_key() {
    let mut table = Table::of_versions();
    let (near, far) = (table.versions(&[(5, "x", 1)]), table.versions(&[(50, "x", 1), (60, "x", 1)]));
    let change = table.merge(table.versions(&[(1, "a", 1), (9, "a", 1), (40, "a", 1)])).await.unwrap();
    table = table.holding(near).await.holding(far).await;
    let files = &table.files;
    let covered: Vec<bool> = files.iter().map(|file| change.reads.rows.may_be_in(file)).collect();
    // The source's own file; one within its range that no key is in; one beyond it.
    assert_eq!(covered, [true, false, false]);
    let mut unknown = files[2].clone();
    unknown.stats = None;
    assert!(change.reads.rows.may_be_in(&unknown));
}

#[tokio::test]
async fn composite_keys_are_pruned_by_each_column_and_together() {
    let fields = vec![field("day", DataType::Date32), field("id", DataType::Int64), field("v", DataType::Int64)];
    let table = Table::new(fields, &["day"], &["id", "day"]);
    let rows = table.rows(&[
        &["2026-10-05", "2026-10-05", "2026-10-06", "2026-10-06"],
        &["1", "5", "10", "15"],
        &["0", "0", "0", "0"],
    ]);
    let mut table = table.holding(rows).await;
    // Each value lies in the range of one file, but never both of a key in those of the same.
    let change = table.merge(table.rows(&[&["2026-10-05", "2026-10-06"], &["12", "3"], &["1", "1"]])).await.unwrap();
    assert_eq!((change.probed, change.pruned, change.rows.inserted), (0, 2, 2));
}

#[tokio::test]
async fn a_plan_on_a_newer_snapshot_takes_the_same_source() {
    let mut table = Table::of_versions();
    let source = table.source(&[table.versions(&[(1, "mine", 2), (2, "mine", 2)])]).await.unwrap();
    let first = super::plan(&table.target(), &source, &table.revision(&source).unwrap(), &Probes::default(), &table)
        .await
        .unwrap();
    assert_eq!((first.rows.inserted, first.adds.len()), (2, 1));
    // Another writer was faster, with an older row of one key and a newer one of the other.
    let theirs = table.versions(&[(1, "theirs", 1), (2, "theirs", 3)]);
    table = table.holding(theirs).await;
    let second = super::plan(&table.target(), &source, &table.revision(&source).unwrap(), &Probes::default(), &table)
        .await
        .unwrap();
    assert_eq!((second.rows.inserted, second.rows.updated, second.rows.stale), (0, 1, 1));
}

#[test]
fn the_fixture_reads_text_exactly() {
    assert_eq!(texts(&DataType::Decimal128(6, 1), &["99999.9"]).to_data().buffers()[0].typed_data::<i128>(), [999_999]);
}
