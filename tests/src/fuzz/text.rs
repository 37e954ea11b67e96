//! What the two targets that read text files share: a file, loaded into a new table.

use bytes::Bytes;
use deltaonce::{CsvOptions, Format, Load, Source, TableSpec};
use futures::stream;

use super::grid::Grid;
use super::lake::{Lake, Objects, harmless, sensible};
use super::{Case, Random, mutate};

/// Appends `file` to a new table of the grid's columns. As it is, it holds the grid's rows; in most cases it is spoilt,
/// and may then be refused.
pub(super) async fn load(
    case: &mut Case,
    grid: &Grid,
    mut file: Vec<u8>,
    format: Format,
    options: CsvOptions,
) -> Result<(), String> {
    let is_spoilt = case.random.once_in(2);
    if is_spoilt {
        for _ in 0..=case.random.length(4) {
            mutate::bytes(&mut case.random, &mut file);
        }
    }
    case.note(format!("schema: {}", grid.schema()));
    case.note(format!("{options:?}"));
    case.note(format!("file of {} bytes: {}", file.len(), file.escape_ascii()));
    let lake = Lake::holding(&Objects::new()).await;
    let spec = TableSpec { schema: Some(grid.schema()), ..TableSpec::default() };
    let source = Source::bytes(stream::iter(pieces(&mut case.random, file).into_iter().map(Ok)), format);
    let load = Load::append().create(spec);
    let result = lake.table().await.apply(&load, source.csv(options).name("rows")).await;
    sensible(&result)?;
    let after = lake.objects().await;
    harmless(&Objects::new(), &after, result.is_ok())?;
    match result {
        Err(error) if !is_spoilt => Err(format!("refused: {} {:?}", error.message(), error.evidence())),
        Err(_) => Ok(()),
        Ok(receipt) => {
            let rows = lake.rows().await;
            if receipt.rows.inserted != rows.len() as u64 {
                return Err(format!("{} rows are said to be there, and {} are", receipt.rows.inserted, rows.len()));
            }
            if is_spoilt { Ok(()) } else { same(&rows, &grid.shown()) }
        }
    }
}

/// Cuts a file into pieces, as a network would.
fn pieces(random: &mut Random, file: Vec<u8>) -> Vec<Bytes> {
    let mut rest = Bytes::from(file);
    let size = *random.pick(&[1, 3, 100, 70_000, 1 << 20, usize::MAX]);
    let size = if rest.len() > 10_000 { size.max(100) } else { size };
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let piece = rest.split_to(size.min(rest.len()));
        pieces.push(piece);
    }
    pieces
}

/// Whether a table holds the rows that it should.
pub(super) fn same(rows: &[String], expected: &[String]) -> Result<(), String> {
    if rows == expected {
        return Ok(());
    }
    let first = rows.iter().zip(expected).find(|(row, expected)| row != expected);
    Err(format!("{} rows where {} should be; the first that differ: {first:?}", rows.len(), expected.len()))
}
