//! A table: opening, creating, its snapshot, its schema and the features its log asks for.

pub(crate) mod actions;
pub(crate) mod columns;
pub(crate) mod schema;
mod sql_columns;
