//! Object stores: opened by URL, durable on local disk, watched while a load stages its files.

pub(crate) mod conditional;
pub(crate) mod failure;
#[cfg(any(test, feature = "fault"))]
pub mod fault;
pub(crate) mod local;
pub(crate) mod location;
pub(crate) mod nesting;
pub(crate) mod staging;

#[cfg(test)]
mod tests;
