//! A table: opening, creating, its snapshot, its schema and the features its log asks for.

pub(crate) mod actions;
pub(crate) mod data_file;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod widen;
