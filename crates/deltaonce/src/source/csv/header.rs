//! A CSV file's header against a table's columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::prepare::text::{is_readable, shown, sql_name};
use crate::source::names::refuse_unknown;
use crate::table::schema::TableSchema;

/// Which field of a record goes to which column.
#[derive(Debug)]
pub(super) struct Layout {
    /// The header's names, in the file's order.
    pub(super) names: Vec<String>,
    /// The table's columns that the file has, in the table's order, all nullable.
    pub(super) schema: SchemaRef,
    /// The field of each of them.
    pub(super) fields: Vec<usize>,
}

/// Matches the header of file `name` with the table's columns, by exact name.
///
/// # Errors
/// `Refused` for a name that is empty, repeated (in whatever case), no column of the table, or of a column whose type
/// text cannot hold.
pub(super) fn layout(name: &str, names: Vec<String>, schema: &TableSchema) -> Result<Layout> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, column) in names.iter().enumerate() {
        if column.is_empty() {
            return Err(Error::refused(format!("{name} line 1: the header has no name for field {}", at + 1)));
        }
        if let Some(before) = places.insert(column.to_lowercase(), at) {
            let before = names.get(before).map_or("", String::as_str);
            return Err(Error::refused(format!(
                "{name} line 1: the header names column '{}' twice (as field '{}' too)",
                shown(column),
                shown(before)
            ))
            .hint("names that differ by case only are one column in Delta"));
        }
        if schema.column(column).is_none() {
            return Err(refuse_unknown(&format!("{name} line 1: the header names"), column, schema));
        }
    }
    let mut columns = Vec::new();
    let mut fields = Vec::new();
    for column in schema.columns().fields() {
        let Some(at) = names.iter().position(|name| name == column.name()) else { continue };
        if !is_readable(column.data_type()) {
            let holds = sql_name(column.data_type());
            return Err(Error::refused(format!("{name}: column {} is {holds}, which CSV cannot hold", column.name()))
                .hint("leave the column out, or load it from Parquet or Arrow"));
        }
        columns.push(Field::new(column.name(), column.data_type().clone(), true));
        fields.push(at);
    }
    Ok(Layout { names, schema: Arc::new(Schema::new(columns)), fields })
}
