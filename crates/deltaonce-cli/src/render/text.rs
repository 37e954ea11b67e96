//! What a person reads: the first word and line say it all, the lines below say how.

use deltaonce::{Commit, Description, Error, ErrorKind, Identity, Outcome, Receipt, RecordedIdentity};

use super::{Report, Subject, words};
use crate::render::words::{count, list, number};

/// A report, its last line end included.
pub(crate) fn report(report: &Report) -> String {
    match report {
        Report::Load(receipt) if receipt.contract == "create" => created(receipt),
        Report::Load(receipt) if receipt.contract == "set" => set(receipt),
        Report::Load(receipt) => load(receipt),
        Report::Table { table, description } => described(table, description),
        Report::History { table, commits } => history(table, commits),
        Report::Txns { table, txns } => identities(table, txns),
        Report::Held { table, commit } => held(table, commit),
        Report::Script(script) => script.clone(),
    }
}

/// An error: the sentence, its evidence, what to do.
pub(crate) fn error(error: &Error, subject: &Subject) -> String {
    let mut sentence = error.message().to_owned();
    // All of these promise it, and a person whose load failed wants to read it.
    let unchanged = matches!(
        error.kind(),
        ErrorKind::Refused | ErrorKind::Unsupported | ErrorKind::Retryable | ErrorKind::Interrupted
    );
    if subject.contract.is_some() && unchanged && !sentence.contains("nothing was changed") {
        sentence.push_str("; nothing was changed");
    }
    let mut page = Page::new(words::kind(error.kind()), &sentence);
    for line in error.evidence() {
        page.plain(line);
    }
    if let Some(cause) = cause(error) {
        page.plain(&format!("cause: {cause}"));
    }
    if let Some(hint) = error.advice() {
        page.plain(&format!("hint: {hint}"));
    }
    page.text
}

/// The innermost words of what went wrong, in one line, where the sentence does not say them already.
fn cause(error: &Error) -> Option<String> {
    const LIMIT: usize = 400;
    let cause = std::error::Error::source(error)?.to_string();
    // The library has told what is in a server's answer; its markup tells a person nothing.
    let cause = cause.split("<?xml").next().unwrap_or_default().trim_end_matches([':', ' ']);
    let cause: Vec<&str> = cause.split_whitespace().collect();
    let cause = cause.join(" ");
    if cause.is_empty() || error.message().contains(&cause) {
        return None;
    }
    let cut = cause.char_indices().nth(LIMIT).map(|(at, _)| at);
    Some(cut.and_then(|at| cause.get(..at)).map_or(cause.clone(), |start| format!("{start}…")))
}

/// A first line, and lines below it whose first word names them.
struct Page {
    text: String,
}

impl Page {
    fn new(word: &str, sentence: &str) -> Self {
        Self { text: format!("{word:<9}  {sentence}\n") }
    }

    /// A line that is named, unless it has nothing to say.
    fn line(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.plain(&format!("{name:<8} {text}"));
        }
    }

    fn plain(&mut self, text: &str) {
        self.text.push_str("  ");
        self.text.push_str(text);
        self.text.push('\n');
    }
}

fn created(receipt: &Receipt) -> String {
    let table = &receipt.table;
    match &receipt.outcome {
        Outcome::Committed { version } => Page::new("created", &format!("{table} at version {version}")).text,
        Outcome::Unchanged { version } => {
            Page::new("unchanged", &format!("{table} is there already, as asked for, at version {version}")).text
        }
        Outcome::Skipped { .. } => load(receipt),
    }
}

fn set(receipt: &Receipt) -> String {
    let table = &receipt.table;
    match &receipt.outcome {
        Outcome::Committed { version } => {
            let mut page = Page::new("committed", &format!("version {version} of {table}"));
            if receipt.attempts > 1 {
                page.line("commit", &format!("{} attempts", receipt.attempts));
            }
            page.text
        }
        Outcome::Unchanged { version } => {
            Page::new("unchanged", &format!("version {version} of {table} says this already")).text
        }
        Outcome::Skipped { .. } => load(receipt),
    }
}

fn load(receipt: &Receipt) -> String {
    let table = &receipt.table;
    let mut page = match &receipt.outcome {
        Outcome::Committed { version: 0 } => Page::new("committed", &format!("version 0 of {table}, a new table")),
        Outcome::Committed { version } => Page::new("committed", &format!("version {version} of {table}")),
        Outcome::Unchanged { version } => {
            Page::new("unchanged", &format!("version {version} of {table} says this already"))
        }
        Outcome::Skipped { by, recorded, at_version, at_time } => {
            return skipped(receipt, by, *recorded, *at_version, *at_time);
        }
    };
    page.line("identity", &list(&receipt.identities));
    page.line("source", &source(receipt));
    page.line("table", &rows(receipt));
    page.line("files", &files(receipt));
    if receipt.attempts > 1 {
        page.line("commit", &format!("{} attempts", receipt.attempts));
    }
    page.line("took", &words::duration(receipt.took));
    page.text
}

fn skipped(receipt: &Receipt, by: &Identity, recorded: i64, at_version: Option<u64>, at_time: Option<i64>) -> String {
    let table = &receipt.table;
    let time = at_time.and_then(words::minute).map(|time| format!(" ({time})")).unwrap_or_default();
    let sentence = match (recorded > by.version, at_version) {
        (false, Some(version)) => format!("{by} was already applied by version {version} of {table}{time}"),
        (false, None) => format!("{by} was already applied to {table}{time}"),
        (true, Some(version)) => {
            format!("{by} is superseded by {}={recorded}, applied by version {version} of {table}{time}", by.app_id)
        }
        (true, None) => format!("{by} is superseded by {}={recorded}, applied to {table}{time}", by.app_id),
    };
    let mut page = Page::new("skipped", &sentence);
    if receipt.identities.len() > 1 {
        page.line("identity", &list(&receipt.identities));
    }
    if receipt.rows.read > 0 {
        page.line("source", &format!("{}, the same as were applied", count(receipt.rows.read, "row")));
    }
    page.text
}

/// What the source held: rows, and how many of them count.
fn source(receipt: &Receipt) -> String {
    let rows = &receipt.rows;
    let mut parts = Vec::new();
    if rows.duplicates + rows.superseded > 0 {
        parts.push(count(rows.read.saturating_sub(rows.duplicates + rows.superseded), "key"));
    }
    if rows.superseded > 0 {
        let age = if receipt.contract == "merge" { "older row" } else { "further row" };
        parts.push(format!("{} of the same key", count(rows.superseded, age)));
    }
    if rows.duplicates > 0 {
        parts.push(count(rows.duplicates, "exact duplicate"));
    }
    let read = count(rows.read, "row");
    if parts.is_empty() { read } else { format!("{read}: {}", list(parts)) }
}

/// What became of the rows.
fn rows(receipt: &Receipt) -> String {
    let rows = &receipt.rows;
    let fates = [
        (rows.deleted, "deleted"),
        (rows.inserted, "inserted"),
        (rows.updated, "updated"),
        (rows.stale, "already newer"),
        (rows.divergent, "as new but different, kept as they were"),
        (rows.unchanged, "already there"),
    ];
    list(fates.iter().filter(|(n, _)| *n > 0).map(|(n, fate)| format!("{} {fate}", number(*n))))
}

/// What became of the table's files. A merge takes a file out only to write it anew.
fn files(receipt: &Receipt) -> String {
    let files = &receipt.files;
    let rewritten = if receipt.contract == "merge" { files.added.min(files.removed) } else { 0 };
    let fates = [
        (rewritten, "rewritten"),
        (files.added.saturating_sub(rewritten), "added"),
        (files.removed.saturating_sub(rewritten), "removed"),
        (files.masked, "masked"),
    ];
    let changed = list(fates.iter().filter(|(n, _)| *n > 0).map(|(n, fate)| format!("{} {fate}", number(*n))));
    let all = files.probed + files.pruned;
    let probed = (all > 0).then(|| format!("{} of {} probed", number(files.probed), number(all)));
    match (changed.is_empty(), probed) {
        (true, probed) => probed.unwrap_or_default(),
        (false, None) => changed,
        (false, Some(probed)) => format!("{changed}; {probed}"),
    }
}

fn described(table: &str, description: &Description) -> String {
    let mut text = format!("{table}  version {}\n", description.version);
    let mut line = |name: &str, words: &str| {
        if !words.is_empty() {
            text.push_str(&format!("  {name:<11} {words}\n"));
        }
    };
    let mut name = "columns";
    for column in &description.schema {
        line(name, column);
        name = "";
    }
    line("partitioned", &list(&description.partition_columns));
    name = "properties";
    for (key, value) in &description.properties {
        line(name, &format!("{key}={value}"));
        name = "";
    }
    line("features", &list(&description.features));
    line("rows", &description.rows.map_or_else(|| "unknown: a file's count is not in the log".to_owned(), number));
    line("files", &format!("{}, {}", count(description.files, "file"), words::bytes(description.bytes)));
    text
}

fn history(table: &str, commits: &[Commit]) -> String {
    if commits.is_empty() {
        return format!("{table} has no version in its log\n");
    }
    let width = commits.iter().map(|commit| commit.version.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for commit in commits {
        let time = commit.timestamp.and_then(words::second);
        let run = commit.run_id.as_ref().map(|run| format!("run {run}"));
        let identities = (!commit.identities.is_empty()).then(|| list(&commit.identities));
        let facts = [time, commit.operation.clone(), identities, commit.engine.clone(), run];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        text.push_str(&format!("{:>width$}  {}\n", commit.version, facts.join("  ")));
        let evidence = evidence(commit);
        if !evidence.is_empty() {
            text.push_str(&format!("{:>width$}  {evidence}\n", ""));
        }
    }
    text
}

/// What a commit says of its rows, in its writer's own words: a predicate and the row counts that are not zero.
fn evidence(commit: &Commit) -> String {
    let predicate = commit.parameters.get("predicate").filter(|value| !value.is_empty());
    let predicate = predicate.map(|value| format!("predicate={value}"));
    let counts = commit.metrics.iter().filter(|(name, _)| name.contains("Row"));
    let counts = counts.filter_map(|(name, value)| {
        let n = value.parse().ok().filter(|n| *n > 0)?;
        Some(format!("{name}={}", number(n)))
    });
    list(predicate.into_iter().chain(counts))
}

fn identities(table: &str, txns: &[RecordedIdentity]) -> String {
    if txns.is_empty() {
        return format!("{table} records no identity\n");
    }
    let name = |txn: &RecordedIdentity| format!("{}={}", txn.app_id, txn.version);
    let width = txns.iter().map(|txn| name(txn).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for txn in txns {
        let time = txn.last_updated.and_then(words::second).unwrap_or_default();
        text.push_str(format!("{:<width$}  {time}", name(txn)).trim_end());
        text.push('\n');
    }
    text
}

fn held(table: &str, commit: &Commit) -> String {
    let when = commit.timestamp.and_then(words::second).map(|time| format!(" ({time})")).unwrap_or_default();
    Page::new("held", &format!("version {} of {table} is this load's entry{when}", commit.version)).text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
