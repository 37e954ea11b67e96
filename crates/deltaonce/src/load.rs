//! What is asked: plain data, the same words as the command line.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One logical write: a contract, with or without identities.
///
/// ```
/// # fn main() -> deltaonce::Result<()> {
/// use deltaonce::Load;
/// let load = Load::merge(["order_id"])
///     .newest_by("source_updated_at desc, source_lsn desc")?
///     .txn("orders", 42);
/// # let _ = load; Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What the load does to the table.
    pub contract: Contract,
    /// Recorded in the same log entry as the rows; all already recorded: the load is skipped.
    #[serde(default)]
    pub identities: Vec<Identity>,
    /// Free text kept in the log entry and on the receipt, to find a run again.
    #[serde(default)]
    pub run_id: Option<String>,
    /// Whether a replace may be given no rows at all (it then only deletes).
    #[serde(default)]
    pub allow_empty: bool,
    /// Whether the rows of a load that is skipped are read and compared with those that its identity brought.
    #[serde(default)]
    pub verify_replay: bool,
    /// What a null in a key column means.
    #[serde(default)]
    pub null_keys: NullKeys,
    /// How to make the table where there is none; without it the source's own types are taken, if it has any.
    #[serde(default)]
    pub create: Option<TableSpec>,
    /// How long the commit may go on trying before it ends as retryable or unknown.
    #[serde(default = "Load::default_deadline")]
    pub deadline: Duration,
}

/// What a load does to the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// Adds all rows.
    Append,
    /// Deletes the rows of a scope and writes the new ones, in one commit.
    Replace(Scope),
    /// Upserts on a key.
    Merge {
        /// Columns that identify a row.
        key: Vec<String>,
        /// Which of two rows with one key is newer; without it keys must be unique in the source.
        order: Option<Order>,
        /// What is updated of a row that the table holds.
        #[serde(default, skip_serializing_if = "Update::is_whole")]
        update: Update,
    },
    /// Adds only rows whose key is absent.
    Insert {
        /// Columns that identify a row.
        key: Vec<String>,
    },
}

impl Contract {
    /// The contract's one-word name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replace(_) => "replace",
            Self::Merge { .. } => "merge",
            Self::Insert { .. } => "insert",
        }
    }
}

/// The rows a replace takes out, and the only rows it may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Rows for which a SQL predicate over the table's columns is true.
    Where(String),
    /// Rows with `start <= column < end`.
    Interval {
        /// The column.
        column: String,
        /// First value inside, as text in the column's type.
        start: String,
        /// First value outside, as text in the column's type.
        end: String,
    },
    /// The partitions that have a row in the source.
    Partitions,
    /// The whole table.
    All,
}

impl Scope {
    /// Reads `COLUMN=START/END`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) where one of the three is missing.
    pub fn interval(text: &str) -> Result<Self> {
        let parts = text.split_once('=').and_then(|(column, range)| {
            let (start, end) = range.split_once('/')?;
            (![column, start, end].iter().any(|part| part.trim().is_empty()))
                .then(|| (column.trim().to_owned(), start.trim().to_owned(), end.trim().to_owned()))
        });
        let Some((column, start, end)) = parts else {
            return Err(Error::invalid(format!("interval '{text}' is not COLUMN=START/END"))
                .hint("for example order_ts=2026-10-05T00:00:00Z/2026-10-06T00:00:00Z; the end is not inside"));
        };
        Ok(Self::Interval { column, start, end })
    }
}

/// A declared order over rows with one key; the first row by it is the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order(pub Vec<OrderColumn>);

/// One column of an [`Order`]. Nulls are oldest, whatever the direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderColumn {
    /// The column.
    pub name: String,
    /// Whether the greatest value is the newest (`desc`) or the least (`asc`).
    pub descending: bool,
}

impl Order {
    /// Reads `"source_updated_at desc, source_lsn desc"`; a column without a direction is `desc`, since newest comes first.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for an empty list, an unknown direction or a column named twice.
    pub fn parse(text: &str) -> Result<Self> {
        let mut columns: Vec<OrderColumn> = Vec::new();
        for part in text.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let (name, direction) = match words.as_slice() {
                [name] => (*name, "desc"),
                [name, direction] => (*name, *direction),
                _ => return Err(Error::invalid(format!("order '{text}' is not a list of COLUMN [asc|desc]"))),
            };
            let descending = match direction.to_ascii_lowercase().as_str() {
                "desc" => true,
                "asc" => false,
                other => {
                    return Err(Error::invalid(format!("order '{text}' has the direction '{other}'; use asc or desc")));
                }
            };
            if columns.iter().any(|column| column.name == name) {
                return Err(Error::invalid(format!("order '{text}' names column '{name}' twice")));
            }
            columns.push(OrderColumn { name: name.to_owned(), descending });
        }
        Ok(Self(columns))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, column) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let direction = if column.descending { "desc" } else { "asc" };
            write!(f, "{comma}{} {direction}", column.name)?;
        }
        Ok(())
    }
}

/// What a merge updates of a row that the table holds. Empty: all columns, from the source.
///
/// The key stays as it is, and columns of the [`Order`] always come from the source. Rows that the table does not hold
/// are added as the source has them, columns that it lacks null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Update {
    /// Columns that are taken from the source; others stay.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Columns that are computed, each with a SQL expression over `source.COLUMN` and `target.COLUMN`.
    #[serde(default)]
    pub set: Vec<(String, String)>,
}

impl Update {
    /// Whether all columns come from the source.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.columns.is_empty() && self.set.is_empty()
    }
}

/// An application transaction: Delta's `txn` action (protocol, "Transaction Identifiers").
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// txnAppId.
    pub app_id: String,
    /// txnVersion; 0 for a named identity (`write_id`).
    pub version: i64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.app_id, self.version)
    }
}

/// What a null in a key column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NullKeys {
    /// Rows with a null in the key are refused.
    #[default]
    Refuse,
    /// Null equals null.
    Match,
}

/// How to make a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableSpec {
    /// Delta's schema JSON, or a SQL column list; none: the source's own types.
    pub schema: Option<String>,
    /// Partition columns, in order.
    pub partition_by: Vec<String>,
    /// Table properties (`delta.*` and others).
    pub properties: Vec<(String, String)>,
}

/// Table properties to set, each to its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties {
    /// Names and values.
    pub set: Vec<(String, String)>,
    /// Free text kept in the log entry and on the receipt, to find a run again.
    #[serde(default)]
    pub run_id: Option<String>,
    /// How long the commit may go on trying before it ends as retryable or unknown.
    #[serde(default = "Load::default_deadline")]
    pub deadline: Duration,
}

impl Properties {
    /// These properties, each to its value.
    #[must_use]
    pub fn new<K: Into<String>, V: Into<String>>(set: impl IntoIterator<Item = (K, V)>) -> Self {
        Self {
            set: set.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            run_id: None,
            deadline: Load::default_deadline(),
        }
    }

    /// Names the run in the log entry and on the receipt.
    #[must_use]
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Says how long the commit may go on trying.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// A load without rows that runs as this does.
    pub(crate) fn carrier(&self) -> Load {
        Load { run_id: self.run_id.clone(), ..Load::append().deadline(self.deadline) }
    }
}

impl Load {
    fn of(contract: Contract) -> Self {
        Self {
            contract,
            identities: Vec::new(),
            run_id: None,
            allow_empty: false,
            verify_replay: false,
            null_keys: NullKeys::default(),
            create: None,
            deadline: Self::default_deadline(),
        }
    }

    fn default_deadline() -> Duration {
        Duration::from_secs(120)
    }

    /// A load that adds all rows.
    #[must_use]
    pub fn append() -> Self {
        Self::of(Contract::Append)
    }

    /// A load that replaces the rows of a scope.
    #[must_use]
    pub fn replace(scope: Scope) -> Self {
        Self::of(Contract::Replace(scope))
    }

    /// A load that upserts on a key.
    #[must_use]
    pub fn merge<S: Into<String>>(key: impl IntoIterator<Item = S>) -> Self {
        Self::of(Contract::Merge {
            key: key.into_iter().map(Into::into).collect(),
            order: None,
            update: Update::default(),
        })
    }

    /// A load that adds rows whose key is absent.
    #[must_use]
    pub fn insert<S: Into<String>>(key: impl IntoIterator<Item = S>) -> Self {
        Self::of(Contract::Insert { key: key.into_iter().map(Into::into).collect() })
    }

    /// Declares which of two rows with one key is newer; see [`Order::parse`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a bad order, or for a contract other than merge.
    pub fn newest_by(mut self, text: &str) -> Result<Self> {
        match &mut self.contract {
            Contract::Merge { order, .. } => *order = Some(Order::parse(text)?),
            other => return Err(Error::invalid(format!("{} takes no order; only merge does", other.name()))),
        }
        Ok(self)
    }

    /// Says that only these columns of a row that the table holds are updated from the source; may be called again.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a contract other than merge.
    pub fn update_columns<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Result<Self> {
        match &mut self.contract {
            Contract::Merge { update, .. } => update.columns.extend(columns.into_iter().map(Into::into)),
            other => return Err(Error::invalid(format!("{} updates no columns; only merge does", other.name()))),
        }
        Ok(self)
    }

    /// Says how a column of a row that the table holds is computed: a SQL expression over `source.COLUMN` and
    /// `target.COLUMN`. Other columns stay, unless [`Load::update_columns`] names them.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a contract other than merge.
    pub fn set(mut self, column: impl Into<String>, expression: impl Into<String>) -> Result<Self> {
        match &mut self.contract {
            Contract::Merge { update, .. } => update.set.push((column.into(), expression.into())),
            other => return Err(Error::invalid(format!("{} computes no columns; only merge does", other.name()))),
        }
        Ok(self)
    }

    /// Adds an identity: `version` of `app_id`. Several may ride on one load.
    #[must_use]
    pub fn txn(mut self, app_id: impl Into<String>, version: i64) -> Self {
        self.identities.push(Identity { app_id: app_id.into(), version });
        self
    }

    /// Adds a named identity, for loads that have a name but no sequence.
    #[must_use]
    pub fn write_id(self, name: impl Into<String>) -> Self {
        self.txn(name, 0)
    }

    /// Names the run in the log entry and on the receipt.
    #[must_use]
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Lets a replace be given no rows.
    #[must_use]
    pub fn allow_empty(mut self, allow: bool) -> Self {
        self.allow_empty = allow;
        self
    }

    /// Has the rows of a load that is skipped read and compared with those that its identity brought: others are refused.
    /// So are rows whose identity the log records without a digest, as other writers do. A load that a higher version
    /// superseded is skipped uncompared.
    #[must_use]
    pub fn verify_replay(mut self, verify: bool) -> Self {
        self.verify_replay = verify;
        self
    }

    /// Says what a null in a key column means.
    #[must_use]
    pub fn null_keys(mut self, null_keys: NullKeys) -> Self {
        self.null_keys = null_keys;
        self
    }

    /// Says how to make the table where there is none.
    #[must_use]
    pub fn create(mut self, spec: TableSpec) -> Self {
        self.create = Some(spec);
        self
    }

    /// Says how long the commit may go on trying.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}
