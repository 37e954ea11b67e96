//! Tables as Spark writes them (`fixtures/spark/tables.tar.gz`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::content::Rows;
use crate::fixture;
use crate::table::Table;

/// The golden tables, unpacked in a folder of their own so that a test may change them.
#[derive(Debug)]
pub struct Golden {
    folder: TempDir,
}

impl Default for Golden {
    fn default() -> Self {
        let folder = TempDir::with_prefix("deltaonce-golden-").expect("a temporary folder");
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(fixture("spark/tables.tar.gz"))
            .arg("-C")
            .arg(folder.path())
            .status()
            .expect("tar starts");
        assert!(status.success(), "the golden tables cannot be unpacked: {status}");
        Self { folder }
    }
}

impl Golden {
    /// The names of all tables, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the golden tables' folder can be read");
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                entry.expect("an entry").file_name().to_str()?.strip_suffix(".rows.json").map(str::to_owned)
            })
            .collect();
        names.sort();
        names
    }

    /// The folder of a table.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A table.
    #[must_use]
    pub fn table(&self, name: &str) -> Table {
        Table::local(&self.path(name))
    }

    /// Its rows as Spark read them.
    #[must_use]
    pub fn rows(&self, name: &str) -> Rows {
        let file = self.path(&format!("{name}.rows.json"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Rows::from_json(text.lines().map(|line| serde_json::from_str(line).expect("a golden row is JSON")))
    }
}
