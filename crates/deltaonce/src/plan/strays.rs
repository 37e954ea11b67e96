//! Incoming rows that lie outside the scope of their load.

use std::collections::BTreeSet;

use arrow::array::{Array, BooleanArray};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::source::Places;

/// Rows shown in an error.
const SAMPLES: usize = 5;

/// Counts the rows of a load and those of them that are not in its scope, and remembers where some of these stood.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    rows: u64,
    count: u64,
    samples: Vec<String>,
}

impl Strays {
    /// Takes in a batch: the rows, which of them the scope admits, where they stood, and the columns that tell why.
    pub(crate) fn observe(
        &mut self,
        batch: &RecordBatch,
        admitted: &BooleanArray,
        places: &Places,
        columns: &BTreeSet<String>,
    ) {
        self.rows += batch.num_rows() as u64;
        self.count += (admitted.len() - admitted.true_count()) as u64;
        let strays = (0..admitted.len()).filter(|row| admitted.is_null(*row) || !admitted.value(*row));
        for row in strays.take(SAMPLES - self.samples.len()) {
            self.samples.push(sample(batch, row, places, columns));
        }
    }

    /// Refuses the load if a row is outside; `scope` is the scope in the user's words.
    ///
    /// # Errors
    /// `Refused`, with the count and samples.
    pub(crate) fn refuse(&self, scope: &str) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let verb = if self.count == 1 { "lies" } else { "lie" };
        let mut error = Error::refused(format!(
            "{} of {} rows {verb} outside the scope {scope}; a null counts as outside",
            self.count, self.rows
        ))
        .details(self.samples.iter().cloned());
        let more = self.count - self.samples.len() as u64;
        if more > 0 {
            error = error.detail(format!("and {more} more"));
        }
        Err(error.hint("widen the scope, or leave these rows out of the source"))
    }
}

/// A row's place and its values in some columns.
pub(crate) fn sample(batch: &RecordBatch, row: usize, places: &Places, columns: &BTreeSet<String>) -> String {
    let options = FormatOptions::new().with_null("null");
    let values: Vec<String> = columns
        .iter()
        .filter_map(|name| {
            let column = batch.column_by_name(name)?;
            let value = ArrayFormatter::try_new(column.as_ref(), &options).ok()?.value(row).try_to_string().ok()?;
            Some(format!("{name}={}", super::value::cut(&value)))
        })
        .collect();
    let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    format!("{}{values}", places.of(row))
}
