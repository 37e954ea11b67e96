//! Logs that say what no sound writer says: refused in a sentence that names it, or read as what it is; never guessed.

use std::fs;

use deltaonce_tests::cli::Sandbox;
use serde_json::{Value, json};

use crate::support::{done, refused};

fn metadata(columns: Value, partition_columns: Value) -> Value {
    json!({"metaData": {
        "id": "b1a9b6ab-6a5b-4a3e-8f8e-2d2b2f8a7f10",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": columns}).to_string(),
        "partitionColumns": partition_columns,
        "configuration": {},
    }})
}

fn column(name: &str, data_type: Value) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata": {}})
}

fn add(path: &str, more: Value) -> Value {
    let mut add = json!({"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": true});
    let more = more.as_object().expect("an object").clone();
    add.as_object_mut().expect("an object").extend(more);
    json!({ "add": add })
}

/// A sandbox with the table `t` of this one entry, and rows for it.
fn table(actions: &[Value]) -> Sandbox {
    let sandbox = Sandbox::default();
    fs::create_dir_all(sandbox.path("t/_delta_log")).unwrap();
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    let lines = [json!({"commitInfo": {"timestamp": 1}}), protocol].into_iter().chain(actions.iter().cloned());
    let text: String = lines.map(|action| action.to_string() + "\n").collect();
    sandbox.write("t/_delta_log/00000000000000000000.json", text);
    sandbox.write("rows.ndjson", "{\"id\":1}\n");
    sandbox
}

fn of_ids(actions: &[Value]) -> Sandbox {
    let definition = metadata(json!([column("id", json!("long"))]), json!([]));
    table(&[&[definition], actions].concat())
}

/// The sentence of a command that must be refused as nothing that this version does, with the table untouched.
fn unsupported(sandbox: &Sandbox, line: &str) -> String {
    let before = files(sandbox);
    let error = refused(sandbox, line, 2);
    assert_eq!(error["kind"], "unsupported", "{line}: {error}");
    assert_eq!(files(sandbox), before, "{line}");
    error["message"].as_str().expect("a message").to_owned()
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["t", "t/_delta_log"] {
        names.extend(fs::read_dir(sandbox.path(folder)).unwrap().map(|entry| format!("{:?}", entry.unwrap().path())));
    }
    names.sort();
    names
}

const LOADS: [&str; 5] = [
    "append t rows.ndjson --write-id x",
    "merge t rows.ndjson --key id",
    "insert t rows.ndjson --key id",
    "replace t rows.ndjson --where 'id = 1'",
    "replace t rows.ndjson --all",
];

#[test]
fn types_that_no_file_holds_are_refused_by_name() {
    for (data_type, at, name) in [
        (json!("void"), "v", "void"),
        (json!({"type": "array", "elementType": "void", "containsNull": true}), "v", "void"),
        (json!({"type": "struct", "fields": [column("a", json!("void"))]}), "v.a", "void"),
    ] {
        let sandbox = table(&[metadata(json!([column("id", json!("long")), column("v", data_type)]), json!([]))]);
        for line in LOADS {
            let message = unsupported(&sandbox, line);
            assert!(message.contains(&format!("the type {name} in column '{at}'")), "{line}: {message}");
        }
    }
    for interval in ["interval day to second", "interval year to month", "interval"] {
        let sandbox = table(&[metadata(json!([column("id", json!("long")), column("v", json!(interval))]), json!([]))]);
        for line in LOADS {
            let message = unsupported(&sandbox, line);
            assert!(message.contains("interval"), "{line}: {message}");
        }
    }
}

#[test]
fn a_table_partitioned_by_no_column_of_its_own_is_refused() {
    let sandbox = table(&[metadata(json!([column("id", json!("long"))]), json!(["nowhere"]))]);
    for line in LOADS.into_iter().chain(["show t", "txns t"]) {
        let message = unsupported(&sandbox, line);
        assert!(message.contains("'nowhere'"), "{line}: {message}");
    }
}

#[test]
fn counts_of_rows_beyond_all_numbers_are_not_added_up() {
    let stats = json!({"stats": json!({"numRecords": i64::MAX}).to_string(), "size": i64::MAX});
    let sandbox = of_ids(&[add("a.parquet", stats.clone()), add("b.parquet", stats.clone()), add("c.parquet", stats)]);
    let shown = done(&sandbox, "show t");
    assert_eq!(shown["rows"], Value::Null, "{shown}");
    let receipt = done(&sandbox, "replace t rows.ndjson --all");
    assert_eq!(receipt["outcome"], "committed", "{receipt}");
}

#[test]
fn paths_out_of_the_tables_folder_are_not_followed() {
    for path in ["../rows.parquet", "%2e%2e/rows.parquet", "file:///etc/passwd", "s3://other/a.parquet", "/etc/passwd"]
    {
        let sandbox = of_ids(&[add(path, json!({}))]);
        for line in
            ["merge t rows.ndjson --key id", "insert t rows.ndjson --key id", "replace t rows.ndjson --where 'id = 1'"]
        {
            let message = unsupported(&sandbox, line);
            assert!(message.contains(path) && message.contains("the table's folder"), "{line}: {message}");
        }
        // Neither of these needs what is in the file: the log may name one elsewhere, as a shallow clone's does.
        assert_eq!(done(&sandbox, "append t rows.ndjson --write-id x")["outcome"], "committed", "{path}");
    }
}

#[test]
fn a_deletion_vector_is_never_passed_over() {
    let vector = json!({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6});
    // No feature of the protocol announces it.
    let sandbox = of_ids(&[add("a.parquet", json!({"deletionVector": vector}))]);
    for line in ["merge t rows.ndjson --key id", "replace t rows.ndjson --where 'id = 1'"] {
        let error = refused(&sandbox, line, 3);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("deletion vector of data file 'a.parquet'"), "{line}: {message}");
    }
    let odd = |name: &str, value: Value| {
        let mut vector = vector.clone();
        vector[name] = value;
        vector
    };
    for vector in [
        odd("storageType", json!("x")),
        odd("storageType", json!("p")),
        odd("storageType", json!("i")),
        odd("pathOrInlineDv", json!("../../../etc/passwd")),
        odd("sizeInBytes", json!(-1)),
    ] {
        let sandbox = of_ids(&[add("a.parquet", json!({"deletionVector": vector}))]);
        let message = unsupported(&sandbox, "merge t rows.ndjson --key id");
        assert!(message.contains("deletion vector of data file 'a.parquet'"), "{vector}: {message}");
    }
    let mut half = vector;
    half.as_object_mut().unwrap().remove("cardinality");
    let sandbox = of_ids(&[add("a.parquet", json!({"deletionVector": half}))]);
    for line in ["merge t rows.ndjson --key id", "replace t rows.ndjson --where 'id = 1'", "show t"] {
        let message = unsupported(&sandbox, line);
        assert!(
            message.to_lowercase().contains("deletion vector") || message.contains("cardinality"),
            "{line}: {message}"
        );
    }
}

#[test]
fn a_file_without_a_size_or_with_odd_partition_values_is_refused() {
    for odd in [json!({"size": null}), json!({"size": "ten"}), json!({"path": null}), json!({"partitionValues": 7})] {
        let sandbox = of_ids(&[add("a.parquet", odd.clone())]);
        for line in ["merge t rows.ndjson --key id", "replace t rows.ndjson --all", "show t"] {
            let message = unsupported(&sandbox, line);
            assert!(!message.is_empty(), "{line} of {odd}");
        }
    }
}

/// Whoever reads such a line by recursion comes to the end of the stack, and the process to its own.
#[test]
fn json_nested_without_end_is_refused() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let stats = json!({"stats": format!("{{\"numRecords\":1,\"minValues\":{{\"id\":{deep}}}}}")});
    for (sandbox, line) in [
        (of_ids(&[]), format!("{{\"add\":{{\"path\":\"a\",\"partitionValues\":{{\"p\":{deep}}}}}}}\n")),
        (of_ids(&[]), format!("{deep}\n")),
        (of_ids(&[]), add("a.parquet", stats).to_string() + "\n"),
    ] {
        sandbox.write("t/_delta_log/00000000000000000001.json", line);
        for line in LOADS.into_iter().chain(["show t", "txns t"]) {
            let message = unsupported(&sandbox, line);
            assert!(
                message.contains("00000000000000000001.json has JSON nested more than 500 deep"),
                "{line}: {message}"
            );
        }
    }
}

/// Statistics only help to pass files by, so those that cannot be read are none.
#[test]
fn statistics_nested_without_end_in_a_checkpoint_are_none() {
    let sandbox = Sandbox::default();
    sandbox.write("rows.ndjson", "{\"id\":1}\n");
    done(&sandbox, "create t --schema 'id bigint' --property delta.checkpointInterval=1");
    done(&sandbox, "append t rows.ndjson --write-id first");
    sandbox.table("t").peer("nest_statistics", json!({"depth": 100_000}));
    for line in ["show t", "txns t", "merge t rows.ndjson --key id", "insert t rows.ndjson --key id"] {
        let document = done(&sandbox, line);
        assert!(document.get("outcome").is_none_or(|outcome| outcome == "unchanged"), "{line}: {document}");
    }
    done(&sandbox, "append t rows.ndjson --write-id second");
    let replaced = done(&sandbox, "replace t rows.ndjson --where 'id = 1'");
    assert_eq!((&replaced["rows"]["deleted"], &replaced["rows"]["inserted"]), (&json!(2), &json!(1)));
}

#[test]
fn brackets_in_names_and_values_are_no_nesting() {
    let sandbox = Sandbox::default();
    let brackets = "[".repeat(600);
    sandbox.write("schema.sql", format!("id bigint, `{brackets}` string"));
    sandbox.write("rows.ndjson", json!({"id": 1, &brackets: brackets}).to_string() + "\n");
    done(&sandbox, "create t --schema schema.sql");
    done(&sandbox, "append t rows.ndjson --write-id first");
    done(&sandbox, "show t");
    assert_eq!(done(&sandbox, "merge t rows.ndjson --key id")["outcome"], "unchanged");
}
