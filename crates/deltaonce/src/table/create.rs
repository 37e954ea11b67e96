//! The definition of a table that is to be made.

use std::collections::BTreeMap;

use arrow::datatypes::Schema;
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use deltalake::kernel::{DataType, StructType};

use super::columns;
use super::definition::{Definition, Format, MetaData, Protocol};
use super::schema::TableSchema;
use crate::error::{Error, Result};
use crate::load::TableSpec;
use crate::prepare::constraints::Constraints;

impl Definition {
    /// What `spec` asks for, columns taken from `source` where it declares none.
    ///
    /// # Errors
    /// `Invalid` where no columns are known, a name is given twice, a partition column is missing or of a nested type,
    /// or a property asks for a feature that this library does not write.
    pub(crate) fn of(table: &str, spec: &TableSpec, source: Option<&Schema>, id: String, now: i64) -> Result<Self> {
        let schema = match (&spec.schema, source) {
            (Some(text), _) => columns::parse(text)?,
            (None, Some(source)) => columns::of_arrow(source, "the source")?,
            (None, None) => {
                return Err(Error::invalid(format!("{table} does not exist, and its columns are not known"))
                    .hint("declare them, for example --schema \"id bigint not null, amount decimal(12,2)\""));
            }
        };
        check_partition_columns(table, &schema, &spec.partition_by)?;
        check_metadata(table, &schema)?;
        let configuration: BTreeMap<String, String> = spec.properties.iter().cloned().collect();
        configuration.iter().try_for_each(|(key, value)| check_property(key, value))?;
        let protocol = protocol(&schema, &configuration)?;
        let arrow: Schema = (&schema)
            .try_into_arrow()
            .map_err(|e| Error::internal(format!("the columns of {table} have no Arrow types")).caused_by(e))?;
        let schema_string = serde_json::to_string(&schema)
            .map_err(|e| Error::internal(format!("the columns of {table} cannot be written")).caused_by(e))?;
        let table_schema = TableSchema::new(arrow.into(), spec.partition_by.clone());
        Constraints::of(&table_schema, &configuration).map_err(|error| error.about(table))?;
        Ok(Self {
            protocol,
            metadata: MetaData {
                id,
                format: Format::default(),
                schema_string,
                partition_columns: spec.partition_by.clone(),
                configuration,
                created_time: Some(now),
            },
            schema: table_schema,
        })
    }
}

fn check_partition_columns(table: &str, schema: &StructType, partition_by: &[String]) -> Result<()> {
    for (i, name) in partition_by.iter().enumerate() {
        let Some(field) = schema.field(name) else {
            return Err(Error::invalid(format!("{table} cannot be partitioned by '{name}': there is no such column")));
        };
        if !matches!(field.data_type(), DataType::Primitive(_)) {
            return Err(Error::invalid(format!("{table} cannot be partitioned by '{name}': its type is nested")));
        }
        if partition_by.iter().take(i).any(|earlier| earlier == name) {
            return Err(Error::invalid(format!("{table} cannot be partitioned by '{name}' twice")));
        }
    }
    if !partition_by.is_empty() && partition_by.len() == schema.num_fields() {
        return Err(Error::invalid(format!(
            "{table} cannot be partitioned by all of its columns: no file would hold any"
        )));
    }
    Ok(())
}

/// Refuses columns whose metadata asks for more than a type: a value that is computed, given out or filled in.
fn check_metadata(table: &str, schema: &StructType) -> Result<()> {
    for field in schema.fields() {
        let asks =
            |key: &&String| (key.starts_with("delta.") && *key != "delta.invariants") || *key == "CURRENT_DEFAULT";
        if let Some(key) = field.metadata().keys().find(asks) {
            return Err(Error::unsupported(format!(
                "{table} cannot be made with '{key}' on column '{}': this version does not write such columns",
                field.name()
            ))
            .hint("leave it out of the schema"));
        }
        if let DataType::Struct(inner) = field.data_type() {
            check_metadata(table, inner)?;
        }
    }
    Ok(())
}

fn check_property(key: &str, value: &str) -> Result<()> {
    let wanted = match key {
        "delta.appendOnly" | "delta.enableExpiredLogCleanup" => {
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

/// Properties that this library understands on a table of its own making; others of `delta.*` may ask for more than it does.
const PROPERTIES: [&str; 10] = [
    "delta.appendOnly",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.parquet.compression.codec",
];

/// The least protocol that the columns and properties need.
fn protocol(schema: &StructType, configuration: &BTreeMap<String, String>) -> Result<Protocol> {
    let mut writer = 2;
    for key in configuration.keys().filter(|key| key.starts_with("delta.")) {
        if key.starts_with("delta.constraints.") {
            writer = 3;
        } else if !PROPERTIES.contains(&key.as_str()) {
            return Err(Error::unsupported(format!("property '{key}' is not one that this version sets"))
                .hint(format!("it knows delta.constraints.NAME, {}", PROPERTIES.join(", "))));
        }
    }
    if !has_type(schema, &|data_type| *data_type == DataType::TIMESTAMP_NTZ) {
        return Ok(Protocol {
            min_reader_version: 1,
            min_writer_version: writer,
            reader_features: None,
            writer_features: None,
        });
    }
    let mut features = vec!["timestampNtz".to_owned(), "appendOnly".to_owned(), "invariants".to_owned()];
    if writer == 3 {
        features.push("checkConstraints".to_owned());
    }
    Ok(Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: Some(vec!["timestampNtz".to_owned()]),
        writer_features: Some(features),
    })
}

fn has_type(schema: &StructType, wanted: &dyn Fn(&DataType) -> bool) -> bool {
    fn within(data_type: &DataType, wanted: &dyn Fn(&DataType) -> bool) -> bool {
        wanted(data_type)
            || match data_type {
                DataType::Struct(inner) => has_type(inner, wanted),
                DataType::Array(inner) => within(inner.element_type(), wanted),
                DataType::Map(inner) => within(inner.key_type(), wanted) || within(inner.value_type(), wanted),
                _ => false,
            }
    }
    schema.fields().any(|field| within(field.data_type(), wanted))
}
