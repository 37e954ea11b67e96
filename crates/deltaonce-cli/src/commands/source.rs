//! Where the rows of a load come from, as said on the command line.

use std::fs::File;

use clap::{Args, ValueEnum};
use deltaonce::{CsvOptions, Error, Format, Result, Source};

use crate::values::{self, Quote};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Csv,
    Ndjson,
    Parquet,
    Arrow,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Csv => Self::Csv,
            FormatArg::Ndjson => Self::Ndjson,
            FormatArg::Parquet => Self::Parquet,
            FormatArg::Arrow => Self::Arrow,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Files, folders, globs or s3:// URLs, all of one format: CSV or NDJSON (also .gz and .zst), Parquet or Arrow;
    /// - is stdin
    #[arg(value_name = "SOURCE", help_heading = None, required = true, value_parser = values::name)]
    sources: Vec<String>,
    /// Format of the sources; otherwise their names tell: .csv, .tsv, .ndjson, .jsonl, .json, .parquet, .arrow
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatArg>,
    /// CSV: what stands between two values, one character or \t [default: ,]
    #[arg(long, value_name = "CHAR", value_parser = values::delimiter)]
    delimiter: Option<u8>,
    /// CSV: what stands around a value that holds a delimiter or a line end, one character or none [default: "]
    #[arg(long, value_name = "CHAR", value_parser = values::quote)]
    quote: Option<Quote>,
    /// CSV: text that, without quotes, means null [default: nothing between two delimiters]
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
}

/// A source as asked for, before anything of it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// None: stdin, whose format is given.
    paths: Option<Vec<String>>,
    format: Option<Format>,
    csv: Option<CsvOptions>,
}

impl SourceArgs {
    /// Checks that the arguments go together.
    ///
    /// # Errors
    /// `Invalid` for stdin without a format or with files beside it, and for CSV options on another format.
    pub(crate) fn request(&self) -> Result<Request> {
        let format = self.format.map(Format::from);
        let csv = self.csv();
        if csv.is_some() && format.as_ref().is_some_and(|format| !matches!(format, Format::Csv)) {
            return Err(Error::invalid(
                "--delimiter, --quote and --null are about CSV, and --format says another format",
            ));
        }
        let stdin = self.sources.iter().any(|source| source == "-");
        if stdin && self.sources.len() > 1 {
            return Err(Error::invalid("stdin (-) must be the only source"));
        }
        if stdin && format.is_none() {
            return Err(Error::invalid("stdin (-) has no name that tells its format")
                .hint("say it: --format csv, ndjson or arrow"));
        }
        Ok(Request { paths: (!stdin).then(|| self.sources.clone()), format, csv })
    }

    fn csv(&self) -> Option<CsvOptions> {
        if self.delimiter.is_none() && self.quote.is_none() && self.null.is_none() {
            return None;
        }
        let quote = match self.quote {
            None => Some(b'"'),
            Some(Quote::Character(character)) => Some(character),
            Some(Quote::None) => None,
        };
        Some(CsvOptions { delimiter: self.delimiter.unwrap_or(b','), quote, null: self.null.clone() })
    }
}

impl Request {
    /// The source, to be read once. Must be called inside the runtime.
    ///
    /// # Errors
    /// `Invalid` where stdin is closed.
    pub(crate) fn open(self, defaults: Vec<(String, String)>, options: Vec<(String, String)>) -> Result<Source> {
        let source = match (self.paths, self.format) {
            (Some(paths), Some(format)) => Source::files(paths).format(format),
            (Some(paths), None) => Source::files(paths),
            (None, Some(format)) => Source::reader(tokio::fs::File::from_std(stdin()?), format).name("stdin"),
            (None, None) => return Err(Error::internal("stdin was let through without a format")),
        };
        let source = source.storage_defaults(defaults).storage_options(options);
        Ok(match self.csv {
            Some(csv) => source.csv(csv),
            None => source,
        })
    }
}

/// Stdin as a file of its own: read in large pieces, past the small buffer of `std::io::Stdin`, which nobody else reads.
fn stdin() -> Result<File> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&std::io::stdin()).try_clone_to_owned();
    owned.map(File::from).map_err(|e| Error::invalid(format!("stdin cannot be read: {e}")))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
