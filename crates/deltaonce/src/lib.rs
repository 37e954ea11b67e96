//! Writes to Delta Lake tables so that doing a load twice leaves the table as doing it once.

pub mod error;
pub mod host;
pub mod load;
pub mod receipt;

pub(crate) mod apply;
pub(crate) mod commit;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod size;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod table;

pub use error::{Error, ErrorKind, Result};
pub use host::{Host, Scratch, SystemHost};
pub use load::{Contract, Identity, Load, NullKeys, Order, OrderColumn, Properties, Scope, TableSpec, Update};
pub use receipt::{ByteCounts, FileCounts, Outcome, Receipt, RowCounts};
pub use source::{CsvOptions, Format, Source};
pub use stop::Stop;
#[cfg(any(test, feature = "fault"))]
pub use store::fault;
pub use store::location::Location;
pub use table::{Commit, Description, RecordedIdentity, Standing, Table};
