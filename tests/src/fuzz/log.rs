//! Tables of somebody else: logs and files that Spark and the product wrote, spoilt in one or more places.

use std::fs;

use bytes::Bytes;
use deltaonce::{Contract, Error, Format, Load, Scope, Table, TableSpec};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::lake::{Lake, Objects, harmless, sensible, tells};
use super::sample::{bytes, sample};
use super::{Case, Random, mutate};
use crate::golden::Golden;

/// Actions that no writer writes, or that say something new.
const ACTIONS: [&str; 16] = [
    r#"{"unknown":{"x":[1,2,3]}}"#,
    "{}",
    "[]",
    "null",
    "\"add\"",
    r#"{"add":null}"#,
    r#"{"add":{},"remove":{}}"#,
    r#"{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}"#,
    r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["quantum"],"writerFeatures":["quantum"]}}"#,
    r#"{"protocol":{"minReaderVersion":-1,"minWriterVersion":2147483647}}"#,
    r#"{"metaData":{"id":"x","format":{"provider":"orc","options":{}},"schemaString":"{}","partitionColumns":["nowhere"],"configuration":{}}}"#,
    r#"{"txn":{"appId":"orders","version":9223372036854775807,"lastUpdated":-1}}"#,
    r#"{"txn":{"appId":"","version":-5}}"#,
    r#"{"domainMetadata":{"domain":"delta.clustering","configuration":"[[[[","removed":false}}"#,
    r#"{"sidecar":{"path":"../../outside/kept.parquet","sizeInBytes":1,"modificationTime":1}}"#,
    r#"{"commitInfo":{"timestamp":"yesterday","inCommitTimestamp":-1,"operationParameters":[1],"txnId":7,"deltaonce":"x"}}"#,
];

/// Deletion vectors: in other files, in the log, wrong in size or place.
const VECTORS: [&str; 8] = [
    r#"{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}"#,
    r#"{"storageType":"i","pathOrInlineDv":"wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L","sizeInBytes":40,"cardinality":6}"#,
    r#"{"storageType":"i","pathOrInlineDv":"~~~","sizeInBytes":-1,"cardinality":-6}"#,
    r#"{"storageType":"p","pathOrInlineDv":"file:///etc/passwd","offset":-4,"sizeInBytes":2147483647,"cardinality":9223372036854775807}"#,
    r#"{"storageType":"p","pathOrInlineDv":"../outside/kept.parquet","offset":1,"sizeInBytes":1,"cardinality":1}"#,
    r#"{"storageType":"q","pathOrInlineDv":"","sizeInBytes":0,"cardinality":0}"#,
    r#"{"storageType":"u","pathOrInlineDv":"é","offset":0,"sizeInBytes":34,"cardinality":2}"#,
    r#"{"storageType":"i"}"#,
];

/// Names in the log's folder.
const NAMES: [&str; 14] = [
    "00000000000000000001.json",
    "00000000000000000007.json",
    "00000000000000000099.json",
    "09223372036854775807.json",
    "18446744073709551615.json",
    "99999999999999999999.json",
    "1.json",
    "00000000000000000002.json.tmp",
    "00000000000000000001.00000000000000000003.compacted.json",
    "00000000000000000002.checkpoint.parquet",
    "00000000000000000003.checkpoint.0000000001.0000000002.parquet",
    "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
    "09223372036854775807.checkpoint.parquet",
    "_staged_commits/00000000000000000002.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
];

/// How the names start of tables that take every load.
const TAKING: [&str; 9] =
    ["ours", "plain", "partitioned", "types", "timestamp_ntz", "checkpoint", "stats_few", "not_null", "check"];

/// Tables to spoil, with their names.
static TABLES: OnceCell<Vec<(String, Objects)>> = OnceCell::const_new();

pub(super) async fn tables() -> &'static [(String, Objects)] {
    TABLES.get_or_init(make_tables).await
}

async fn make_tables() -> Vec<(String, Objects)> {
    let golden = Golden::default();
    let mut tables = Vec::new();
    for name in golden.names() {
        let mut objects = Objects::new();
        let mut folders = vec![golden.path(&name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a golden table's folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let below =
                    path.strip_prefix(golden.path(&name)).expect("it is below").to_str().expect("UTF-8").to_owned();
                objects.insert(format!("t/{below}"), fs::read(&path).expect("a golden file").into());
            }
        }
        tables.push((name, objects));
    }
    for partitioned in [false, true] {
        let (lake, _) = sample().await.lake(partitioned).await;
        // Past a checkpoint.
        for version in 0..9 {
            let load = Load::append().txn("orders", version);
            let rows = format!("{{\"id\":{}}}\n", 100 + version);
            lake.table().await.apply(&load, bytes(rows, Format::Ndjson)).await.expect("an append");
        }
        tables.push((format!("ours, partitioned: {partitioned}"), lake.objects().await));
    }
    for (_, objects) in &mut tables {
        // Whatever leads out of the table leads to a file that can be read.
        let file = objects.iter().find(|(path, _)| path.ends_with(".parquet") && !path.contains("_delta_log"));
        let file = file.expect("a table has a file").1.clone();
        objects.insert("outside/kept.parquet".to_owned(), file);
    }
    tables
}

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let tables = tables().await;
    // Half of them such as take all loads: what is spoilt in the others is seldom reached.
    let taking: Vec<_> = tables.iter().filter(|(name, _)| TAKING.iter().any(|start| name.starts_with(start))).collect();
    let (name, objects) = if case.random.once_in(2) { case.random.pick(tables) } else { *case.random.pick(&taking) };
    case.note(format!("table: {name}"));
    let mut objects = objects.clone();
    for _ in 0..=case.random.length(4) {
        let spoilt = spoil(&mut case.random, &mut objects);
        case.note(spoilt);
    }
    let on_disk = case.random.once_in(8);
    let lake = if on_disk { Lake::on_disk(&objects) } else { Lake::holding(&objects).await };
    for _ in 0..=case.random.length(2) {
        let before = lake.objects().await;
        let table = lake.table().await;
        let committed = act(case, &table).await?;
        harmless(&before, &lake.objects().await, committed)?;
    }
    Ok(())
}

/// Does something to a table; true if it committed.
async fn act(case: &mut Case, table: &Table) -> Result<bool, String> {
    let told = |error: Error| tells(&error).map(|()| false);
    let id = case.random.within(1, 3);
    let scopes = [
        Scope::All,
        Scope::Partitions,
        Scope::Where(format!("id = {id}")),
        Scope::Where("id > 0 AND id < 50".to_owned()),
        Scope::Interval { column: "id".to_owned(), start: "2".to_owned(), end: "200".to_owned() },
    ];
    let scope = case.random.pick(&scopes);
    let load = match case.random.below(10) {
        0 => {
            case.note("describe");
            return table.describe().await.map_or_else(told, |_| Ok(false));
        }
        1 => {
            case.note("history");
            return table.history(30).await.map_or_else(told, |_| Ok(false));
        }
        2 => {
            case.note("txns");
            return table.txns().await.map_or_else(told, |_| Ok(false));
        }
        3 => {
            case.note("create");
            let spec = TableSpec { schema: Some("id bigint".to_owned()), ..TableSpec::default() };
            let result = table.create(&spec).await;
            return sensible(&result).map(|()| result.is_ok_and(|receipt| receipt.attempts > 0));
        }
        4 => Load::append().txn("orders", 50),
        5 => Load::merge(["id"]),
        6 => Load::insert(["id"]).txn("orders", 3),
        _ => Load::replace(scope.clone()).allow_empty(true),
    };
    let rows = if matches!(load.contract, Contract::Replace(_)) && !case.random.once_in(3) {
        ""
    } else {
        *case.random.pick(&["", "{\"id\":1}\n", "{\"id\":2}\n{\"id\":3}\n{\"id\":900}\n"])
    };
    case.note(format!("{:?} of {rows:?}", load.contract));
    let result = table.apply(&load, bytes(rows, Format::Ndjson)).await;
    case.note(match &result {
        Ok(receipt) => format!("{:?}", receipt.outcome),
        Err(error) => format!("{:?}: {error}", error.kind()),
    });
    sensible(&result)?;
    Ok(result.is_ok_and(|receipt| receipt.attempts > 0))
}

/// Spoils one thing of a table, and says what.
fn spoil(random: &mut Random, objects: &mut Objects) -> String {
    let all: Vec<String> = objects.keys().filter(|path| path.starts_with("t/")).cloned().collect();
    let entries: Vec<&String> =
        all.iter().filter(|path| path.contains("/_delta_log/") && path.ends_with(".json")).collect();
    let others: Vec<&String> = all.iter().filter(|path| !entries.contains(path)).collect();
    if all.is_empty() {
        return "nothing is left".to_owned();
    }
    if !entries.is_empty() && !random.once_in(4) {
        let path = (*random.pick(&entries)).clone();
        let text = String::from_utf8_lossy(&objects[&path]).into_owned();
        let (text, how) = entry(random, &text);
        objects.insert(path.clone(), text.into());
        return format!("{path}: {how}");
    }
    let path = if others.is_empty() || random.once_in(3) { random.pick(&all) } else { *random.pick(&others) }.clone();
    let content = objects[&path].clone();
    match random.below(6) {
        0 => {
            objects.remove(&path);
            format!("{path} is gone")
        }
        1 => {
            let name = format!("t/_delta_log/{}", random.pick(&NAMES));
            objects.insert(name.clone(), content);
            if random.once_in(2) {
                objects.remove(&path);
            }
            format!("{path} is at {name}")
        }
        2 => {
            let text = match random.below(5) {
                0 => String::new(),
                1 => r#"{"version":9223372036854775807,"size":-1,"parts":2147483647}"#.to_owned(),
                2 => r#"{"version":1,"size":9223372036854775807,"sizeInBytes":-1,"numOfAddFiles":1,"checksum":"x"}"#
                    .to_owned(),
                3 => mutate::json(
                    random,
                    r#"{"version":10,"size":12,"sizeInBytes":1,"numOfAddFiles":3,"checkpointSchema":{}}"#,
                ),
                _ => "[".repeat(100_000),
            };
            let note = format!("_last_checkpoint: {}", text.chars().take(200).collect::<String>());
            objects.insert("t/_delta_log/_last_checkpoint".to_owned(), text.into());
            note
        }
        _ => {
            let mut data = content.to_vec();
            if path.ends_with("_last_checkpoint") || path.ends_with(".crc") {
                data = mutate::json(random, &String::from_utf8_lossy(&data)).into_bytes();
            } else if path.ends_with(".parquet") && data.len() > 100 && random.once_in(2) {
                // The footer says where everything is.
                let footer = data.len() - random.below(data.len().min(3_000)) - 1;
                data[footer] = random.next() as u8;
            } else {
                for _ in 0..=random.length(4) {
                    mutate::bytes(random, &mut data);
                }
            }
            objects.insert(path.clone(), Bytes::from(data));
            format!("{path} is spoilt")
        }
    }
}

/// Spoils an entry's text, and says how.
fn entry(random: &mut Random, text: &str) -> (String, String) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = random.below(lines.len() + 1);
    if random.once_in(8) || at == lines.len() {
        let action = *random.pick(&ACTIONS);
        lines.insert(at, action.to_owned());
        return (lines.join("\n"), format!("{action} comes in"));
    }
    if random.once_in(8) {
        let mut bytes = text.as_bytes().to_vec();
        mutate::bytes(random, &mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return (text, "its bytes are spoilt".to_owned());
    }
    if random.once_in(10) {
        let line = lines.remove(at);
        let note = format!("without {line}");
        if random.once_in(2) {
            lines.insert(at, line.clone());
            lines.push(line);
        }
        return (lines.join("\n"), note);
    }
    lines[at] = match (random.once_in(2), serde_json::from_str::<Value>(&lines[at])) {
        (true, Ok(mut action)) if action.get("add").is_some_and(Value::is_object) => {
            let add = &mut action["add"];
            match random.below(4) {
                0 => add["path"] = (*random.pick(&mutate::PATHS)).into(),
                1 => {
                    let vector: &str = random.pick::<&str>(&VECTORS);
                    add["deletionVector"] = serde_json::from_str(vector).unwrap_or_default();
                }
                2 => {
                    add["partitionValues"] = random
                        .pick(&[
                            json!({"p": "x", "q": ""}),
                            json!({}),
                            json!({"p": 1}),
                            json!([]),
                            json!({"p": "99999999999"}),
                        ])
                        .clone()
                }
                _ => add["stats"] = mutate::json(random, add["stats"].as_str().unwrap_or("{}")).into(),
            }
            action.to_string()
        }
        _ => mutate::json(random, &lines[at]),
    };
    let line = lines[at].clone();
    (lines.join("\n"), format!("it says {line}"))
}
