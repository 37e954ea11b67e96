//! Different rows of one key of which none is the newest, and the refusal that names them.

use std::cmp::Ordering;
use std::fmt;

use arrow::datatypes::DataType;

use crate::error::Error;
use crate::prepare::keys::Keyed;
use crate::source::Place;

/// Keys that a refusal names.
pub(super) const NAMED: usize = 5;
/// Places that are named for one key.
const PLACES: usize = 4;

/// Rows of one key that are equally new and not the same.
#[derive(Debug)]
pub(super) struct Tie {
    /// Those that come first in the source, in its order.
    places: Vec<Place>,
    rows: u64,
    /// For each column of the table, whether every row differs there from the first.
    differs: Vec<bool>,
}

impl Tie {
    pub(super) fn new(first: Place, columns: usize) -> Self {
        Self { places: vec![first], rows: 1, differs: vec![true; columns] }
    }

    /// Adds a row, with the columns in which it differs from the first.
    pub(super) fn add(&mut self, place: Place, differs: impl Iterator<Item = bool>) {
        self.rows += 1;
        let after = self.places.partition_point(|other| cmp_places(other, &place).is_lt());
        self.places.insert(after, place);
        self.places.truncate(PLACES);
        for (all, this) in self.differs.iter_mut().zip(differs) {
            *all &= this;
        }
    }

    /// By where they come in the source.
    pub(super) fn cmp_place(&self, other: &Self) -> Ordering {
        let firsts = self.places.first().zip(other.places.first());
        firsts.map_or(Ordering::Equal, |(one, other)| cmp_places(one, other))
    }
}

fn cmp_places(one: &Place, other: &Place) -> Ordering {
    (&one.source, one.number).cmp(&(&other.source, other.number))
}

impl fmt::Display for Tie {
    /// `ties.csv line 3 and line 9`: a source is named where it changes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.rows.saturating_sub(self.places.len() as u64);
        let last = self.places.len().saturating_sub(1);
        let mut before: Option<&Place> = None;
        for (i, place) in self.places.iter().enumerate() {
            match i {
                0 => {}
                _ if i == last && more == 0 => f.write_str(" and ")?,
                _ => f.write_str(", ")?,
            }
            let text = place.to_string();
            let known = before.is_some_and(|before| before.source == place.source);
            let text = if known { text.strip_prefix(&*place.source).unwrap_or(&text).trim_start() } else { &text };
            f.write_str(text)?;
            before = Some(place);
        }
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        Ok(())
    }
}

/// The refusal of a source with `ties`, of which `named` are shown.
pub(super) fn refuse<'a>(keyed: &Keyed, named: Vec<String>, ties: impl Iterator<Item = &'a Tie>) -> Error {
    let mut count = 0_usize;
    let mut differs = vec![true; keyed.schema.columns().fields().len()];
    for tie in ties {
        count += 1;
        for (all, this) in differs.iter_mut().zip(&tie.differs) {
            *all &= this;
        }
    }
    let keys = if count == 1 { "1 key has".to_owned() } else { format!("{count} keys have") };
    let column = telling(keyed, &differs);
    let (message, hint) = match &keyed.order {
        Some(order) => (
            format!("{keys} more than one newest row, so the order is not total; nothing was changed"),
            match column {
                Some(column) => format!(
                    "add a column that tells them apart, for example --newest-by \"{}, {column} desc\"",
                    order.declared()
                ),
                None => "add a column to --newest-by that tells them apart".to_owned(),
            },
        ),
        None => (
            format!("{keys} more than one row in the source, and no order says which is newest; nothing was changed"),
            match column {
                Some(column) => format!(
                    "give each key one row, or merge with the order that says which is newest, for example --newest-by \"{column} desc\""
                ),
                None => {
                    "give each key one row, or merge with the order that says which is newest (--newest-by)".to_owned()
                }
            },
        ),
    };
    let more = count.saturating_sub(named.len());
    Error::refused(message).details(named).details((more > 0).then(|| format!("and {more} more"))).hint(hint)
}

/// A column in which all ties differ: times before numbers before the rest, since such columns more often say what is newer.
fn telling<'a>(keyed: &'a Keyed, differs: &[bool]) -> Option<&'a str> {
    let rank = |data_type: &DataType| match data_type {
        DataType::Timestamp(..) => 0,
        DataType::Date32 => 1,
        DataType::Int64 => 2,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Decimal128(..) => 3,
        _ => 4,
    };
    let fields = keyed.schema.columns().fields().iter().zip(differs).enumerate();
    let free = fields.filter(|(column, (field, differs))| {
        let taken = keyed.order.as_ref().is_some_and(|order| order.columns().contains(column));
        **differs && !taken && !keyed.key.columns().contains(column) && !field.data_type().is_nested()
    });
    free.min_by_key(|(column, (field, _))| (rank(field.data_type()), *column))
        .map(|(_, (field, _))| field.name().as_str())
}
