//! Rows made ready for a table: typed, checked, one winner a key.

pub(crate) mod choose;
pub(crate) mod conform;
pub(crate) mod constraints;
pub(crate) mod content;
pub(crate) mod digest;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod spill;
pub(crate) mod stream;
pub(crate) mod text;
mod tie;
pub(crate) mod winners;
