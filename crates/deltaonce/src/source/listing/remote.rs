//! Objects of an object store.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::{Found, Locate, delta_table, is_glob, is_hidden_below};
use crate::error::{Error, Result};
use crate::source::fault;
use crate::source::input::InputPlace;
use crate::source::object::Object;

/// The objects that `argument` stands for: one object, a prefix, or a glob below a prefix.
pub(super) async fn expand(argument: &str, locate: Locate<'_>) -> Result<Vec<Found>> {
    let (folder, pattern) = split(argument);
    let (store, path) = locate(folder)?;
    if pattern.is_none() && !argument.ends_with('/') {
        match store.head(&path).await {
            Ok(meta) => return Ok(vec![object(argument, argument.to_owned(), &store, &meta, true)]),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(e) => return Err(fault::store(argument, e)),
        }
    }
    below(argument, folder, &store, &path, pattern).await
}

/// The folder part of an address up to the first glob sign, and the pattern after it.
fn split(argument: &str) -> (&str, Option<&str>) {
    let rest = argument.find("://").map_or(0, |at| at + 3);
    let glob = argument.get(rest..).and_then(|text| text.find(['*', '?', '['])).map(|at| at + rest);
    match glob.and_then(|glob| argument.get(..glob)?.rfind('/')) {
        Some(slash) if is_glob(argument) => {
            argument.split_at_checked(slash + 1).map_or((argument, None), |(folder, pattern)| (folder, Some(pattern)))
        }
        _ => (argument, None),
    }
}

/// Refuses a place below the root of a Delta table: its files may be ones that the table no longer holds.
async fn refuse_inside_table(argument: &str, store: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    let mut ancestor = Path::default();
    for part in path.parts() {
        let log = ancestor.clone().join("_delta_log");
        if store.list(Some(&log)).try_next().await.map_err(|e| fault::store(argument, e))?.is_some() {
            return Err(delta_table(argument, ancestor.as_ref()));
        }
        ancestor = ancestor.join(part);
    }
    Ok(())
}

async fn below(
    argument: &str,
    folder: &str,
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    pattern: Option<&str>,
) -> Result<Vec<Found>> {
    let matcher = pattern
        .map(|pattern| Pattern::new(pattern).map_err(|e| Error::invalid(format!("{argument} is not a glob: {e}"))))
        .transpose()?;
    let options =
        MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    refuse_inside_table(argument, store, path).await?;
    let mut tables = BTreeSet::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut matches: Vec<(String, ObjectMeta)> = Vec::new();
    let mut objects = store.list(Some(path));
    while let Some(meta) = objects.try_next().await.map_err(|e| fault::store(argument, e))? {
        let Some(rest) = below_prefix(&meta.location, path) else { continue };
        if let Some((table, _)) = format!("/{rest}").split_once("/_delta_log/") {
            tables.insert(table.trim_start_matches('/').to_owned());
            continue;
        }
        folders.extend(rest.rfind('/').and_then(|slash| rest.get(..slash)).map(ToOwned::to_owned));
        let wanted = matcher.as_ref().is_none_or(|matcher| matcher.matches_with(&rest, options));
        if wanted && !is_hidden_below(&rest, pattern.unwrap_or_default()) {
            matches.push((rest, meta));
        }
    }
    // Some tools put an empty object where a folder is.
    matches.retain(|(rest, meta)| meta.size > 0 || !folders.contains(rest));
    let folder = folder.trim_end_matches('/');
    if pattern.is_none() && tables.contains("") {
        return Err(delta_table(argument, folder));
    }
    for (rest, _) in &matches {
        let inside = |table: &&String| table.is_empty() || rest.starts_with(&format!("{table}/"));
        if let Some(table) = tables.iter().find(inside) {
            return Err(delta_table(argument, &format!("{folder}/{table}")));
        }
    }
    Ok(matches.iter().map(|(rest, meta)| object(argument, format!("{folder}/{rest}"), store, meta, false)).collect())
}

fn below_prefix(location: &Path, prefix: &Path) -> Option<String> {
    let parts: Vec<_> = location.prefix_match(prefix)?.map(|part| part.as_ref().to_owned()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn object(argument: &str, name: String, store: &Arc<dyn ObjectStore>, meta: &ObjectMeta, named: bool) -> Found {
    // The same key in two buckets is two objects, but s3:// and s3a:// are one place.
    let bucket = argument.split('/').nth(2).unwrap_or_default();
    let object = Object::new(name.as_str().into(), store.clone(), meta.location.clone(), meta.size);
    Found {
        key: format!("{bucket}/{}", meta.location),
        size: Some(meta.size),
        place: InputPlace::Object(Arc::new(object)),
        name,
        named,
    }
}
