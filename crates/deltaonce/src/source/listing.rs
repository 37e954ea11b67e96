//! What a user names as inputs (files, globs, folders, `s3://` addresses), as the files to read.

mod local;
mod remote;

use std::collections::HashMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;

use super::format::{Compression, Format, Named};
use super::input::InputPlace;
use super::worker;
use crate::error::{Error, Result};

/// Opens an address with a scheme: the store, and where in it the address points.
pub(crate) type Locate<'a> = &'a (dyn Fn(&str) -> Result<(Arc<dyn ObjectStore>, Path)> + Send + Sync);

/// A file that an argument stands for.
#[derive(Debug)]
struct Found {
    /// As the user would name it.
    name: String,
    /// One text for one file, however it is named.
    key: String,
    size: Option<u64>,
    place: InputPlace,
    /// Whether the argument is this very file, and no folder or glob that holds it.
    named: bool,
}

/// The inputs of a load.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) format: Format,
    /// In the order of the arguments; within one argument by name.
    pub(crate) files: Vec<ListedFile>,
    /// Files in folders and globs that were left out, since nothing says how to read them.
    pub(crate) skipped: Vec<String>,
}

/// A file to read.
#[derive(Debug)]
pub(crate) struct ListedFile {
    pub(crate) name: Arc<str>,
    pub(crate) size: Option<u64>,
    pub(crate) place: InputPlace,
    pub(crate) tabs: bool,
}

/// Finds the files that `arguments` stand for, all of one format: `forced`, or the one that their extensions say.
///
/// In folders and globs, names that start with `_` or `.` are passed over.
///
/// # Errors
/// `Invalid`, naming the argument or file: nothing found, a file twice, formats that differ or are not known, a Delta
/// table's own files; `Retryable` where a store cannot be listed.
pub(crate) async fn list(arguments: &[String], forced: Option<Format>, locate: Locate<'_>) -> Result<Listing> {
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for argument in arguments {
        let mut files = if argument.contains("://") && !argument.starts_with("file://") {
            remote::expand(argument, locate).await?
        } else {
            let argument = argument.clone();
            worker::once(argument.as_str().into(), move || local::expand(&argument)).await?
        };
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let (read, left): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|file| file.named || forced.is_some() || Named::of(&file.name).format.is_some());
        if read.is_empty() {
            return Err(nothing(argument, &left));
        }
        found.extend(read);
        skipped.extend(left.into_iter().map(|file| file.name));
    }
    refuse_twins(&found)?;
    let format = one_format(&found, forced)?;
    let files = found
        .into_iter()
        .map(|file| ListedFile {
            tabs: Named::of(&file.name).tabs,
            name: file.name.into(),
            size: file.size,
            place: file.place,
        })
        .collect();
    Ok(Listing { format, files, skipped })
}

fn nothing(argument: &str, left: &[Found]) -> Error {
    match left.first() {
        None => Error::invalid(format!("{argument} matches no file")),
        Some(file) => Error::invalid(format!("{argument} matches no file of a known format"))
            .detail(format!("passed over: {}", file.name))
            .hint("say the format, for example --format csv"),
    }
}

fn refuse_twins(found: &[Found]) -> Result<()> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for file in found {
        if let Some(before) = seen.insert(&file.key, &file.name) {
            let also = if before == file.name { String::new() } else { format!(", also as {before}") };
            return Err(Error::invalid(format!("{} is given twice{also}; its rows would be doubled", file.name)));
        }
    }
    Ok(())
}

fn one_format(found: &[Found], forced: Option<Format>) -> Result<Format> {
    let mut first: Option<(Format, &str)> = None;
    for file in found {
        let named = Named::of(&file.name);
        let Some(format) = forced.or(named.format) else {
            return Err(Error::invalid(format!("{} has no extension that says its format", file.name))
                .hint("say the format, for example --format csv"));
        };
        if format == Format::Parquet && named.compression != Compression::None {
            return Err(Error::invalid(format!("{} is a packed Parquet file, which cannot be read", file.name))
                .hint("unpack it first; Parquet is compressed inside"));
        }
        match first {
            Some((other, name)) if other != format => {
                return Err(Error::invalid(format!(
                    "{name} is {other} and {} is {format}; one load reads one format",
                    file.name
                ))
                .hint("load them one after the other"));
            }
            Some(_) => {}
            None => first = Some((format, &file.name)),
        }
    }
    first.map(|(format, _)| format).ok_or_else(|| Error::invalid("no input is given"))
}

/// Whether a name is passed over in folders and globs, as Spark and Hive do.
fn is_hidden(name: &str) -> bool {
    name.starts_with('_') || name.starts_with('.')
}

/// Whether some part of `path` is passed over, unless `pattern` itself asks for such names.
fn is_hidden_below(path: &str, pattern: &str) -> bool {
    path.split('/').any(|part| {
        let asks = |asked: &str| asked == part || (is_glob(asked) && asked.chars().next() == part.chars().next());
        is_hidden(part) && !pattern.split('/').any(asks)
    })
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn delta_table(argument: &str, table: &str) -> Error {
    let what = if argument.trim_end_matches('/') == table.trim_end_matches('/') {
        format!("{argument} is a Delta table")
    } else {
        format!("{argument} reaches into the Delta table {table}")
    };
    Error::invalid(format!("{what}; its files also hold rows that the table no longer has"))
        .hint("name single files if you mean them, or export the table's rows")
}

#[cfg(test)]
mod tests;
