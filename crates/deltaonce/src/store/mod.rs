//! Object stores: opened by URL, durable on local disk, watched while a load stages its files.

pub(crate) mod failure;
