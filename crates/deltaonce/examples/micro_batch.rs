//! A service that appends micro-batches: each has a sequence number, so a batch that is delivered again is skipped.
//!
//! `cargo run --example micro_batch -- readings`

#![allow(clippy::disallowed_macros, clippy::expect_used, reason = "a program of its own, not the library")]

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaonce::{Load, Location, Outcome, Result, Source, SystemHost, Table};
use futures::stream;

#[tokio::main]
async fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "readings".to_owned());
    let table = Table::open(Location::parse(&path, [])?, Arc::new(SystemHost::default())).await?;
    // The second batch arrives twice, as from any queue that delivers at least once.
    for sequence in [1, 2, 2, 3] {
        append(&table, sequence).await?;
    }
    Ok(())
}

async fn append(table: &Table, sequence: i64) -> Result<()> {
    let (schema, batch) = batch(sequence);
    let load = Load::append().txn("readings", sequence);
    let receipt = table.apply(&load, Source::batches(schema, stream::iter([Ok(batch)]))).await?;
    match receipt.outcome {
        Outcome::Committed { version } => println!("batch {sequence}: committed as version {version}"),
        Outcome::Skipped { by, recorded, .. } => println!("batch {sequence}: skipped, {by} is recorded at {recorded}"),
        Outcome::Unchanged { version } => println!("batch {sequence}: version {version} says so already"),
    }
    Ok(())
}

fn batch(sequence: i64) -> (SchemaRef, RecordBatch) {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("sequence", DataType::Int64, true),
        Field::new("sensor", DataType::Utf8, true),
        Field::new("celsius", DataType::Float64, true),
    ]));
    let columns = RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(Int64Array::from(vec![sequence; 3])),
            Arc::new(StringArray::from(vec!["north", "south", "roof"])),
            Arc::new(Float64Array::from(vec![11.5, 12.25, 9.0])),
        ],
    );
    (schema, columns.expect("three columns of three rows"))
}
