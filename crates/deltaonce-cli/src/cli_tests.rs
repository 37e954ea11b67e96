use std::fmt::Write as _;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use deltaonce::{ErrorKind, Load, NullKeys, Properties, Scope, TableSpec};

use super::*;
use crate::args::Output;

fn parse(args: &str) -> std::result::Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("deltaonce").chain(args.split(' ')).map(|arg| arg.replace('_', " ")))
}

/// What a command line asks for; `_` stands for a space within an argument.
fn load(args: &str) -> Result<Load> {
    match parse(args).unwrap_or_else(|e| panic!("{args}: {e}")).command {
        Command::Append(command) => command.load(),
        Command::Replace(command) => command.load(),
        Command::Merge(command) => command.load(),
        Command::Insert(command) => command.load(),
        other => panic!("{other:?} is no load"),
    }
}

fn usage(args: &str) -> String {
    let error = parse(args).expect_err(args);
    assert_eq!(error.exit_code(), 2, "{args}");
    error.to_string()
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn an_append_takes_its_identities_in_order() {
    assert_eq!(load("append t a.csv").unwrap(), Load::append());
    let asked =
        load("append t a.csv b.csv --txn-app-id app --txn-version 42 --txn k=0=7 --txn l=8 --write-id day1 --run-id r");
    let expected = Load::append().txn("app", 42).txn("k=0", 7).txn("l", 8).write_id("day1").run_id("r");
    assert_eq!(asked.unwrap(), expected);
}

#[test]
fn half_an_identity_is_no_identity() {
    assert!(usage("append t a.csv --txn-app-id app").contains("--txn-version <N>"));
    assert!(usage("append t a.csv --txn-version 1").contains("--txn-app-id <APP>"));
    assert!(usage("append t a.csv --txn-app-id app --txn-version -1").contains("'-1' is not a whole number from 0"));
    assert!(usage("append t a.csv --txn app").contains("it is not APP=VERSION"));
    assert!(usage("append t").contains("<SOURCE>..."));
}

#[test]
fn a_replace_has_exactly_one_scope() {
    let scope = |args: &str| load(&format!("replace t a.parquet {args}")).unwrap();
    assert_eq!(scope("--where day='2026-10-05'"), Load::replace(Scope::Where("day='2026-10-05'".to_owned())));
    let interval = Scope::Interval { column: "ts".to_owned(), start: "a".to_owned(), end: "b".to_owned() };
    assert_eq!(scope("--interval ts=a/b"), Load::replace(interval));
    assert_eq!(scope("--partitions"), Load::replace(Scope::Partitions));
    assert_eq!(scope("--all --allow-empty"), Load::replace(Scope::All).allow_empty(true));

    assert!(usage("replace t a.parquet").contains("--where <SQL>|--interval <COLUMN=START/END>|--partitions|--all"));
    assert!(usage("replace t a.parquet --all --partitions").contains("cannot be used with"));
    assert_eq!(load("replace t a.parquet --interval ts=a").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn keys_and_order_reach_the_load() {
    let merge = load("merge t a.ndjson --key a,_b --newest-by ts_desc,_lsn_asc --null-keys match");
    let expected = Load::merge(["a", "b"]).newest_by("ts desc, lsn asc").unwrap().null_keys(NullKeys::Match);
    assert_eq!(merge.unwrap(), expected);
    assert_eq!(load("insert t a.ndjson --key id").unwrap(), Load::insert(["id"]));

    assert!(usage("merge t a.ndjson").contains("--key <COLUMNS>"));
    assert!(usage("insert t a.ndjson --key a,,b").contains("a column's name is missing"));
    assert_eq!(load("merge t a.ndjson --key a --newest-by ts_sideways").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_schema_is_text_or_a_file() {
    let file = std::env::temp_dir().join(format!("deltaonce-schema-{}.json", std::process::id()));
    std::fs::write(&file, "{\"type\":\"struct\"}").unwrap();
    let spec =
        |schema: &str| load(&format!("append t a.csv --schema {schema} --partition-by b,c")).map(|load| load.create);
    let expected = |schema: &str| {
        let partition_by = vec!["b".to_owned(), "c".to_owned()];
        Some(TableSpec { schema: Some(schema.to_owned()), partition_by, properties: Vec::new() })
    };
    assert_eq!(spec("a_bigint,_b_date").unwrap(), expected("a bigint, b date"));
    assert_eq!(spec("{}").unwrap(), expected("{}"));
    assert_eq!(spec(file.to_str().unwrap()).unwrap(), expected("{\"type\":\"struct\"}"));
    std::fs::remove_file(&file).unwrap();
    let missing = spec("orders.json").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Invalid);
    assert!(missing.message().starts_with("the schema file 'orders.json' cannot be read"), "{missing}");
}

#[test]
fn a_table_is_created_from_what_is_said() {
    let cli =
        parse("create t --schema a_bigint --partition-by a --property delta.appendOnly=true --property k=a=b").unwrap();
    let Command::Create(create) = cli.command else { panic!("not a create") };
    let expected = TableSpec {
        schema: Some("a bigint".to_owned()),
        partition_by: vec!["a".to_owned()],
        properties: vec![("delta.appendOnly".to_owned(), "true".to_owned()), ("k".to_owned(), "a=b".to_owned())],
    };
    assert_eq!(create.spec().unwrap(), expected);
    assert!(usage("create t").contains("--schema <FILE|COLUMNS>"));
}

#[test]
fn options_of_a_new_table_stand_for_properties() {
    let line = "create t --schema a_bigint --bloom a,_`b,c` --change-data-feed --deletion-vectors --property k=v";
    let Command::Create(create) = parse(line).unwrap().command else { panic!("not a create") };
    let expected = [
        ("delta.enableDeletionVectors", "true"),
        ("delta.enableChangeDataFeed", "true"),
        ("deltaonce.bloomFilterColumns", "a, `b,c`"),
        ("k", "v"),
    ];
    let expected: Vec<_> = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(create.spec().unwrap().properties, expected);
    assert!(usage("append t a.csv --deletion-vectors").contains("unexpected argument"));
}

#[test]
fn properties_are_set_as_given() {
    let properties = |line: &str| match parse(line).unwrap().command {
        Command::Set(set) => set.properties(),
        other => panic!("{other:?} is no set"),
    };
    let expected = Properties::new([("delta.appendOnly", "true"), ("k", "a=b")]);
    assert_eq!(properties("set t delta.appendOnly=true k=a=b"), expected);
    let tuned = expected.run_id("r").deadline(Duration::from_secs(90));
    assert_eq!(properties("set t delta.appendOnly=true k=a=b --run-id r --commit-timeout 90s"), tuned);
    assert!(usage("set t").contains("<KEY=VALUE>"));
    assert!(usage("set t delta.appendOnly").contains("it is not KEY=VALUE"));
}

#[test]
fn a_run_is_tuned() {
    assert_eq!(load("append t a.csv --commit-timeout 90s").unwrap().deadline, Duration::from_secs(90));
    assert!(usage("append t a.csv --commit-timeout 90").contains("it is not a time like 90s"));
    let cli = parse("--output json append t a.csv -q").unwrap();
    assert_eq!((cli.output.output, cli.output.quiet), (Output::Json, true));
    assert_eq!(parse("append t a.csv").unwrap().output.output, Output::Text);
}

#[test]
fn a_merge_updates_a_part_of_a_row_and_is_bounded() {
    let asked =
        load("merge t a.csv --key id --newest-by at --update-columns a,b --set c=source.c_=_1 --set d=target.d");
    let expected = Load::merge(["id"]).newest_by("at").unwrap().update_columns(["a", "b"]).unwrap();
    let expected = expected.set("c", "source.c = 1").unwrap().set("d", "target.d").unwrap();
    assert_eq!(asked.unwrap(), expected);
    assert!(usage("merge t a.csv --key id --set c").contains("it is not COLUMN=EXPRESSION"));
    assert!(usage("insert t a.csv --key id --memory lots").contains("it is not a size of at least 1 MiB"));
}

#[test]
fn an_option_without_a_value_is_refused_without_repeating_it() {
    let Command::Append(append) = parse("append t a.csv --storage-option hunter2").unwrap().command else { panic!() };
    let error = append.load.storage.options().unwrap_err();
    assert_eq!(error.to_string(), "a --storage-option is not understood: it is not KEY=VALUE");
    let Command::Append(append) = parse("append t a.csv --storage-option k=a=b").unwrap().command else { panic!() };
    assert_eq!(append.load.storage.options().unwrap(), [("k".to_owned(), "a=b".to_owned())]);
}

#[test]
fn the_help_is_as_recorded() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/help.txt");
    let help = whole_help();
    if std::env::var_os("DELTAONCE_RECORD_HELP").is_some() {
        std::fs::write(file, &help).unwrap();
    }
    let recorded = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        help == recorded,
        "the help differs from {file}; look at it and record it with: DELTAONCE_RECORD_HELP=1 cargo test -p deltaonce-cli the_help_is_as_recorded"
    );
}

/// The long help of every command, at a fixed width.
fn whole_help() -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut text = command.render_long_help().to_string();
    for sub in command.get_subcommands_mut() {
        let name = sub.get_name().to_owned();
        write!(text, "\n{}\n$ deltaonce {name} --help\n\n{}", "-".repeat(100), sub.render_long_help()).unwrap();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}
