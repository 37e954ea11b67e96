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

/// A file with rows that changed: the `cdc` action (protocol, "Add CDC File").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeFile {
    /// As in `add`.
    pub(crate) path: String,
    /// As in `add`.
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub(crate) size: i64,
    /// Always false: it adds no rows to the table.
    pub(crate) data_change: bool,
}

impl From<AddFile> for ChangeFile {
    fn from(file: AddFile) -> Self {
        Self { path: file.path, partition_values: file.partition_values, size: file.size, data_change: false }
    }
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

    /// What tells the file from every other of the table: its path and its deletion vector (protocol, "Add File and
    /// Remove File").
    pub(crate) fn logical_name(&self) -> String {
        match &self.deletion_vector {
            None => self.path.clone(),
            Some(vector) => format!("{}#{}", self.path, vector.unique_id()),
        }
    }

    /// The file with other rows masked; `rows` is how many it holds, masked ones included.
    ///
    /// Bounds stay right when rows go, though they are tight no longer (protocol, "Per-file Statistics"); and a file
    /// with a deletion vector must say how many rows it holds ("Writer Requirements for Deletion Vectors").
    pub(crate) fn masked_by(&self, vector: DeletionVector, rows: u64) -> Self {
        let stats = loosened(self.stats.as_deref().unwrap_or_default(), rows);
        Self { deletion_vector: Some(vector), stats: Some(stats), ..self.clone() }
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

/// Statistics whose bounds are not tight, of a file with `rows` rows. Bounds and counts are taken over to the letter:
/// numbers may have more digits than a double has.
fn loosened(stats: &str, rows: u64) -> String {
    let mut loose = format!(r#"{{"numRecords":{rows}"#);
    for (name, value) in members(stats).unwrap_or_default() {
        if matches!(name, "minValues" | "maxValues" | "nullCount") {
            loose.push_str(&format!(r#","{name}":{value}"#));
        }
    }
    loose.push_str(r#","tightBounds":false}"#);
    loose
}

/// The members of a JSON object as they are written; none where it is no object.
fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let read: serde_json::Value = serde_json::from_str(text).ok()?;
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let parts = split(inner, b',').into_iter().filter(|part| !part.trim().is_empty());
    let members = parts.map(|part| {
        let (name, value) = part.split_at(split(part, b':').first()?.len());
        Some((name.trim().strip_prefix('"')?.strip_suffix('"')?, value.strip_prefix(':')?.trim()))
    });
    let members: Vec<_> = members.collect::<Option<_>>()?;
    (read.as_object()?.len() == members.len()).then_some(members)
}

/// Cuts valid JSON at a byte, but not within texts and brackets.
fn split(text: &str, at: u8) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut in_text, mut escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ if byte == at && depth == 0 => {
                parts.extend(text.get(start..place));
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
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
    fn statistics_of_a_masked_file_keep_their_digits_and_are_not_tight() {
        for (stats, loose) in [
            ("", r#"{"numRecords":9,"tightBounds":false}"#),
            ("odd", r#"{"numRecords":9,"tightBounds":false}"#),
            ("{}", r#"{"numRecords":9,"tightBounds":false}"#),
            (
                r#" {"numRecords": 8, "minValues" : {"a":0.12345678901234567890123456789, "b,}":"\\\",{"}, "nullCount":{"a":[1,2]}, "tightBounds":true, "x":1}"#,
                r#"{"numRecords":9,"minValues":{"a":0.12345678901234567890123456789, "b,}":"\\\",{"},"nullCount":{"a":[1,2]},"tightBounds":false}"#,
            ),
        ] {
            assert_eq!(loosened(stats, 9), loose);
            serde_json::from_str::<serde_json::Value>(loose).unwrap();
        }
    }

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
