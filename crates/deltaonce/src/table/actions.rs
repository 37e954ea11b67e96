//! The log's actions as this library writes and reads them.
//!
//! Our own types and not deltalake's, because a `remove` must repeat the path of its `add` to the letter: deltalake
//! decodes a path when it reads and encodes it its own way when it writes, and a reader that compares text then keeps
//! both files (protocol, "Add File and Remove File": the key of a logical file is its path and deletion vector).

use std::collections::BTreeMap;

use object_store::path::{self, Path};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A data file of the table: the `add` action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddFile {
    /// Where the file is, as the log says it: a URI relative to the table's root, percent-encoded.
    pub(crate) path: String,
    /// The partition the file belongs to; a null value is `None`.
    #[serde(default)]
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub(crate) size: i64,
    /// Milliseconds since the epoch.
    pub(crate) modification_time: i64,
    /// Whether rows come with it that were not in the table before.
    pub(crate) data_change: bool,
    /// Per-file statistics, JSON text (protocol, "Per-file Statistics").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<String>,
    /// Free text about the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
    /// Rows of the file that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DeletionVector>,
    /// Row tracking: id of the file's first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_row_id: Option<i64>,
    /// Row tracking: version that first added the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_row_commit_version: Option<i64>,
    /// Who clustered the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clustering_provider: Option<String>,
}

/// The `deletionVector` of a file (protocol, "Deletion Vectors").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletionVector {
    /// `u`, `i` or `p`.
    pub(crate) storage_type: String,
    /// Where or what it is, by `storage_type`.
    pub(crate) path_or_inline_dv: String,
    /// Where it starts in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<i32>,
    /// Bytes.
    pub(crate) size_in_bytes: i32,
    /// Rows it masks.
    pub(crate) cardinality: i64,
}

/// The `remove` action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoveFile {
    /// The `add`'s path, to the letter.
    pub(crate) path: String,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_timestamp: Option<i64>,
    /// Whether rows leave the table with it.
    pub(crate) data_change: bool,
    /// Whether the next fields are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extended_file_metadata: Option<bool>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partition_values: Option<BTreeMap<String, Option<String>>>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i64>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DeletionVector>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_row_id: Option<i64>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_row_commit_version: Option<i64>,
}

impl AddFile {
    /// The file's place in a store that is rooted at the table.
    ///
    /// # Errors
    /// `Unsupported` for an absolute path or one that leaves the table's folder.
    pub(crate) fn location(&self) -> Result<Path> {
        location(&self.path)
    }

    /// Rows in the file by its statistics, those that a deletion vector masks included; none where they do not say.
    pub(crate) fn physical_records(&self) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NumRecords {
            num_records: u64,
        }
        Some(serde_json::from_str::<NumRecords>(self.stats.as_deref()?).ok()?.num_records)
    }

    /// Rows in the file by its statistics, those that a deletion vector masks not counted; none where they do not say.
    pub(crate) fn num_records(&self) -> Option<u64> {
        let physical = self.physical_records()?;
        let masked = self.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality.unsigned_abs());
        physical.checked_sub(masked)
    }

    /// The action that takes this file out of the table at `deleted_at` (milliseconds since the epoch).
    pub(crate) fn remove(&self, deleted_at: i64) -> RemoveFile {
        RemoveFile {
            path: self.path.clone(),
            deletion_timestamp: Some(deleted_at),
            data_change: true,
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition_values.clone()),
            size: Some(self.size),
            tags: self.tags.clone(),
            deletion_vector: self.deletion_vector.clone(),
            base_row_id: self.base_row_id,
            default_row_commit_version: self.default_row_commit_version,
        }
    }
}

/// The object that a path of the log names, in a store that is rooted at the table.
///
/// # Errors
/// `Unsupported` for an absolute path or one that leaves the table's folder.
pub(crate) fn location(path: &str) -> Result<Path> {
    let strange = |why: &str| Error::unsupported(format!("the log names the data file '{path}', which {why}"));
    let is_file_url = path.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    if path.contains("://") || path.starts_with('/') || is_file_url {
        return Err(strange("is not inside the table's folder"));
    }
    Path::from_url_path(path).map_err(|e| {
        let why = match e {
            path::Error::BadSegment { .. } => "has '.' or '..' in it and could lead out of the table's folder",
            _ => "is not a path this library can follow",
        };
        strange(why).caused_by(e)
    })
}

/// The `txn` action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    /// txnAppId.
    pub(crate) app_id: String,
    /// txnVersion.
    pub(crate) version: i64,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_within_the_tables_folder_only() {
        for (path, object) in
            [("p=a%20b/f.parquet", "p=a b/f.parquet"), ("%252e%252e/f", "%2e%2e/f"), ("a\\..\\f", "a\\..\\f")]
        {
            assert_eq!(location(path).unwrap().as_ref(), Path::parse(object).unwrap().as_ref(), "{path}");
        }
        let outside = "is not inside the table's folder";
        let dots = "could lead out of the table's folder";
        for (path, why) in [
            ("../t2/f.parquet", dots),
            ("%2e%2e/t2/f.parquet", dots),
            ("..%2Ft2%2Ff.parquet", dots),
            ("a/./f.parquet", dots),
            ("/etc/passwd", outside),
            ("//etc/passwd", outside),
            ("file:///etc/passwd", outside),
            ("FILE:/etc/passwd", outside),
            ("s3://other/f.parquet", outside),
            ("a//f.parquet", "is not a path this library can follow"),
            ("%ff", "is not a path this library can follow"),
        ] {
            let error = location(path).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
            assert!(error.message().contains(path) && error.message().ends_with(why), "{path}: {error}");
        }
    }
}
