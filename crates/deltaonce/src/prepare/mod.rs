//! Rows made ready for a table: typed, checked, one winner a key.

pub(crate) mod text;
