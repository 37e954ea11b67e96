//! Lands one log entry exactly once.

pub(crate) mod attempt;
pub(crate) mod conflict;
pub(crate) mod draft;
pub(crate) mod entry;
pub(crate) mod identity;
pub(crate) mod machine;
pub(crate) mod precondition;
pub(crate) mod replay;
pub(crate) mod rules;
