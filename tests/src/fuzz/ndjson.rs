//! NDJSON files of known rows.

use deltaonce::{CsvOptions, Format};

use super::grid::{Grid, Kind};
use super::{Case, Random, text};

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let grid = Grid::new(&mut case.random);
    let file = write(&mut case.random, &grid);
    text::load(case, &grid, file, Format::Ndjson, CsvOptions::default()).await
}

fn write(random: &mut Random, grid: &Grid) -> Vec<u8> {
    let mut out = String::new();
    if random.once_in(6) {
        out.push('\u{feff}');
    }
    for row in &grid.rows {
        let mut members = Vec::new();
        for ((name, kind), value) in grid.columns.iter().zip(row) {
            let value = match value {
                Some(value) => spelt(random, *kind, value),
                None if random.once_in(2) => continue,
                None => "null".to_owned(),
            };
            let (before, after) = (*random.pick(&["", "", " ", "\t"]), *random.pick(&["", "", " "]));
            let member = format!("{before}{}{after}:{before}{value}{after}", string(random, name));
            let at = random.below(members.len() + 1);
            members.insert(at, member);
        }
        let indent = *random.pick(&["", "", " ", "\t "]);
        out.push_str(&format!("{indent}{{{}}}{}", members.join(","), random.pick(&["\n", "\n", "\r\n", "\n \n"])));
    }
    if random.once_in(3) {
        out.truncate(out.trim_end().len());
    }
    out.into_bytes()
}

fn spelt(random: &mut Random, kind: Kind, value: &str) -> String {
    match kind {
        Kind::Bigint | Kind::Smallint | Kind::Double | Kind::Boolean => value.to_owned(),
        Kind::Decimal if random.once_in(2) => value.to_owned(),
        Kind::Decimal | Kind::Text | Kind::Date | Kind::Timestamp => string(random, value),
    }
}

/// A JSON string, some of its characters escaped though they need not be.
fn string(random: &mut Random, text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            _ if letter.is_control() || random.once_in(8) => {
                let mut units = [0; 2];
                letter.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}
