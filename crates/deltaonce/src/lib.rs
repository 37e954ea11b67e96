//! Writes to Delta Lake tables so that doing a load twice leaves the table as doing it once.

pub mod error;
pub mod host;
pub mod load;
pub mod receipt;

pub(crate) mod commit;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod store;
pub(crate) mod table;

pub use error::{Error, ErrorKind, Result};
pub use host::{Host, SystemHost};
pub use load::{Contract, Identity, Load, NullKeys, Order, OrderColumn, Scope, TableSpec};
pub use receipt::{ByteCounts, FileCounts, Outcome, Receipt, RowCounts};
pub use source::csv::CsvOptions;
