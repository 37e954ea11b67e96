//! How the bytes of an input are to be read: its format and its compression.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// Delimited text with a header line.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, as file (Feather version 2) or stream.
    Arrow,
}

impl Format {
    /// Whether an input of the format says itself which types its columns have.
    #[must_use]
    pub fn is_typed(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        })
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "csv" => Ok(Self::Csv),
            "ndjson" | "jsonl" | "json" => Ok(Self::Ndjson),
            "parquet" => Ok(Self::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Self::Arrow),
            _ => Err(Error::invalid(format!("'{text}' is not a format")).hint("use csv, ndjson, parquet or arrow")),
        }
    }
}

/// How an input's bytes are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// What the name of a file says about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// `None` where the extension is not a known one.
    pub(crate) format: Option<Format>,
    pub(crate) compression: Compression,
    /// Whether the extension is `.tsv`: text delimited by tabs.
    pub(crate) tabs: bool,
}

impl Named {
    /// Reads the extensions of a file's name or path, in any case: `orders.csv.gz`.
    pub(crate) fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        let (stem, compression) = match name.rsplit_once('.') {
            Some((stem, "gz")) => (stem, Compression::Gzip),
            Some((stem, "zst")) => (stem, Compression::Zstd),
            _ => (name.as_str(), Compression::None),
        };
        let extension = stem.rsplit_once('.').map_or("", |(_, extension)| extension);
        let format = match extension {
            "csv" | "tsv" => Some(Format::Csv),
            "ndjson" | "jsonl" | "json" => Some(Format::Ndjson),
            "parquet" => Some(Format::Parquet),
            "arrow" | "arrows" | "ipc" | "feather" => Some(Format::Arrow),
            _ => None,
        };
        Self { format, compression, tabs: extension == "tsv" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_extensions() {
        let named = Named::of("s3://lake.csv/in/Orders.TSV.gz");
        assert_eq!(named, Named { format: Some(Format::Csv), compression: Compression::Gzip, tabs: true });
        assert_eq!(Named::of("a.parquet").format, Some(Format::Parquet));
        assert_eq!(Named::of("a.jsonl.zst").compression, Compression::Zstd);
        assert_eq!(Named::of("in.csv/notes").format, None);
        assert_eq!(Named::of("notes.csv.bz2").format, None);
    }
}
