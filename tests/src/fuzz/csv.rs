//! CSV files of known rows.

use deltaonce::{CsvOptions, Format};

use super::grid::Grid;
use super::{Case, Random, text};

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let grid = Grid::new(&mut case.random);
    let options = CsvOptions {
        delimiter: *case.random.pick(b",,;|\t"),
        quote: Some(*case.random.pick(b"\"\"'")),
        null: case.random.once_in(3).then(|| (*case.random.pick(&["NULL", "\\N", "-"])).to_owned()),
    };
    let file = write(&mut case.random, &grid, &options);
    text::load(case, &grid, file, Format::Csv, options).await
}

fn write(random: &mut Random, grid: &Grid, options: &CsvOptions) -> Vec<u8> {
    let writer =
        Writer { delimiter: char::from(options.delimiter), quote: char::from(options.quote.unwrap_or(b'"')), options };
    let mut order: Vec<usize> = (0..grid.columns.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut out = String::new();
    if random.once_in(6) {
        out.push('\u{feff}');
    }
    let end = *random.pick(&["\n", "\n", "\r\n"]);
    let header = order.iter().map(|at| writer.field(random, Some(&grid.columns[*at].0)));
    let header: Vec<_> = header.collect();
    out.push_str(&header.join(&writer.delimiter.to_string()));
    out.push_str(end);
    for row in &grid.rows {
        let fields: Vec<_> = order.iter().map(|at| writer.field(random, row[*at].as_deref())).collect();
        out.push_str(&fields.join(&writer.delimiter.to_string()));
        out.push_str(end);
        // A line with nothing on it is no record where records have several fields.
        if order.len() > 1 && random.once_in(20) {
            out.push_str(end);
        }
    }
    if random.once_in(3) {
        out.truncate(out.trim_end_matches(['\r', '\n']).len());
    }
    out.into_bytes()
}

struct Writer<'a> {
    delimiter: char,
    quote: char,
    options: &'a CsvOptions,
}

impl Writer<'_> {
    fn field(&self, random: &mut Random, value: Option<&str>) -> String {
        let null = self.options.null.as_deref().unwrap_or_default();
        let Some(value) = value else { return null.to_owned() };
        let must = value == null
            || value.is_empty()
            || value.contains([self.delimiter, self.quote, '\n', '\r'])
            // At the start of the file it would be taken for the mark of the encoding.
            || value.starts_with('\u{feff}');
        if must || random.once_in(5) {
            format!("{0}{1}{0}", self.quote, value.replace(self.quote, &format!("{0}{0}", self.quote)))
        } else {
            value.to_owned()
        }
    }
}
