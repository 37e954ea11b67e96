//! Tables as Spark writes them: each contract either does right by them, or is refused by naming the feature.

use std::fs;

use deltaonce_tests::cli::{Run, Sandbox};
use deltaonce_tests::content::{Row, Rows};
use deltaonce_tests::golden::Golden;
use deltaonce_tests::table::Table;
use serde_json::{Map, Value, json};

/// Tables that must take every row that fits them.
const LOADED: [&str; 14] = [
    "plain",
    "partitioned_odd_values",
    "partitioned_by_timestamp",
    "not_null",
    "check",
    "types",
    "timestamp_ntz",
    "checkpoint_v2",
    "checkpoint_classic",
    "stats_few_columns",
    "append_only",
    "deletion_vectors",
    "change_feed",
    "change_feed_vectors",
];

/// What a refusal must name, without regard to case and punctuation; one of them.
fn features(table: &str) -> &'static [&'static str] {
    match table {
        "mapping_name" | "mapping_id" => &["columnmapping"],
        "row_tracking" => &["rowtracking"],
        "in_commit_timestamp" => &["incommittimestamp"],
        "clustered" => &["clustering"],
        "generated" => &["generated"],
        "defaults" => &["default"],
        "identity" => &["identity"],
        "append_only" => &["appendonly"],
        "checkpoint_v2" => &["v2checkpoint"],
        "type_widened" => &["typewidening"],
        "variant" => &["variant"],
        "vacuum_protocol_check" => &["vacuumprotocolcheck"],
        "every_common_feature" => {
            &["deletionvectors", "rowtracking", "incommittimestamp", "changedatafeed", "columnmapping"]
        }
        _ => &[],
    }
}

/// A value for a column as JSON input, and as canonical text.
fn value(table: &str, column: &str) -> (Value, Option<&'static str>) {
    match (table, column) {
        ("variant", "v") => (json!({"a": 2}), None),
        (_, "v" | "p" | "str") => (json!("new"), Some("new")),
        (_, "d" | "q" | "order_date" | "dt" | "day") => (json!("2026-10-08"), Some("2026-10-08")),
        ("timestamp_ntz", "ts") => (json!("2026-10-08T01:02:03"), Some("2026-10-08 01:02:03")),
        (_, "ts") => (json!("2026-10-08T01:02:03Z"), Some("2026-10-08 01:02:03")),
        (_, "b") => (json!(true), Some("true")),
        (_, "n" | "t" | "s" | "i" | "extra") => (json!(9), Some("9")),
        (_, "f" | "dbl") => (json!(1.5), Some("1.5")),
        (_, "dec") => (json!("1.5"), Some("1.500000000000000000")),
        (_, "dec2") => (json!("1.25"), Some("1.25")),
        (_, "bin") => (Value::Null, None),
        (_, "st") => (json!({"a": 1, "b": {"c": "x"}}), Some("{\"a\":1,\"b\":{\"c\":\"x\"}}")),
        (_, "ar") => (json!([1, null, 2]), Some("[1,null,2]")),
        (_, "m") => (json!({"k": 1.5}), Some("{\"k\":1.5}")),
        // The odd name of the column-mapping table.
        (_, name) if name.starts_with("v,") => (json!("new"), Some("new")),
        (table, column) => panic!("no value for column {column} of {table}"),
    }
}

/// A row of a table, all columns given, as an NDJSON line and as readers see it.
fn row(table: &str, columns: &[String], id: &str) -> (String, Row) {
    let (mut line, mut seen) = (Map::new(), Row::new());
    for column in columns {
        let (input, text) =
            if column == "id" { (json!(id.parse::<i64>().unwrap()), Some(id)) } else { value(table, column) };
        line.insert(column.clone(), input);
        seen.insert(column.clone(), text.map(str::to_owned));
    }
    (Value::Object(line).to_string() + "\n", seen)
}

fn sorted(mut rows: Vec<Row>) -> Rows {
    rows.sort();
    Rows(rows)
}

struct Case<'a> {
    name: &'a str,
    sandbox: Sandbox,
    table: Table,
    before: Rows,
    /// An id that is in the table.
    known: String,
    columns: Vec<String>,
}

impl<'a> Case<'a> {
    fn new(golden: &Golden, name: &'a str) -> Self {
        let before = golden.rows(name);
        let first = before.0.first().unwrap_or_else(|| panic!("{name} is empty"));
        let known = first["id"].clone().unwrap();
        let columns = first.keys().cloned().collect();
        Self { name, sandbox: Sandbox::default(), table: golden.table(name), known, columns, before }
    }

    fn run(&self, golden: &Golden, contract: &str) -> Run {
        let path = golden.path(self.name);
        self.sandbox.run(&format!("{} --output json --quiet", contract.replace("{}", &path.display().to_string())))
    }

    /// Runs a contract twice; `after` is what the table must hold if it takes it. True if it took it.
    fn right_or_refused(&self, golden: &Golden, contract: &str, after: &Rows) -> bool {
        let name = self.name;
        let files = self.table.files();
        let run = self.run(golden, contract);
        if run.status == Some(0) {
            let rows = self.rows();
            assert_eq!(&rows, after, "{name}: {contract}");
            let by_spark = self.table.rows_by_spark();
            assert!(by_spark.is_none_or(|read| read == rows), "{name}: {contract}: Spark reads other rows");
            let again = self.run(golden, contract).ended(0).outcome();
            assert!(matches!(again.as_str(), "skipped" | "unchanged"), "{name}: {contract}: {again}");
            assert_eq!(self.rows(), rows, "{name}: {contract} again");
            return true;
        }
        assert!(matches!(run.status, Some(1 | 2)), "{name}: {contract}: {run:?}");
        let said: String =
            run.json()["error"].to_string().to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        assert!(features(name).iter().any(|feature| said.contains(feature)), "{name}: {contract}: {said}");
        assert_eq!(self.table.files(), files, "{name}: {contract} was refused, and left files");
        false
    }

    /// As all readers that can read the table see it; at least one must.
    fn rows(&self) -> Rows {
        let read: Vec<Rows> = ["deltalake", "duckdb"].iter().filter_map(|with| self.table.rows_by(with).ok()).collect();
        let first = read.first().unwrap_or_else(|| panic!("no reader can read {} any more", self.name)).clone();
        assert!(read.iter().all(|rows| *rows == first), "the readers of {} differ: {read:#?}", self.name);
        first
    }
}

fn check(contract: &str, takes: impl Fn(&str) -> bool) {
    let golden = Golden::default();
    for name in golden.names() {
        let case = Case::new(&golden, &name);
        let (new_line, new) = row(&name, &case.columns, "9000");
        let (changed_line, changed) = row(&name, &case.columns, &case.known);
        let kept = || case.before.0.iter().filter(|row| row["id"].as_deref() != Some(case.known.as_str())).cloned();
        let (lines, after) = match contract.split(' ').next() {
            Some("merge") => (changed_line + &new_line, kept().chain([changed, new]).collect()),
            Some("replace") if contract.contains("--where") => {
                (changed_line, kept().chain([changed]).collect::<Vec<_>>())
            }
            Some("replace") => (new_line, vec![new]),
            Some("insert") => (changed_line + &new_line, case.before.0.iter().cloned().chain([new]).collect()),
            _ => (new_line, case.before.0.iter().cloned().chain([new]).collect()),
        };
        case.sandbox.write("rows.ndjson", lines);
        let line = contract.replace("{known}", &case.known);
        let took = case.right_or_refused(&golden, &line, &sorted(after));
        assert!(took || !takes(&name), "{name} must take: {line}");
        eprintln!("{}  {name}: {line}", if took { "right  " } else { "refused" });
    }
}

#[test]
fn append() {
    check("append {} rows.ndjson --write-id golden", |name| LOADED.contains(&name));
}

#[test]
fn merge() {
    check("merge {} rows.ndjson --key id", |name| LOADED.contains(&name) && name != "append_only");
}

#[test]
fn insert() {
    check("insert {} rows.ndjson --key id", |name| LOADED.contains(&name));
}

#[test]
fn replace_where() {
    check("replace {} rows.ndjson --where 'id = {known}'", |name| LOADED.contains(&name) && name != "append_only");
}

#[test]
fn replace_all() {
    check("replace {} rows.ndjson --all", |name| LOADED.contains(&name) && name != "append_only");
}

#[test]
fn constraints_of_spark_hold() {
    let golden = Golden::default();
    for (name, line, says) in [
        ("check", "{\"id\": 0, \"d\": null, \"v\": \"x\"}", "positive"),
        ("check", "{\"id\": 9, \"d\": null, \"v\": \"bad\"}", "known"),
        ("not_null", "{\"id\": null, \"d\": null, \"v\": \"x\"}", "id"),
    ] {
        let case = Case::new(&golden, name);
        case.sandbox.write("rows.ndjson", line);
        let run = case.run(&golden, "append {} rows.ndjson --write-id x").ended(1);
        assert!(run.json()["error"].to_string().contains(says), "{name}: {run:?}");
        assert_eq!(case.rows(), case.before, "{name}");
    }
}

#[test]
fn every_table_is_shown_or_refused() {
    let golden = Golden::default();
    for name in golden.names() {
        let case = Case::new(&golden, &name);
        let run = case.run(&golden, "show {}");
        assert!(matches!(run.status, Some(0 | 2)), "{name}: {run:?}");
        assert!(fs::exists(golden.path(&name).join("_delta_log")).unwrap());
    }
}
