//! Orders of `--newest-by`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use deltaonce::{Format, Load, Order, TableSpec};

use super::lake::{Lake, Objects, harmless, sensible, tells};
use super::sample::bytes;
use super::text::same;
use super::{Case, Random, mutate};

const WORDS: [&str; 18] = [
    "desc",
    "asc",
    "DESC",
    "nulls first",
    ",",
    ",,",
    "a",
    "s",
    "v",
    "id",
    "a desc",
    "`a`",
    "\"a\"",
    "é",
    "\u{0}",
    "now()",
    "",
    "-a",
];

/// id, a, s, v.
type Row = (i64, Option<i64>, Option<&'static str>, i64);

fn rows(random: &mut Random) -> Vec<Row> {
    let count = random.length(40);
    let null_or = |random: &mut Random| !random.once_in(4);
    (0..count)
        .map(|_| {
            let a = null_or(random).then(|| random.within(-20, 20));
            let s = null_or(random).then(|| *random.pick(&["", "a", "b", "ab", "é", "Z"]));
            (random.within(0, 5), a, s, random.within(0, 1))
        })
        .collect()
}

fn csv(rows: &[Row]) -> String {
    let line = |(id, a, s, v): &Row| {
        let a = a.map(|a| a.to_string()).unwrap_or_default();
        let s = s.map(|s| format!("\"{s}\"")).unwrap_or_default();
        format!("{id},{a},{s},{v}\n")
    };
    "id,a,s,v\n".to_owned() + &rows.iter().map(line).collect::<String>()
}

/// Columns with whether the greatest is newest.
type Declared = Vec<(&'static str, bool)>;

fn newer(declared: &Declared, one: &Row, other: &Row) -> Ordering {
    // A null is below every value, whichever of them is newest.
    fn side<T: Ord>(one: Option<T>, other: Option<T>, greatest: bool) -> Ordering {
        match (one, other) {
            (Some(one), Some(other)) if !greatest => other.cmp(&one),
            (one, other) => one.cmp(&other),
        }
    }
    let by = |(column, greatest): &(&str, bool)| match *column {
        "a" => side(one.1, other.1, *greatest),
        "s" => side(one.2, other.2, *greatest),
        _ => side(Some(one.3), Some(other.3), *greatest),
    };
    declared.iter().map(by).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

/// The newest row of each key; none where two different rows are.
fn winners(declared: &Declared, rows: &[Row]) -> Option<BTreeMap<i64, Row>> {
    let mut winners: BTreeMap<i64, Row> = BTreeMap::new();
    for row in rows {
        let best = winners.entry(row.0).or_insert(*row);
        if newer(declared, row, best).is_gt() {
            *best = *row;
        }
    }
    let tied = |row: &Row| winners.get(&row.0).is_some_and(|best| newer(declared, row, best).is_eq() && row != best);
    if rows.iter().any(tied) { None } else { Some(winners) }
}

pub(super) async fn run(case: &mut Case) -> Result<(), String> {
    let random = &mut case.random;
    let mut columns = vec!["a", "s", "v"];
    let mut declared = Declared::new();
    let mut parts = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (column, greatest) = (columns.remove(random.below(columns.len())), random.once_in(2));
        declared.push((column, greatest));
        let direction =
            if greatest { *random.pick(&["", " desc", " DESC ", "\tdesc"]) } else { *random.pick(&[" asc", "  ASC"]) };
        parts.push(format!("{column}{direction}"));
    }
    let mut text = parts.join(*random.pick(&[",", ", ", " ,\n"]));
    let is_spoilt = random.once_in(3);
    if is_spoilt {
        for _ in 0..=random.length(3) {
            mutate::text(random, &mut text, &WORDS);
        }
    }
    let batches = [rows(random), rows(random)];
    case.note(format!("order: {text}"));
    case.note(format!("{batches:?}"));
    let order = match Order::parse(&text) {
        Ok(order) => order,
        Err(error) if is_spoilt => return tells(&error),
        Err(error) => return Err(format!("refused: {}", error.message())),
    };
    if Order::parse(&order.to_string()).ok().as_ref() != Some(&order) {
        return Err(format!("it is shown as {order}, which is another order"));
    }
    let lake = Lake::holding(&Objects::new()).await;
    let mut table: BTreeMap<i64, Row> = BTreeMap::new();
    for rows in &batches {
        let before = lake.objects().await;
        let spec = TableSpec { schema: Some("id bigint, a int, s string, v int".into()), ..TableSpec::default() };
        let load = Load::merge(["id"]).newest_by(&text).map_err(|error| error.to_string())?.create(spec);
        let result = lake.table().await.apply(&load, bytes(csv(rows), Format::Csv)).await;
        sensible(&result)?;
        harmless(&before, &lake.objects().await, matches!(&result, Ok(receipt) if receipt.attempts > 0))?;
        match (result, winners(&declared, rows)) {
            _ if is_spoilt => return Ok(()),
            (Err(error), Some(_)) => return Err(format!("refused: {} {:?}", error.message(), error.evidence())),
            (Ok(_), None) => return Err("rows that tie were taken".to_owned()),
            (Err(_), None) => return Ok(()),
            (Ok(_), Some(winners)) => {
                for (key, row) in winners {
                    let kept = table.entry(key).or_insert(row);
                    if newer(&declared, &row, kept).is_gt() {
                        *kept = row;
                    }
                }
            }
        }
        let shown = |(id, a, s, v): &Row| {
            let a = a.map_or("null".to_owned(), |a| a.to_string());
            format!("a={a} id={id} s={} v={v}", s.unwrap_or("null"))
        };
        let mut expected: Vec<String> = table.values().map(shown).collect();
        expected.sort();
        same(&lake.rows().await, &expected)?;
    }
    Ok(())
}
