use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::fault::{Answer, Effect, FailingStore, Operation, Plan, Rule};
use crate::host::SystemHost;
use crate::load::{Load, TableSpec};
use crate::source::{Format, Source};
use crate::store::location::Location;
use crate::table::Table;

/// A table of two columns whose log this test writes, and whose store obeys a plan.
struct Lake {
    folder: tempfile::TempDir,
    plan: Plan,
}

impl Lake {
    /// Its first entry is of these actions.
    fn of(actions: &[Value]) -> Self {
        let lake = Self { folder: tempfile::tempdir().unwrap(), plan: Plan::new() };
        std::fs::create_dir_all(lake.entry_path(0).parent().unwrap()).unwrap();
        lake.put(0, actions);
        lake
    }

    fn entry_path(&self, version: u64) -> PathBuf {
        self.folder.path().join(format!("t/_delta_log/{version:020}.json"))
    }

    fn put(&self, version: u64, actions: &[Value]) {
        let text: String = actions.iter().map(|action| format!("{action}\n")).collect();
        std::fs::write(self.entry_path(version), text).unwrap();
    }

    async fn table(&self) -> Table {
        let location = Location::parse(self.folder.path().join("t").to_str().unwrap(), []).unwrap();
        let location = location.wrapped(|own| Arc::new(FailingStore::new(own, self.plan.clone()))).unwrap();
        Table::open(location, Arc::new(SystemHost::default())).await.unwrap()
    }

    async fn set(&self, properties: &[(&str, &str)]) -> Result<Receipt> {
        self.table().await.set_properties(&Properties::new(properties.iter().copied()).run_id("nightly")).await
    }

    /// An action of an entry, or null.
    fn action(&self, version: u64, kind: &str) -> Value {
        let text = std::fs::read_to_string(self.entry_path(version)).unwrap();
        let actions = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        actions.filter_map(|mut action| action.get_mut(kind).map(Value::take)).next().unwrap_or_default()
    }
}

fn protocol(reader: i32, writer: i32) -> Value {
    json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}})
}

/// What another writer may say of a table, spaces in the columns' JSON included.
fn metadata(configuration: Value) -> Value {
    json!({"metaData": {
        "id": "b1a9b6ab-6a5b-4a3e-8f8e-2d2b2f8a7f10",
        "name": "orders",
        "description": "all of \"them\"",
        "format": {"provider": "parquet", "options": {"k": "v"}},
        "schemaString": concat!(
            r#"{"type": "struct", "fields": [ {"name":"id","type":"long","nullable":true,"metadata":{"comment":"é"}},"#,
            r#" {"name":"day","type":"date","nullable":true,"metadata":{}} ]}"#
        ),
        "partitionColumns": ["day"],
        "configuration": configuration,
        "createdTime": 1_796_026_240_300_i64,
        "somethingNew": {"a": [1, 2]},
    }})
}

fn plain() -> Lake {
    Lake::of(&[
        protocol(1, 2),
        metadata(json!({"owner": "me", "delta.appendOnly": "false", "delta.somethingNew": "x"})),
    ])
}

#[tokio::test]
async fn all_else_of_the_definition_is_repeated_to_the_letter() {
    let lake = plain();
    let receipt = lake.set(&[("delta.appendOnly", "true"), ("team", "a \"b\"")]).await.unwrap();
    assert_eq!(receipt.outcome, Outcome::Committed { version: 1 });
    assert_eq!((receipt.contract.as_str(), receipt.run_id.as_deref()), ("set", Some("nightly")));
    let mut expected = metadata(json!({
        "owner": "me", "delta.appendOnly": "true", "delta.somethingNew": "x", "team": "a \"b\""
    }));
    assert_eq!(lake.action(1, "metaData"), expected["metaData"].take());
    assert_eq!(lake.action(1, "protocol"), Value::Null, "the versions stand for it already");
    let info = lake.action(1, "commitInfo");
    assert_eq!(info["operation"], "SET TBLPROPERTIES");
    let properties = info["operationParameters"]["properties"].as_str().unwrap();
    let properties: Value = serde_json::from_str(properties).unwrap();
    assert_eq!(properties, json!({"delta.appendOnly": "true", "team": "a \"b\""}));
    assert_eq!(info["txnId"].as_str(), receipt.token.as_deref());
    assert_eq!(info["deltaonce"], json!({"contract": "set", "runId": "nightly"}));

    let again = lake.set(&[("team", "a \"b\"")]).await.unwrap();
    assert_eq!((again.outcome, again.token), (Outcome::Unchanged { version: 1 }, None));
    assert!(!lake.entry_path(2).exists());
}

#[tokio::test]
async fn the_definition_is_read_from_a_checkpoint_too() {
    let lake = plain();
    lake.set(&[("team", "a")]).await.unwrap();
    let mut before = lake.action(1, "metaData");
    lake.table().await.existing().await.unwrap().checkpoint().await.unwrap();
    for version in 0..2 {
        std::fs::remove_file(lake.entry_path(version)).unwrap();
    }
    lake.set(&[("team", "b")]).await.unwrap();
    let mut after = lake.action(2, "metaData");
    assert_eq!(after["configuration"]["team"], "b");
    after["configuration"]["team"] = json!("a");
    // The kernel that wrote the checkpoint does not know it.
    before.as_object_mut().unwrap().remove("somethingNew");
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_feature_is_added_with_the_property_that_needs_it() {
    let lake = plain();
    lake.set(&[("delta.enableChangeDataFeed", "true")]).await.unwrap();
    assert_eq!(lake.action(1, "protocol"), json!({"minReaderVersion": 1, "minWriterVersion": 4}));
    lake.set(&[("delta.enableDeletionVectors", "false")]).await.unwrap();
    assert_eq!(lake.action(2, "protocol"), Value::Null);
    lake.set(&[("delta.enableDeletionVectors", "true")]).await.unwrap();
    let listed = json!({
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "deletionVectors"],
    });
    assert_eq!(lake.action(3, "protocol"), listed);
    // It opens, and takes rows.
    let rows = Source::reader(std::io::Cursor::new("id,day\n1,2026-10-05\n"), Format::Csv);
    lake.table().await.apply(&Load::append(), rows).await.unwrap();
}

#[tokio::test]
async fn a_property_without_its_feature_is_no_reason_to_leave_the_feature_out() {
    let lake = Lake::of(&[protocol(1, 1), metadata(json!({"delta.appendOnly": "true"}))]);
    let receipt = lake.set(&[("delta.appendOnly", "true")]).await.unwrap();
    assert_eq!(receipt.outcome, Outcome::Committed { version: 1 });
    assert_eq!(lake.action(1, "protocol"), json!({"minReaderVersion": 1, "minWriterVersion": 2}));
}

#[tokio::test]
async fn in_commit_timestamps_go_on() {
    let future = 4_000_000_000_000_i64;
    let listed = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]
    }});
    let lake = Lake::of(&[
        json!({"commitInfo": {"timestamp": future, "inCommitTimestamp": future, "operation": "CREATE TABLE"}}),
        listed,
        metadata(json!({"delta.enableInCommitTimestamps": "true"})),
    ]);
    lake.set(&[("owner", "me")]).await.unwrap();
    assert_eq!(lake.action(1, "commitInfo")["inCommitTimestamp"], future + 1);
}

/// The entry that another writer puts just before ours.
async fn with_rival(entry: Vec<Value>) -> (Lake, Result<Receipt>) {
    let lake = plain();
    let (path, text) = (lake.entry_path(1), entry.iter().map(|action| format!("{action}\n")).collect::<String>());
    let put = Rule::on(Operation::Put).path_containing("00000000000000000001.json").nth(1);
    lake.plan.add(put.before(move |_| {
        let (path, text) = (path.clone(), text.clone());
        async move { std::fs::write(path, text).unwrap() }
    }));
    let result = lake.set(&[("team", "a")]).await;
    (lake, result)
}

#[tokio::test]
async fn rows_of_another_writer_are_no_conflict() {
    let add = json!({"add": {
        "path": "day=2026-10-05/x.parquet", "partitionValues": {"day": "2026-10-05"}, "size": 1, "modificationTime": 1,
        "dataChange": true
    }});
    let (lake, result) = with_rival(vec![add]).await;
    assert_eq!(result.unwrap().outcome, Outcome::Committed { version: 2 });
    assert_eq!(lake.action(2, "commitInfo")["readVersion"], 0, "the change stood as it was");
}

#[tokio::test]
async fn what_another_writer_set_meanwhile_is_kept() {
    let (lake, result) = with_rival(vec![metadata(json!({"theirs": "1", "owner": "them"})), protocol(1, 3)]).await;
    assert_eq!(result.unwrap().outcome, Outcome::Committed { version: 2 });
    let configuration = lake.action(2, "metaData")["configuration"].take();
    assert_eq!(configuration, json!({"theirs": "1", "owner": "them", "team": "a"}));

    let (lake, result) = with_rival(vec![metadata(json!({"team": "a"}))]).await;
    assert_eq!(result.unwrap().outcome, Outcome::Unchanged { version: 1 }, "another writer set the same");
    assert!(!lake.entry_path(2).exists());
}

#[tokio::test]
async fn an_entry_whose_answer_was_lost_is_ours() {
    let lake = plain();
    let put = Rule::on(Operation::Put).path_containing("00000000000000000001.json");
    lake.plan.add(put.fails(Effect::Taken, Answer::Timeout));
    assert_eq!(lake.set(&[("team", "a")]).await.unwrap().outcome, Outcome::Committed { version: 1 });
    assert!(!lake.entry_path(2).exists());
}

#[tokio::test]
async fn what_the_rows_may_contradict_is_refused() {
    let lake = Lake::of(&[protocol(1, 3), metadata(json!({"delta.constraints.positive": "id > 0"}))]);
    for (key, value) in [("delta.constraints.positive", "id > 1"), ("delta.constraints.other", "id > 0")] {
        let error = lake.set(&[(key, value)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains(key) && error.message().contains("checked"), "{error}");
    }
    let same = lake.set(&[("delta.constraints.positive", "id > 0")]).await.unwrap();
    assert_eq!(same.outcome, Outcome::Unchanged { version: 0 });
}

#[tokio::test]
async fn what_cannot_be_set_leaves_the_table_as_it_was() {
    let lake = plain();
    for (properties, kind, says) in [
        (vec![], ErrorKind::Invalid, "no property"),
        (vec![("delta.enableRowTracking", "true")], ErrorKind::Unsupported, "delta.enableRowTracking"),
        (vec![("delta.appendOnly", "yes")], ErrorKind::Invalid, "true or false"),
        (vec![("delta.appendOnly", "true"), ("delta.appendOnly", "false")], ErrorKind::Invalid, "twice"),
        (vec![("deltaonce.bloomFilterColumns", "day")], ErrorKind::Invalid, "'day', which is a partition column"),
        (vec![("delta.parquet.compression.codec", "lzo")], ErrorKind::Unsupported, "lzo"),
        (vec![("delta.targetFileSize", "small")], ErrorKind::Invalid, "delta.targetFileSize"),
    ] {
        let error = lake.set(&properties).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{properties:?}: {error}");
        assert!(error.message().contains(says), "{properties:?}: {error}");
    }
    assert!(!lake.entry_path(1).exists());

    let odd = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "rowTracking"]
    }});
    let lake = Lake::of(&[odd, metadata(json!({}))]);
    let error = lake.set(&[("owner", "me")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("rowTracking"), "{error}");
}

#[tokio::test]
async fn statistics_of_a_clustered_table_stay_with_its_columns() {
    let clustered = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "clustering"]
    }});
    let lake = Lake::of(&[clustered, metadata(json!({}))]);
    let error = lake.set(&[("delta.dataSkippingNumIndexedCols", "1")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    lake.set(&[("owner", "me")]).await.unwrap();
}

#[tokio::test]
async fn there_must_be_a_table() {
    let lake = Lake { folder: tempfile::tempdir().unwrap(), plan: Plan::new() };
    let error = lake.set(&[("owner", "me")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("there is no Delta table"), "{error}");
}

#[tokio::test]
async fn a_table_is_made_with_what_its_properties_need() {
    let made = async |properties: &[(&str, &str)]| {
        let lake = Lake { folder: tempfile::tempdir().unwrap(), plan: Plan::new() };
        let spec = TableSpec {
            schema: Some("id bigint, v string, day date".to_owned()),
            partition_by: vec!["day".to_owned()],
            properties: properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        lake.table().await.create(&spec).await.map(|_| lake.action(0, "protocol"))
    };
    let feed = made(&[("delta.enableChangeDataFeed", "true")]).await.unwrap();
    assert_eq!(feed, json!({"minReaderVersion": 1, "minWriterVersion": 4}));
    let both = made(&[("delta.enableChangeDataFeed", "true"), ("delta.enableDeletionVectors", "true")]).await.unwrap();
    let writer = ["appendOnly", "invariants", "changeDataFeed", "deletionVectors"];
    assert_eq!(
        both,
        json!({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": writer})
    );
    made(&[("deltaonce.bloomFilterColumns", "id, v")]).await.unwrap();
    for columns in ["id, nothing", "day"] {
        let error = made(&[("deltaonce.bloomFilterColumns", columns)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
