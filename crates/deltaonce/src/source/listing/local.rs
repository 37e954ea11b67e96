//! Files of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use glob::MatchOptions;

use super::{Found, delta_table, is_glob, is_hidden, is_hidden_below};
use crate::error::{Error, Result};
use crate::source::fault;
use crate::source::input::InputPlace;

/// The files that `argument` stands for: a path, a `file://` address or a glob.
pub(super) fn expand(argument: &str) -> Result<Vec<Found>> {
    let text = plain_path(argument)?;
    let mut found = Vec::new();
    match fs::metadata(&text) {
        Ok(meta) if meta.is_dir() => folder(argument, Path::new(&text), &mut found)?,
        Ok(_) => found.push(file(PathBuf::from(&text), argument, true)?),
        Err(_) if is_glob(&text) => glob(argument, &text, &mut found)?,
        Err(e) => return Err(fault::io(argument, e)),
    }
    Ok(found)
}

fn plain_path(argument: &str) -> Result<String> {
    if !argument.starts_with("file://") {
        return Ok(argument.to_owned());
    }
    url::Url::parse(argument)
        .ok()
        .and_then(|url| url.to_file_path().ok())
        .and_then(|path| path.into_os_string().into_string().ok())
        .ok_or_else(|| Error::invalid(format!("{argument} is not the address of a local file")))
}

fn glob(argument: &str, pattern: &str, found: &mut Vec<Found>) -> Result<()> {
    let options =
        MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let paths = glob::glob_with(pattern, options)
        .map_err(|e| Error::invalid(format!("{argument} is not a glob: {e}")).caused_by(e))?;
    let mut folders = BTreeSet::new();
    for path in paths {
        let path = path.map_err(|e| fault::io(&e.path().display().to_string(), e.into()))?;
        if is_hidden_below(utf8(&path)?, pattern) {
            continue;
        }
        if path.is_dir() {
            folder(argument, &path, found)?;
        } else {
            folders.insert(path.parent().unwrap_or(Path::new("")).to_owned());
            found.push(file(path.clone(), utf8(&path)?, false)?);
        }
    }
    folders.iter().try_for_each(|folder| refuse_table(argument, folder))
}

fn folder(argument: &str, root: &Path, found: &mut Vec<Found>) -> Result<()> {
    refuse_table(argument, root)?;
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let name = utf8(&folder)?;
        for entry in fs::read_dir(&folder).map_err(|e| fault::io(name, e))? {
            let entry = entry.map_err(|e| fault::io(name, e))?;
            let path = entry.path();
            let last = entry.file_name();
            if last == "_delta_log" {
                return Err(delta_table(argument, name));
            }
            if is_hidden(&last.to_string_lossy()) {
                continue;
            }
            let meta = fs::metadata(&path).map_err(|e| fault::io(&path.display().to_string(), e))?;
            if meta.is_dir() {
                folders.push(path);
            } else {
                found.push(file(path.clone(), utf8(&path)?, false)?);
            }
        }
    }
    Ok(())
}

/// Refuses a folder that is a Delta table or lies in one.
fn refuse_table(argument: &str, folder: &Path) -> Result<()> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if here.join("_delta_log").is_dir() {
        return Err(delta_table(argument, &folder.display().to_string()));
    }
    let whole = fs::canonicalize(here).map_err(|e| fault::io(argument, e))?;
    match whole.ancestors().skip(1).find(|above| above.join("_delta_log").is_dir()) {
        Some(table) => Err(delta_table(argument, &table.display().to_string())),
        None => Ok(()),
    }
}

fn file(path: PathBuf, name: &str, named: bool) -> Result<Found> {
    let meta = fs::metadata(&path).map_err(|e| fault::io(name, e))?;
    // A pipe has no place of its own in the file tree; its path is all that tells it apart.
    let key = fs::canonicalize(&path).unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned();
    let size = meta.is_file().then_some(meta.len());
    Ok(Found { name: name.to_owned(), key, size, place: InputPlace::Local(path), named })
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("{} has a name that is not UTF-8", path.display())))
}
