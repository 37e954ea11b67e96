//! The commands, a file each.

pub(crate) mod append;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod history;
pub(crate) mod insert;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod replace;
pub(crate) mod set;
pub(crate) mod show;
pub(crate) mod source;
pub(crate) mod txns;
