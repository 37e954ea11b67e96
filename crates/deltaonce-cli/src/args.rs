//! Arguments that commands share, by what they are about.

use std::time::Duration;

use clap::{Args, ValueEnum};
use deltaonce::{Error, Identity, Load, NullKeys, Result, Scratch, TableSpec};

use crate::{environment, values};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For a person
    Text,
    /// One JSON document on stdout, errors included
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How the result is written to stdout
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(crate) output: Output,
    /// Leave out progress and notes on stderr; warnings and errors are still said
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The table: a folder, or a URL such as s3://lake/silver/orders
    #[arg(value_name = "TABLE", help_heading = None, value_parser = values::name)]
    pub(crate) table: String,
}

#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// An option of the storage that holds table and sources, such as aws_region=eu-central-1; repeatable
    #[arg(long = "storage-option", value_name = "KEY=VALUE")]
    options: Vec<String>,
}

impl StorageArgs {
    /// The options as given. An error does not repeat them, since one may be a secret.
    pub(crate) fn options(&self) -> Result<Vec<(String, String)>> {
        let pair = |text: &String| {
            values::pair(text).map_err(|why| Error::invalid(format!("a --storage-option is not understood: {why}")))
        };
        self.options.iter().map(pair).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    /// Name of the sequence that this load belongs to (Delta's txnAppId)
    #[arg(long, value_name = "APP", requires = "txn_version", value_parser = values::name)]
    txn_app_id: Option<String>,
    /// Number of this load in its sequence (Delta's txnVersion); a load already recorded, or an older one, is skipped
    #[arg(long, value_name = "N", requires = "txn_app_id", allow_negative_numbers = true, value_parser = values::version)]
    txn_version: Option<i64>,
    /// Both of the above in one; repeatable, for a load that ends several sequences (one per Kafka partition, say)
    #[arg(long = "txn", value_name = "APP=VERSION", value_parser = values::identity)]
    txns: Vec<Identity>,
    /// Name of this very load, for loads that have a name but no sequence
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    write_id: Option<String>,
    /// If the load was applied already, read its rows and refuse them where they are not those that were applied
    #[arg(long)]
    verify_replay: bool,
}

impl IdentityArgs {
    /// `load` with the identities, in the order of the help.
    fn on(&self, mut load: Load) -> Load {
        if let (Some(app_id), Some(version)) = (&self.txn_app_id, self.txn_version) {
            load = load.txn(app_id, version);
        }
        for txn in &self.txns {
            load = load.txn(&txn.app_id, txn.version);
        }
        if let Some(name) = &self.write_id {
            load = load.write_id(name);
        }
        load.verify_replay(self.verify_replay)
    }
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The table's columns if it has to be created: a file or text, either Delta's schema JSON or a list as in SQL,
    /// "order_id bigint not null, amount decimal(12,2)"
    #[arg(long, value_name = "FILE|COLUMNS")]
    schema: Option<String>,
    /// Partition columns if the table has to be created, in order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = values::column)]
    partition_by: Vec<String>,
}

impl SchemaArgs {
    /// How to make the table, if anything is said about it.
    ///
    /// # Errors
    /// `Invalid` for a schema file that cannot be read.
    fn spec(&self) -> Result<Option<TableSpec>> {
        if self.schema.is_none() && self.partition_by.is_empty() {
            return Ok(None);
        }
        let schema = self.schema.as_deref().map(schema_text).transpose()?;
        Ok(Some(TableSpec { schema, partition_by: self.partition_by.clone(), properties: Vec::new() }))
    }
}

/// The text of a schema that is given as itself or as a file.
///
/// # Errors
/// `Invalid` for a file that cannot be read.
pub(crate) fn schema_text(text: &str) -> Result<String> {
    // A column list has a type beside each name, so what is one word can only be meant as a file.
    let one_word = !text.contains(|c: char| c.is_whitespace() || "{(:,".contains(c));
    if one_word || std::path::Path::new(text).is_file() {
        return std::fs::read_to_string(text).map_err(|e| {
            Error::invalid(format!("the schema file '{text}' cannot be read: {e}"))
                .hint("--schema takes a file, or columns with their types: \"order_id bigint not null, amount decimal(12,2)\"")
        });
    }
    Ok(text.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Free text kept in the table's log, to find the run again
    #[arg(long, value_name = "TEXT")]
    pub(crate) run_id: Option<String>,
    /// How long to go on trying against other writers and failing storage, such as 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::duration)]
    pub(crate) commit_timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NullKeysArg {
    /// Refuse rows with a null in the key
    Refuse,
    /// Null equals null
    Match,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Columns that together identify a row
    #[arg(long, value_name = "COLUMNS", required = true, value_delimiter = ',', value_parser = values::column)]
    pub(crate) key: Vec<String>,
    /// What a null in a key column means
    #[arg(long, value_name = "WHAT", default_value = "refuse")]
    null_keys: NullKeysArg,
}

impl KeyArgs {
    pub(crate) fn null_keys(&self) -> NullKeys {
        match self.null_keys {
            NullKeysArg::Refuse => NullKeys::Refuse,
            NullKeysArg::Match => NullKeys::Match,
        }
    }
}

/// For loads that hold their source's rows.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Memory for the source's rows, such as 512MiB or 2GiB; beyond it they are sorted on local disk (TMPDIR). A quarter of
    /// the machine's, if not given
    #[arg(long, value_name = "SIZE", value_parser = values::memory, help_heading = "Run")]
    memory: Option<u64>,
}

impl MemoryArgs {
    /// What the rows of the load may take.
    pub(crate) fn scratch(&self) -> Scratch {
        environment::scratch(self.memory)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten, next_help_heading = "Source")]
    pub(crate) source: crate::commands::source::SourceArgs,
    #[command(flatten, next_help_heading = "Identity")]
    identity: IdentityArgs,
    #[command(flatten, next_help_heading = "New table")]
    schema: SchemaArgs,
    #[command(flatten, next_help_heading = "Run")]
    run: RunArgs,
    #[command(flatten, next_help_heading = "Storage")]
    pub(crate) storage: StorageArgs,
}

impl LoadArgs {
    /// `load` with all that is common to loads.
    ///
    /// # Errors
    /// `Invalid` for a schema file that cannot be read.
    pub(crate) fn complete(&self, load: Load) -> Result<Load> {
        let mut load = self.identity.on(load).deadline(self.run.commit_timeout);
        if let Some(run_id) = &self.run.run_id {
            load = load.run_id(run_id);
        }
        if let Some(spec) = self.schema.spec()? {
            load = load.create(spec);
        }
        Ok(load)
    }
}
