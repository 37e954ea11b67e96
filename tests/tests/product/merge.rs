//! Merge and insert: one winner per key, and older rows never win.

use bytes::Bytes;
use deltaonce_tests::cli::Sandbox;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use serde_json::json;

use crate::support::{NEWEST, counts, create_orders, disk_and_s3, done, orders_csv, refused, spark_reads};

fn day1() -> (Sandbox, String) {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "--partition-by order_date");
    done(&sandbox, &format!("append {table} day1.csv --write-id day1"));
    (sandbox, table)
}

#[test]
fn changes_apply_once_and_an_older_replay_changes_nothing() {
    for (sandbox, table) in disk_and_s3("orders") {
        create_orders(&sandbox, &table, "");
        done(&sandbox, &format!("append {table} day1.csv --write-id day1"));
        let changes = done(&sandbox, &format!("merge {table} changes.ndjson {NEWEST}"));
        assert_eq!(counts(&changes), "read=9 duplicates=1 superseded=2 inserted=2 updated=3 stale=1");
        let at = sandbox.table(&table);
        let rows = at.rows_by_all();
        assert_eq!(rows.len(), 14);
        assert_eq!(rows.only("order_id", "1007")["status"].as_deref(), Some("shipped"));
        assert_eq!(rows.only("order_id", "1005")["amount"].as_deref(), Some("89.95"));
        assert_eq!(rows.only("order_id", "1014")["source_lsn"].as_deref(), Some("52020"));
        assert_eq!(rows.only("order_id", "1002")["status"].as_deref(), Some("shipped"));

        for (file, says) in [
            ("changes.ndjson", "read=9 duplicates=1 superseded=2 stale=1 unchanged=5"),
            ("older.ndjson", "read=3 stale=3"),
        ] {
            let again = done(&sandbox, &format!("merge {table} {file} {NEWEST}"));
            assert_eq!((&again["outcome"], counts(&again).as_str()), (&"unchanged".into(), says), "{file}");
            assert_eq!(at.rows_by_all(), rows, "{file}");
        }
    }
}

#[test]
fn a_tie_is_refused_with_keys_and_places() {
    let (sandbox, table) = day1();
    let error = refused(&sandbox, &format!("merge {table} ties.csv --key order_id --newest-by source_updated_at"), 1);
    let said = error.to_string();
    for part in ["1007", "line 3", "line 9", "1044", "line 5", "line 6"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert_eq!(sandbox.table(&table).version(), Some(1));
    let whole = done(&sandbox, &format!("merge {table} ties.csv {NEWEST}"));
    assert_eq!(counts(&whole), "read=8 superseded=2 inserted=2 updated=4");
    assert_eq!(sandbox.table(&table).rows().only("order_id", "1007")["status"].as_deref(), Some("shipped"));
}

#[test]
fn the_guard_compares_the_whole_order() {
    let (sandbox, table) = day1();
    let order = |status: &str, lsn| orders_csv("2026-10-06", [(1001, status.to_owned(), lsn)]);
    for (status, lsn, says) in [
        ("first", 10, "read=1 updated=1"),
        ("older by the second column", 9, "read=1 stale=1"),
        ("newer by the second column", 11, "read=1 updated=1"),
        ("as new but different", 11, "read=1 divergent=1"),
    ] {
        sandbox.write("one.csv", order(status, lsn));
        assert_eq!(counts(&done(&sandbox, &format!("merge {table} one.csv {NEWEST}"))), says, "{status}");
    }
    let row = sandbox.table(&table).rows();
    assert_eq!(row.only("order_id", "1001")["status"].as_deref(), Some("newer by the second column"));
}

#[test]
fn without_an_order_keys_must_be_unique() {
    let (sandbox, table) = day1();
    let error = refused(&sandbox, &format!("merge {table} changes.ndjson --key order_id"), 1);
    assert!(error.to_string().contains("1007"), "{error}");
    let same = done(&sandbox, &format!("merge {table} day1.parquet --key order_id"));
    assert_eq!(counts(&same), "read=12 unchanged=12");
}

#[test]
fn keys_may_be_composite_and_null_keys_must_be_allowed() {
    let [(sandbox, _), _] = disk_and_s3("x");
    sandbox.write(
        "readings.ndjson",
        concat!(
            "{\"site\":\"a\",\"sensor\":1,\"value\":1.5}\n",
            "{\"site\":\"a\",\"sensor\":2,\"value\":2.5}\n",
            "{\"site\":\"a\",\"sensor\":null,\"value\":0.5}\n",
            "{\"site\":\"b\",\"sensor\":1,\"value\":3.5}\n",
        ),
    );
    let line = "merge lake/readings readings.ndjson --key site,sensor --schema 'site string, sensor int, value double'";
    let error = refused(&sandbox, line, 1);
    assert!(error.to_string().contains("readings.ndjson line 3"), "{error}");
    assert_eq!(done(&sandbox, &format!("{line} --null-keys match"))["outcome"], "committed");
    let again = done(&sandbox, &format!("{line} --null-keys match"));
    assert_eq!(counts(&again), "read=4 unchanged=4", "null equals null");
    assert_eq!(sandbox.table("lake/readings").rows_by_all().len(), 4);
}

#[test]
fn only_files_with_an_affected_row_are_rewritten() {
    let [(sandbox, table), _] = disk_and_s3("orders");
    create_orders(&sandbox, &table, "");
    for file in 0..4_u32 {
        let rows = (0..10).map(|i| (file * 100 + i, "new".to_owned(), 1));
        sandbox.write("part.csv", orders_csv("2026-10-01", rows));
        done(&sandbox, &format!("append {table} part.csv --write-id {file}"));
    }
    sandbox.write("one.csv", orders_csv("2026-10-02", [(205, "paid".to_owned(), 2)]));
    let merged = done(&sandbox, &format!("merge {table} one.csv {NEWEST}"));
    assert_eq!(merged["files"]["probed"], 1, "key ranges rule the others out: {merged}");
    assert_eq!(merged["files"]["removed"], 1, "{merged}");
    assert_eq!(sandbox.table(&table).rows_by_all().len(), 40);
}

/// The bytes of each row group's columns in the only data file that the table has.
fn row_groups(sandbox: &Sandbox, table: &str) -> Vec<Vec<u8>> {
    let state = sandbox.table(table).peer("state", json!({}));
    let [file] = state["files"].as_array().unwrap().as_slice() else { panic!("{state}") };
    let path = file.as_str().unwrap().trim_start_matches("file://").to_owned();
    let bytes = std::fs::read(path).unwrap();
    let footer = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap().metadata().clone();
    let columns = |group: &RowGroupMetaData| {
        let chunks = group.columns().iter().map(|chunk| chunk.byte_range());
        chunks.flat_map(|(start, length)| bytes[start as usize..(start + length) as usize].to_vec()).collect()
    };
    footer.row_groups().iter().map(columns).collect()
}

/// Makes a table of three row groups of 20,000 rows, each larger than what is copied at least, as Python deltalake writes them.
fn of_large_groups(sandbox: &Sandbox, table: &str) {
    let noise = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0x2545_f491_4f6c_dd1d);
    let text = |id: u64| (0..5).map(|part| format!("{:016x}", noise(id * 5 + part))).collect::<String>();
    let rows = (0..60_000_u64).map(|id| json!({"id": id, "v": text(id), "n": 1}).to_string() + "\n");
    sandbox.write("large.ndjson", rows.collect::<String>());
    done(sandbox, "append scratch large.ndjson --write-id large --schema 'id bigint, v string, n bigint'");
    let [file] = sandbox.table("scratch").data_files().try_into().unwrap();
    let file = sandbox.path("scratch").join(file).display().to_string();
    sandbox.table(table).peer("write", json!({"file": file, "group_rows": 20_000}));
}

#[test]
fn row_groups_without_a_change_are_copied() {
    let [disk, s3] = disk_and_s3("groups");
    for ((sandbox, table), is_local) in [(disk, true), (s3, false)] {
        of_large_groups(&sandbox, &table);
        let groups = || is_local.then(|| row_groups(&sandbox, &table));
        let check = |before: &Option<Vec<Vec<u8>>>, after: &Option<Vec<Vec<u8>>>| {
            if let (Some(before), Some(after)) = (before, after) {
                assert_eq!((before.len(), after.len()), (3, 3));
                assert!(after[0] == before[0] && after[2] == before[2], "they are copied");
                assert!(after[1] != before[1], "it is written again");
            }
        };
        let first = groups();
        sandbox.write("one.ndjson", json!({"id": 30_000, "v": "newer", "n": 2}).to_string() + "\n");
        let merge = format!("merge {table} one.ndjson --key id --newest-by n");
        assert_eq!(counts(&done(&sandbox, &merge)), "read=1 updated=1");
        let second = groups();
        check(&first, &second);
        assert_eq!(done(&sandbox, &merge)["outcome"], "unchanged");

        sandbox.write("none.csv", "id,v,n\n");
        let replaced = done(&sandbox, &format!("replace {table} none.csv --where 'id = 30001' --allow-empty"));
        assert_eq!(counts(&replaced), "deleted=1");
        check(&second, &groups());
        let rows = sandbox.table(&table).rows_by_all();
        assert_eq!((rows.len(), rows.only("id", "30000")["v"].as_deref()), (59_999, Some("newer")));
        spark_reads(&sandbox, &table, &rows);
    }
}

#[test]
fn insert_adds_absent_keys_and_each_once() {
    for (sandbox, table) in disk_and_s3("events") {
        done(
            &sandbox,
            &format!(
                "create {table} --schema 'event_id string not null, user_id string, kind string, at timestamp, payload string'"
            ),
        );
        let first = done(&sandbox, &format!("insert {table} events.ndjson --key event_id"));
        assert_eq!(counts(&first), "read=6 duplicates=1 inserted=5");
        let more = done(&sandbox, &format!("insert {table} more.ndjson --key event_id"));
        assert_eq!(counts(&more), "read=2 inserted=1 unchanged=1");
        assert_eq!(sandbox.table(&table).rows_by_all().len(), 6);
    }
}
