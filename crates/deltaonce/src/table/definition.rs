//! What a table is, apart from its rows: the `metaData` and `protocol` actions that create one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::schema::TableSchema;

/// The `metaData` action (protocol, "Change Metadata").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaData {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) format: Format,
    pub(crate) schema_string: String,
    pub(crate) partition_columns: Vec<String>,
    #[serde(default)]
    pub(crate) configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_time: Option<i64>,
    /// What other writers said beside that.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// How data files are encoded: always Parquet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Format {
    provider: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".to_owned(), options: BTreeMap::new() }
    }
}

/// The `protocol` action (protocol, "Protocol Evolution").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub(crate) min_reader_version: i32,
    pub(crate) min_writer_version: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reader_features: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) writer_features: Option<Vec<String>>,
}

/// A table that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) protocol: Protocol,
    pub(crate) metadata: MetaData,
    pub(crate) schema: TableSchema,
}
