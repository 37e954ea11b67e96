use std::collections::HashMap;

use arrow::datatypes::{Field, Fields, Schema};

use super::*;
use crate::error::ErrorKind;
use crate::plan::testing::{every_type, places, rows, table};

fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// The constraints that the table `check` by Spark has.
#[test]
fn a_row_for_which_a_check_is_false_or_null_is_refused_by_name() {
    let schema = every_type();
    let constraints = Constraints::of(
        &schema,
        &properties(&[
            ("delta.constraints.positive", "id > 0"),
            ("delta.constraints.known", "s is null or s <> 'bad'"),
            ("delta.appendOnly", "false"),
        ]),
    )
    .unwrap();
    let check = |lines: &[&str]| constraints.check(&rows(&schema, lines), &places("day.csv", 2));
    check(&[r#"{"id":1}"#, r#"{"id":2,"s":"good"}"#]).unwrap();

    let error = check(&[r#"{"id":1}"#, r#"{"id":0}"#, r#"{"id":3}"#, "{}"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.message(), "2 rows break the table's CHECK constraint 'positive': id > 0");
    assert_eq!(error.evidence(), ["day.csv line 3: id=0", "day.csv line 5: id=null"]);

    let error = check(&[r#"{"id":1,"s":"bad"}"#]).unwrap_err();
    assert_eq!(error.message(), "1 row breaks the table's CHECK constraint 'known': s is null or s <> 'bad'");
}

#[test]
fn a_constraint_that_cannot_be_checked_is_refused_by_name() {
    let schema = every_type();
    for text in ["frobnicate(id) > 0", "nope > 0", "id > rand()", r"s <> 'a\tb'", ""] {
        let error = Constraints::of(&schema, &properties(&[("delta.constraints.odd", text)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
        assert!(error.message().contains("'odd'"), "{error}");
    }
}

fn with_metadata(metadata: &str) -> TableSchema {
    let metadata = HashMap::from([(INVARIANT.to_owned(), metadata.to_owned())]);
    let field = Field::new("id", DataType::Int64, true).with_metadata(metadata);
    TableSchema::new(Schema::new(vec![field]).into(), Vec::new())
}

#[test]
fn invariants_of_columns_are_checked() {
    let schema = with_metadata(r#"{"expression":{"expression":"id < 10"}}"#);
    let constraints = Constraints::of(&schema, &BTreeMap::new()).unwrap();
    constraints.check(&rows(&schema, &[r#"{"id":9}"#]), &places("a", 1)).unwrap();
    let error = constraints.check(&rows(&schema, &[r#"{"id":10}"#]), &places("a", 1)).unwrap_err();
    assert_eq!(error.message(), "1 row breaks the table's invariant of column 'id': id < 10");

    for odd in ["", "id < 10", r#"{"expression":"id < 10"}"#] {
        let error = Constraints::of(&with_metadata(odd), &BTreeMap::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{odd}");
    }
    let Some(inner) = with_metadata("x").columns().fields().first().cloned() else { panic!() };
    let nested = table(&[("st", DataType::Struct(Fields::from(vec![inner])))], &[]);
    assert_eq!(Constraints::of(&nested, &BTreeMap::new()).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// B09: an empty text in a partition column would come back as null.
#[test]
fn an_empty_text_in_a_partition_column_is_refused() {
    let schema = table(&[("p", DataType::Utf8), ("v", DataType::Utf8)], &["p"]);
    let constraints = Constraints::of(&schema, &BTreeMap::new()).unwrap();
    constraints.check(&rows(&schema, &[r#"{"p":"abc","v":""}"#, "{}"]), &places("a", 1)).unwrap();
    let error = constraints.check(&rows(&schema, &["{}", r#"{"p":""}"#]), &places("a", 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.evidence(), ["a row 2".replace("row", "line")]);
}
