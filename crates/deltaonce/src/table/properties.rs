//! The table properties that this library sets: their values, and what each asks of the table.

use std::collections::BTreeMap;

use super::protocol::{APPEND_ONLY, CHANGE_DATA_FEED, CHECK_CONSTRAINTS, DELETION_VECTORS, Feature};
use super::schema::TableSchema;
use crate::error::{Error, Result};
use crate::stage::settings::{self, BLOOM_COLUMNS};

const CHANGE_FEED: &str = "delta.enableChangeDataFeed";
const VECTORS: &str = "delta.enableDeletionVectors";

/// The start of the name of a CHECK constraint's property.
pub(crate) const CONSTRAINTS: &str = "delta.constraints.";

/// Properties that this library understands on a table that it makes or changes; others of `delta.*` may ask for more than
/// it does.
const KNOWN: [&str; 13] = [
    "delta.appendOnly",
    CHANGE_FEED,
    VECTORS,
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.parquet.compression.codec",
    BLOOM_COLUMNS,
];

/// Columns that readers of a change data feed add (protocol, "Change Data Files").
const FEED_COLUMNS: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];

/// Properties by name.
///
/// # Errors
/// `Invalid` for one without a name, or given twice with different values.
pub(crate) fn collected(pairs: &[(String, String)]) -> Result<BTreeMap<String, String>> {
    let mut properties: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in pairs {
        if key.trim().is_empty() {
            return Err(Error::invalid(format!("a property with the value '{value}' has no name")));
        }
        match properties.insert(key.clone(), value.clone()) {
            Some(earlier) if earlier != *value => {
                return Err(Error::invalid(format!(
                    "property '{key}' is given twice, as '{earlier}' and as '{value}'; say it once"
                )));
            }
            _ => {}
        }
    }
    Ok(properties)
}

/// Whether all of them may be set, whatever the table.
///
/// # Errors
/// `Unsupported` for a property of Delta's or of this library that is not known here, `Invalid` for a value that it does
/// not take.
pub(crate) fn check(properties: &BTreeMap<String, String>) -> Result<()> {
    properties.iter().try_for_each(|(key, value)| {
        check_name(key)?;
        check_value(key, value)
    })
}

fn check_name(key: &str) -> Result<()> {
    let lower = key.to_ascii_lowercase();
    let is_reserved = lower.starts_with("delta.") || lower.starts_with("deltaonce.");
    let is_constraint = key.strip_prefix(CONSTRAINTS).is_some_and(|name| !name.is_empty());
    if !is_reserved || is_constraint || KNOWN.contains(&key) {
        return Ok(());
    }
    Err(Error::unsupported(format!("property '{key}' is not one that this version sets"))
        .hint(format!("it knows delta.constraints.NAME, {}", KNOWN.join(", "))))
}

fn check_value(key: &str, value: &str) -> Result<()> {
    let wanted = match key {
        "delta.appendOnly" | CHANGE_FEED | VECTORS | "delta.enableExpiredLogCleanup" => {
            (!matches!(value, "true" | "false")).then_some("true or false")
        }
        "delta.checkpointInterval" => {
            (!value.parse::<u32>().is_ok_and(|n| n > 0)).then_some("a number of versions from 1")
        }
        "delta.dataSkippingNumIndexedCols" => {
            (!value.parse::<i64>().is_ok_and(|n| n >= -1)).then_some("a number of columns, or -1 for all")
        }
        "delta.deletedFileRetentionDuration"
        | "delta.logRetentionDuration"
        | "delta.setTransactionRetentionDuration" => {
            (!is_interval(value)).then_some("an interval, such as 'interval 30 days'")
        }
        _ => None,
    };
    match wanted {
        None => Ok(()),
        Some(wanted) => Err(Error::invalid(format!("property '{key}' is '{value}'; it takes {wanted}"))),
    }
}

/// Whether it is `interval N UNIT`, with the units that Delta's properties take.
fn is_interval(text: &str) -> bool {
    const UNITS: [&str; 8] = ["week", "day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"];
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [interval, number, unit] => {
            interval.eq_ignore_ascii_case("interval")
                && number.parse::<u64>().is_ok()
                && UNITS.contains(&unit.to_ascii_lowercase().trim_end_matches('s'))
        }
        _ => false,
    }
}

/// Whether they may be set on a table of these columns.
///
/// # Errors
/// `Refused` for a change data feed beside a column that has the name of one of its own; `Invalid` for a property of data
/// files that cannot be obeyed here, `Unsupported` for a codec that is not written.
pub(crate) fn check_columns(table: &str, schema: &TableSchema, properties: &BTreeMap<String, String>) -> Result<()> {
    if is_true(properties, CHANGE_FEED) {
        let fields = schema.columns().fields();
        let taken = |name: &&String| FEED_COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(name));
        if let Some(name) = fields.iter().map(|field| field.name()).find(taken) {
            return Err(Error::refused(format!(
                "{table} has a column '{name}', which is a name that the change data feed gives to a column of its own; \
                 nothing was changed"
            ))
            .hint(format!("leave out {CHANGE_FEED}, or call the column by another name")));
        }
    }
    settings::check(schema, properties).map_err(|error| error.about(table))
}

/// The features that they need.
pub(crate) fn needed(properties: &BTreeMap<String, String>) -> Vec<&'static Feature> {
    let mut needed = Vec::new();
    if is_true(properties, "delta.appendOnly") {
        needed.push(&APPEND_ONLY);
    }
    if properties.keys().any(|key| key.starts_with(CONSTRAINTS)) {
        needed.push(&CHECK_CONSTRAINTS);
    }
    if is_true(properties, CHANGE_FEED) {
        needed.push(&CHANGE_DATA_FEED);
    }
    if is_true(properties, VECTORS) {
        needed.push(&DELETION_VECTORS);
    }
    needed
}

fn is_true(properties: &BTreeMap<String, String>, key: &str) -> bool {
    properties.get(key).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::error::ErrorKind;

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_property_is_given_once() {
        let pair = |value: &str| ("delta.appendOnly".to_owned(), value.to_owned());
        assert_eq!(collected(&[pair("true"), pair("true")]).unwrap(), of(&[("delta.appendOnly", "true")]));
        let error = collected(&[pair("true"), pair("false")]).unwrap_err();
        assert!(error.message().contains("'delta.appendOnly' is given twice"), "{error}");
        assert!(collected(&[(" ".to_owned(), "true".to_owned())]).is_err());
    }

    #[test]
    fn what_delta_or_this_library_may_mean_by_a_name_must_be_known() {
        for name in ["delta.enableRowTracking", "Delta.appendonly", "DELTA.x", "delta.constraints.", "deltaonce.bloom"]
        {
            let error = check(&of(&[(name, "true")])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
            assert!(error.message().contains(name), "{error}");
            assert!(error.advice().unwrap().contains("delta.enableDeletionVectors"), "{error:?}");
        }
        for name in ["owner", "deltalake.x", "delta.constraints.positive", "delta.appendOnly"] {
            check(&of(&[(name, "true")])).unwrap();
        }
    }

    #[test]
    fn a_value_is_of_its_propertys_kind() {
        for (key, bad, good) in [
            ("delta.appendOnly", "yes", "true"),
            ("delta.enableDeletionVectors", "TRUE", "false"),
            ("delta.enableChangeDataFeed", "", "true"),
            ("delta.checkpointInterval", "0", "1"),
            ("delta.dataSkippingNumIndexedCols", "-2", "-1"),
            ("delta.logRetentionDuration", "30 days", "interval 30 days"),
        ] {
            let error = check(&of(&[(key, bad)])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(key), "{error}");
            check(&of(&[(key, good)])).unwrap();
        }
    }

    #[test]
    fn a_change_data_feed_needs_its_columns_names() {
        let schema = |name: &str| {
            TableSchema::new(Schema::new(vec![Field::new(name, DataType::Int64, true)]).into(), Vec::new())
        };
        let feed = |value| of(&[(CHANGE_FEED, value)]);
        let error = check_columns("t", &schema("_Commit_Version"), &feed("true")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains("'_Commit_Version'"), "{error}");
        check_columns("t", &schema("_Commit_Version"), &feed("false")).unwrap();
        check_columns("t", &schema("id"), &feed("true")).unwrap();
    }

    #[test]
    fn only_what_is_switched_on_needs_a_feature() {
        let all =
            [("delta.appendOnly", "true"), (CHANGE_FEED, "true"), (VECTORS, "true"), ("delta.constraints.c", "x > 0")];
        assert_eq!(needed(&of(&all)), [&APPEND_ONLY, &CHECK_CONSTRAINTS, &CHANGE_DATA_FEED, &DELETION_VECTORS]);
        let off = [("delta.appendOnly", "false"), (CHANGE_FEED, "false"), (VECTORS, "false"), ("owner", "true")];
        assert!(needed(&of(&off)).is_empty());
    }
}
