//! Deletion vectors: rows are masked instead of writing their files again, and other readers leave them out.

use deltaonce_tests::cli::Sandbox;
use deltaonce_tests::content::Rows;

use crate::support::{NEWEST, counts, disk_and_s3, done, spark_reads};

/// A table of orders with deletion vectors on, and one without, that hold the same; first on disk, then on S3.
fn pairs() -> [(Sandbox, [String; 2]); 2] {
    disk_and_s3("orders").map(|(sandbox, table)| {
        let plain = format!("{table}_plain");
        done(
            &sandbox,
            &format!("create {table} --schema schema.json --deletion-vectors --property delta.checkpointInterval=2"),
        );
        done(&sandbox, &format!("create {plain} --schema schema.json"));
        for table in [&table, &plain] {
            done(&sandbox, &format!("append {table} day1.csv --write-id day1"));
        }
        (sandbox, [table, plain])
    })
}

/// Runs a load on both tables, checks that they say and hold the same, and gives the receipt of the one with vectors.
fn both(sandbox: &Sandbox, tables: &[String; 2], load: &str) -> (serde_json::Value, Rows) {
    let [masked, plain] = tables.each_ref().map(|table| done(sandbox, &load.replace("{}", table)));
    assert_eq!(counts(&masked), counts(&plain), "{load}");
    let [rows, others] = tables.each_ref().map(|table| sandbox.table(table).rows_by_all());
    assert_eq!(rows, others, "{load}");
    spark_reads(sandbox, &tables[0], &rows);
    spark_reads(sandbox, &tables[1], &rows);
    (masked, rows)
}

#[test]
fn merges_and_replaces_mask_rows_and_write_only_new_ones() {
    for (sandbox, tables) in pairs() {
        let (receipt, _) = both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
        assert_eq!(receipt["files"]["masked"], 1, "{receipt}");
        assert_eq!((&receipt["files"]["added"], &receipt["files"]["removed"]), (&1.into(), &0.into()), "{receipt}");
        let (again, _) = both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
        assert_eq!(again["outcome"], "unchanged");

        let version = sandbox.table(&tables[0]).version().unwrap();
        let entry = sandbox.table(&tables[0]).entry(version);
        let adds: Vec<_> = entry.iter().filter_map(|action| action.get("add")).collect();
        let masked = adds.iter().find(|add| !add["deletionVector"].is_null()).expect("a file is masked");
        let stats: serde_json::Value = serde_json::from_str(masked["stats"].as_str().unwrap()).unwrap();
        assert_eq!(stats["tightBounds"], false, "{stats}");
        assert!(entry.iter().any(|action| action["remove"]["path"] == masked["path"]), "its old state is removed");

        sandbox.write("none.csv", "order_id,customer,status,amount,order_ts,order_date,source_updated_at,source_lsn\n");
        let (receipt, rows) = both(&sandbox, &tables, "replace {} none.csv --where 'order_id = 1001' --allow-empty");
        assert_eq!((receipt["files"]["masked"].as_u64(), counts(&receipt)), (Some(1), "deleted=1".to_owned()));
        assert!(rows.0.iter().all(|row| row["order_id"].as_deref() != Some("1001")));
        // A key whose row is masked is absent: it can be inserted again.
        let (receipt, _) = both(&sandbox, &tables, "insert {} day1.csv --key order_id");
        assert!(counts(&receipt).contains("inserted=1 unchanged="), "{receipt}");
    }
}

#[test]
fn another_writer_compacts_a_masked_table_and_loads_go_on() {
    let [(sandbox, tables), _] = pairs();
    both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
    let table = sandbox.table(&tables[0]);
    let before = table.rows_by_all();
    // Whether deltalake can write to such a table is its own affair.
    let compacted = table.try_peer("compact", serde_json::json!({}));
    assert_eq!(table.rows_by_all(), before, "{compacted:?}");
    let (again, _) = both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
    assert_eq!(again["outcome"], "unchanged");
}

#[test]
fn a_file_that_is_mostly_masked_is_written_again_and_one_without_rows_goes() {
    let [(sandbox, tables), _] = pairs();
    both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
    // All that is left of the first file goes, and three of the five rows that the merge wrote.
    let (receipt, rows) = both(&sandbox, &tables, "replace {} day1.csv --where 'order_id < 1013'");
    assert_eq!((&receipt["files"]["removed"], &receipt["files"]["masked"]), (&2.into(), &0.into()), "{receipt}");
    assert_eq!(rows.len(), 14);
    both(&sandbox, &tables, "replace {} day1.csv --all");
}

/// The property alone does not let a reader expect vectors.
#[test]
fn rows_are_masked_only_where_the_protocol_says_so() {
    let [(sandbox, tables), _] = pairs();
    let table = sandbox.table(&tables[1]);
    let entry = table.entry(0).into_iter().map(|mut action| {
        if action.get("metaData").is_some() {
            action["metaData"]["configuration"]["delta.enableDeletionVectors"] = "true".into();
        }
        action.to_string() + "\n"
    });
    table.overwrite_entry(0, &entry.collect::<String>());
    let receipt = done(&sandbox, &format!("merge {} changes.ndjson {NEWEST}", tables[1]));
    let files = &receipt["files"];
    assert_eq!((&files["masked"], &files["removed"]), (&0.into(), &1.into()), "{receipt}");
    assert_eq!(table.rows_by_all().len(), 14);
}

#[test]
fn a_damaged_vector_is_refused_by_its_file() {
    let [(sandbox, tables), _] = pairs();
    both(&sandbox, &tables, &format!("merge {{}} changes.ndjson {NEWEST}"));
    let folder = sandbox.path(&tables[0]);
    let vector = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let vector = vector.filter(|path| path.extension().is_some_and(|kind| kind == "bin")).collect::<Vec<_>>();
    let mut bytes = std::fs::read(&vector[0]).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&vector[0], bytes).unwrap();
    let load = format!("merge {} older.ndjson {NEWEST} --output json", tables[0]);
    let run = sandbox.run(&load);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.json()["error"]["message"].as_str().unwrap().contains("the deletion vector of data file"), "{run:?}");
}
