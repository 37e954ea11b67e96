//! What a table's properties say about its data files.

use std::collections::BTreeMap;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};

use crate::error::{Error, Result};
use crate::size::bytes;
use crate::table::schema::TableSchema;

const TARGET_FILE_SIZE: &str = "delta.targetFileSize";
const COMPRESSION: &str = "delta.parquet.compression.codec";
const INDEXED_COLUMNS: &str = "delta.dataSkippingNumIndexedCols";
const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";
/// The columns of which data files hold a Bloom filter, separated by commas.
pub(crate) const BLOOM_COLUMNS: &str = "deltaonce.bloomFilterColumns";

const DEFAULT_TARGET: u64 = 128 * 1024 * 1024;
const DEFAULT_INDEXED: usize = 32;

/// How data files of a table are to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// Bytes at which a file is closed and the next begun.
    pub(super) target: u64,
    pub(super) compression: Compression,
    /// The end of a file's name, compression included, as other writers name it.
    pub(super) suffix: &'static str,
    pub(super) indexed: Indexed,
    /// Columns with a Bloom filter.
    pub(super) bloom: Vec<String>,
}

/// Which columns have statistics in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Indexed {
    All,
    /// So many leaf columns, counted in the schema's order.
    First(usize),
    /// These columns, each a path of field names; a struct stands for all of its fields.
    Columns(Vec<Vec<String>>),
}

impl Settings {
    /// Reads the table's properties; those of others are ignored.
    ///
    /// # Errors
    /// `Invalid` for a property whose value cannot be read or names a column that it cannot be about, `Unsupported` for a
    /// codec that is not written here.
    pub(super) fn new(schema: &TableSchema, properties: &BTreeMap<String, String>) -> Result<Self> {
        let target = match properties.get(TARGET_FILE_SIZE) {
            None => DEFAULT_TARGET,
            Some(text) => {
                bytes(text).ok_or_else(|| invalid(TARGET_FILE_SIZE, text, "a size such as 134217728 or 128mb"))?
            }
        };
        let codec = properties.get(COMPRESSION).map_or("snappy", String::as_str);
        let (compression, suffix) = match codec.trim().to_ascii_lowercase().as_str() {
            "snappy" => (Compression::SNAPPY, ".snappy.parquet"),
            "zstd" => (Compression::ZSTD(ZstdLevel::default()), ".zstd.parquet"),
            "gzip" => (Compression::GZIP(GzipLevel::default()), ".gz.parquet"),
            // Parquet's first LZ4 codec has a framing that its readers disagree on; LZ4_RAW replaced it.
            "lz4" | "lz4_raw" | "lz4raw" => (Compression::LZ4_RAW, ".lz4raw.parquet"),
            "uncompressed" | "none" => (Compression::UNCOMPRESSED, ".parquet"),
            _ => {
                return Err(Error::unsupported(format!(
                    "the table property {COMPRESSION} is '{codec}', which is not written"
                ))
                .hint("set it to snappy, zstd, gzip, lz4_raw or uncompressed"));
            }
        };
        let indexed = match (properties.get(STATS_COLUMNS), properties.get(INDEXED_COLUMNS)) {
            (Some(text), _) => Indexed::Columns(
                column_paths(text)
                    .ok_or_else(|| invalid(STATS_COLUMNS, text, "a list of columns separated by commas"))?,
            ),
            (None, None) => Indexed::First(DEFAULT_INDEXED),
            (None, Some(text)) => match text.trim().parse::<i64>() {
                Ok(-1) => Indexed::All,
                Ok(count) if count >= 0 => Indexed::First(usize::try_from(count).unwrap_or(usize::MAX)),
                _ => return Err(invalid(INDEXED_COLUMNS, text, "a count of columns, or -1 for all")),
            },
        };
        let bloom = properties.get(BLOOM_COLUMNS).map_or(Ok(Vec::new()), |text| bloom_columns(schema, text))?;
        Ok(Self { target, compression, suffix, indexed, bloom })
    }
}

/// Whether data files of a table with these columns can be written as `properties` say.
///
/// # Errors
/// `Invalid` for a property whose value cannot be read or names a column that it cannot be about, `Unsupported` for a codec
/// that is not written here.
pub(crate) fn check(schema: &TableSchema, properties: &BTreeMap<String, String>) -> Result<()> {
    Settings::new(schema, properties).map(|_| ())
}

fn bloom_columns(schema: &TableSchema, text: &str) -> Result<Vec<String>> {
    const NO_COLUMN: &str = "is not a column of the table; a name with a dot or a comma in it stands in backticks";
    let paths =
        column_paths(text).ok_or_else(|| invalid(BLOOM_COLUMNS, text, "a list of columns separated by commas"))?;
    let mut columns = Vec::with_capacity(paths.len());
    for path in paths {
        let why_not = match path.as_slice() {
            [name] => match schema.column(name) {
                None => NO_COLUMN,
                Some(field) if field.data_type().is_nested() => "is nested",
                Some(_) if schema.is_partition_column(name) => "is a partition column, which data files do not hold",
                Some(_) => {
                    columns.push(name.clone());
                    continue;
                }
            },
            [first, ..] if schema.column(first).is_none() => NO_COLUMN,
            _ => "lies within a column",
        };
        let name = path.join(".");
        return Err(Error::invalid(format!("the table property {BLOOM_COLUMNS} names '{name}', which {why_not}")));
    }
    Ok(columns)
}

fn invalid(property: &str, text: &str, wanted: &str) -> Error {
    Error::invalid(format!("the table property {property} is '{text}', which is not {wanted}"))
}

/// Splits `a, b.c, `d.e`.f` into paths; a name in backticks may hold dots, commas and doubled backticks.
fn column_paths(text: &str) -> Option<Vec<Vec<String>>> {
    let mut paths = Vec::new();
    let mut path = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    loop {
        match chars.next() {
            Some('`') if quoted && chars.peek() == Some(&'`') => {
                chars.next();
                name.push('`');
            }
            Some('`') => quoted = !quoted,
            Some(c) if quoted => name.push(c),
            None if quoted => return None,
            Some(c) if c.is_whitespace() && name.is_empty() => {}
            Some(c @ ('.' | ',')) => {
                path.push(finished(&mut name)?);
                if c == ',' {
                    paths.push(std::mem::take(&mut path));
                }
            }
            Some(c) => name.push(c),
            None => break,
        }
    }
    if !name.trim_end().is_empty() || !path.is_empty() {
        path.push(finished(&mut name)?);
        paths.push(path);
    }
    Some(paths)
}

fn finished(name: &mut String) -> Option<String> {
    let done = std::mem::take(name).trim_end().to_owned();
    (!done.is_empty()).then_some(done)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    /// The settings of a table with a column of every sort that matters.
    fn settings(properties: &[(&str, &str)]) -> Result<Settings> {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let columns = vec![
            field("id", DataType::Int64),
            field("a.b", DataType::Utf8),
            field("st", DataType::Struct(vec![field("a", DataType::Int64)].into())),
            field("ar", DataType::new_list(DataType::Int64, true)),
            field("day", DataType::Date32),
        ];
        let schema = TableSchema::new(Schema::new(columns).into(), vec!["day".to_owned()]);
        Settings::new(&schema, &properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn bloom_filters_are_of_columns_that_data_files_hold() {
        let bloom = |text: &str| settings(&[(BLOOM_COLUMNS, text)]).map(|settings| settings.bloom);
        assert_eq!(settings(&[]).unwrap().bloom, [""; 0]);
        assert_eq!(bloom("").unwrap(), [""; 0]);
        assert_eq!(bloom("id, `a.b`").unwrap(), ["id", "a.b"]);
        for (text, name, why) in [
            ("id,nothing", "'nothing'", "is not a column"),
            ("ID", "'ID'", "is not a column"),
            ("a.b", "'a.b'", "is not a column"),
            ("st", "'st'", "is nested"),
            ("ar", "'ar'", "is nested"),
            ("st.a", "'st.a'", "lies within a column"),
            ("day", "'day'", "is a partition column"),
            ("id,,day", "'id,,day'", "is not a list of columns"),
            ("`id", "'`id'", "is not a list of columns"),
        ] {
            let error = bloom(text).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.message().contains(name) && error.message().contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_are_bytes_with_an_optional_unit() {
        for (text, expected) in [("1000", 1000), ("100mb", 100 << 20), (" 2 GB ", 2 << 30), ("64k", 64 << 10)] {
            assert_eq!(settings(&[(TARGET_FILE_SIZE, text)]).unwrap().target, expected, "{text}");
        }
        for text in ["", "0", "-5", "1.5gb", "10 parsecs", "99999999999tb"] {
            assert!(settings(&[(TARGET_FILE_SIZE, text)]).is_err(), "{text}");
        }
    }

    #[test]
    fn codecs_of_others_are_refused_by_name() {
        assert_eq!(settings(&[]).unwrap().suffix, ".snappy.parquet");
        assert!(matches!(settings(&[(COMPRESSION, "ZSTD")]).unwrap().compression, Compression::ZSTD(_)));
        let error = settings(&[(COMPRESSION, "lzo")]).unwrap_err();
        assert!(error.message().contains("lzo"), "{error}");
    }

    #[test]
    fn stats_columns_win_over_their_count_and_may_be_quoted() {
        let both = settings(&[(STATS_COLUMNS, "a, b.c,`d.e,``f`.g "), (INDEXED_COLUMNS, "1")]).unwrap();
        let paths = |paths: &[&[&str]]| {
            Indexed::Columns(paths.iter().map(|path| path.iter().map(|name| (*name).to_owned()).collect()).collect())
        };
        assert_eq!(both.indexed, paths(&[&["a"], &["b", "c"], &["d.e,`f", "g"]]));
        assert_eq!(settings(&[(INDEXED_COLUMNS, "-1")]).unwrap().indexed, Indexed::All);
        assert_eq!(settings(&[(STATS_COLUMNS, "")]).unwrap().indexed, paths(&[]));
        assert!(settings(&[(INDEXED_COLUMNS, "-2")]).is_err());
        assert!(settings(&[(STATS_COLUMNS, "a,,b")]).is_err());
    }
}
