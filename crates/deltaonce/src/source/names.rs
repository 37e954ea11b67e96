//! Names in a source against a table's columns.

use crate::error::Error;
use crate::prepare::text::shown;
use crate::table::schema::TableSchema;

/// The refusal of a `column` that the table lacks; `found` says where it was found, as in "x.csv line 1: the header names".
pub(super) fn refuse_unknown(found: &str, column: &str, schema: &TableSchema) -> Error {
    let names: Vec<&str> = schema.columns().fields().iter().map(|field| field.name().as_str()).collect();
    let error = Error::refused(format!("{found} '{}', which is no column of the table", shown(column)))
        .detail(format!("columns of the table: {}", names.join(", ")));
    match names.iter().find(|name| name.to_lowercase() == column.trim().to_lowercase()) {
        Some(near) => error.hint(format!("names are matched exactly; the table has '{near}'")),
        None => error,
    }
}
