//! A table under test, as its files and as other software sees it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use object_store::local::LocalFileSystem;
use object_store::path::Path as StorePath;
use serde_json::{Value, json};

use crate::content::Rows;
use crate::ledger::{Ledger, entry_name};
use crate::peers;
use crate::s3::{S3, block_on, key_of};

/// A table on local disk or on an S3 server.
#[derive(Debug, Clone)]
pub struct Table {
    url: String,
    server: Option<&'static S3>,
}

impl Table {
    /// A table in a folder.
    #[must_use]
    pub fn local(folder: &Path) -> Self {
        Self { url: folder.display().to_string(), server: None }
    }

    /// A table on a server.
    #[must_use]
    pub fn on(server: &'static S3, url: &str) -> Self {
        Self { url: url.to_owned(), server: Some(server) }
    }

    fn options(&self) -> BTreeMap<String, String> {
        self.server.map(S3::options).unwrap_or_default()
    }

    /// Its rows as Python deltalake reads them.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn rows(&self) -> Rows {
        self.rows_by("deltalake").unwrap_or_else(|error| panic!("{} cannot be read: {error}", self.url))
    }

    /// Its rows as Python deltalake and DuckDB read them.
    ///
    /// # Panics
    /// When one cannot read it, or the two differ.
    #[must_use]
    pub fn rows_by_all(&self) -> Rows {
        let rows = self.rows();
        let others = self.rows_by("duckdb").unwrap_or_else(|error| panic!("DuckDB cannot read {}: {error}", self.url));
        assert_eq!(rows, others, "deltalake and DuckDB read different rows from {}", self.url);
        rows
    }

    /// Its rows as one reader (`deltalake`, `duckdb`) reads them, or that reader's error.
    pub fn rows_by(&self, reader: &str) -> Result<Rows, String> {
        let answer = self.ask("rows", json!({"with": reader}))?;
        Ok(Rows::from_json(answer.as_array().expect("rows are a list").iter().cloned()))
    }

    /// Its rows as Spark reads them; none on a machine without Java and Maven.
    ///
    /// # Panics
    /// When Spark cannot read it.
    #[must_use]
    pub fn rows_by_spark(&self) -> Option<Rows> {
        let answer = self.spark("rows", json!({}))?;
        Some(Rows::from_json(answer.as_array().expect("rows are a list").iter().cloned()))
    }

    /// Has Spark do something to it (`tests/peers/spark_peer.py`); it reads local disk only. None on a machine without Java
    /// and Maven.
    ///
    /// # Panics
    /// When that fails.
    pub fn spark(&self, what: &str, mut request: Value) -> Option<Value> {
        assert!(self.server.is_none(), "Spark reads no table on S3 here");
        request["do"] = json!(what);
        request["table"] = json!(self.url);
        let answer = peers::ask_spark(&request)?;
        Some(answer.unwrap_or_else(|error| panic!("Spark cannot {what} {}: {error}", self.url)))
    }

    /// Has Python deltalake do something to it (`tests/peers/writers.py`): `write`, `delete`, `compact`, `vacuum`, ….
    ///
    /// # Panics
    /// When that fails.
    pub fn peer(&self, what: &str, arguments: Value) -> Value {
        self.try_peer(what, arguments).unwrap_or_else(|error| panic!("deltalake cannot {what} {}: {error}", self.url))
    }

    /// The same, with deltalake's own error where it fails.
    pub fn try_peer(&self, what: &str, arguments: Value) -> Result<Value, String> {
        self.ask(what, arguments)
    }

    fn ask(&self, what: &str, mut request: Value) -> Result<Value, String> {
        request["do"] = json!(what);
        request["table"] = json!(self.url);
        request["options"] = json!(self.options());
        peers::ask(&request)
    }

    /// What its log and files say.
    ///
    /// # Panics
    /// Where they are not whole: see [`Ledger::read`].
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        match self.server {
            Some(server) => block_on(Ledger::read(&server.client(), &key_of(&self.url))),
            None => {
                let folder = StorePath::from_absolute_path(&self.url).expect("a table's folder is a path");
                block_on(Ledger::read(&LocalFileSystem::new(), &folder))
            }
        }
    }

    /// Its newest version, from the names in its log; none where there is no log.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        let entries = self.files().into_iter().filter_map(|name| {
            let number = name.strip_prefix("_delta_log/")?.strip_suffix(".json")?.to_owned();
            (number.len() == 20).then(|| number.parse().ok()).flatten()
        });
        entries.max()
    }

    /// The actions of a log entry.
    ///
    /// # Panics
    /// When there is no such entry, or it is not JSON lines.
    #[must_use]
    pub fn entry(&self, version: u64) -> Vec<Value> {
        let name = entry_name(version);
        let bytes = match self.server {
            Some(server) => server.get(&format!("{}/{name}", self.url)),
            None => fs::read(Path::new(&self.url).join(&name))
                .unwrap_or_else(|error| panic!("{name} of {} cannot be read: {error}", self.url)),
        };
        let text = String::from_utf8(bytes).expect("a log entry is UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("each line of a log entry is JSON")).collect()
    }

    /// Puts other text in a log entry's place, as a writer does that puts without a condition.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn overwrite_entry(&self, version: u64, text: &str) {
        let name = entry_name(version);
        match self.server {
            Some(server) => server.put_bytes(&format!("{}/{name}", self.url), text.as_bytes()),
            None => fs::write(Path::new(&self.url).join(&name), text)
                .unwrap_or_else(|error| panic!("{name} of {} cannot be written: {error}", self.url)),
        }
    }

    /// The one action of a kind in a log entry.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn action(&self, version: u64, kind: &str) -> Value {
        let action = self.entry(version).into_iter().find_map(|mut action| action.get_mut(kind).map(Value::take));
        action.unwrap_or_else(|| panic!("entry {version} of {} has no {kind}", self.url))
    }

    /// The data files that lie in its folder, whether or not the log names them.
    #[must_use]
    pub fn data_files(&self) -> Vec<String> {
        self.files().into_iter().filter(|name| name.ends_with(".parquet") && !name.starts_with("_delta_log/")).collect()
    }

    /// Every file in its folder, relative to it, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        if let Some(server) = self.server {
            return server.keys(&self.url);
        }
        let mut names = Vec::new();
        walk(Path::new(&self.url), "", &mut names);
        names.sort();
        names
    }
}

fn walk(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.expect("a folder's entry can be read");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type().expect("a file has a type").is_dir() {
            true => walk(&entry.path(), &format!("{name}/"), names),
            false => names.push(name),
        }
    }
}
