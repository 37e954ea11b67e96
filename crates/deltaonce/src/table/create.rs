//! The definition of a table that is to be made.

use std::collections::BTreeMap;

use arrow::datatypes::Schema;
use delta_kernel::engine::arrow_conversion::TryIntoArrow;
use deltalake::kernel::{DataType, StructType};
use serde_json::Map;

use super::definition::{Definition, Format, MetaData, Protocol};
use super::schema::TableSchema;
use super::{columns, properties, protocol};
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
        let configuration = properties::collected(&spec.properties)?;
        properties::check(&configuration)?;
        let protocol = protocol(&schema, &configuration);
        let arrow: Schema = (&schema)
            .try_into_arrow()
            .map_err(|e| Error::internal(format!("the columns of {table} have no Arrow types")).caused_by(e))?;
        let schema_string = serde_json::to_string(&schema)
            .map_err(|e| Error::internal(format!("the columns of {table} cannot be written")).caused_by(e))?;
        let table_schema = TableSchema::new(arrow.into(), spec.partition_by.clone());
        properties::check_columns(table, &table_schema, &configuration)?;
        Constraints::of(&table_schema, &configuration).map_err(|error| error.about(table))?;
        Ok(Self {
            protocol,
            metadata: MetaData {
                id,
                name: None,
                description: None,
                format: Format::default(),
                schema_string,
                partition_columns: spec.partition_by.clone(),
                configuration,
                created_time: Some(now),
                other: Map::new(),
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

/// The least protocol that the columns and properties need.
fn protocol(schema: &StructType, configuration: &BTreeMap<String, String>) -> Protocol {
    let mut needed = properties::needed(configuration);
    if has_type(schema, &|data_type| *data_type == DataType::TIMESTAMP_NTZ) {
        needed.push(&protocol::TIMESTAMP_NTZ);
    }
    Protocol::least().supporting(&needed)
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
