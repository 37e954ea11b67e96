use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use futures::{StreamExt, stream};
use proptest::prelude::*;

use super::*;
use crate::load::Order;
use crate::source::Unit;
use crate::table::schema::TableSchema;

/// key, order 1, order 2, payload
type Row = [Option<i64>; 4];

fn schema() -> TableSchema {
    let fields = ["k", "o1", "o2", "p"].map(|name| Field::new(name, DataType::Int64, true));
    TableSchema::new(Arc::new(Schema::new(fields.to_vec())), Vec::new())
}

fn batch(rows: &[Row]) -> RecordBatch {
    let column = |i: usize| Arc::new(Int64Array::from_iter(rows.iter().map(|row| row[i]))) as ArrayRef;
    RecordBatch::try_new(schema().columns().clone(), (0..4).map(column).collect()).unwrap()
}

fn choose_rows(rows: &[Row], cut: usize, order: Option<&str>, null_keys: NullKeys, losers: usize) -> Result<Winners> {
    let order = order.map(|order| Order::parse(order).unwrap());
    let keyed = Keyed::new("t", &schema(), &["k".to_owned()], order.as_ref(), null_keys)?;
    let batches = rows.chunks(cut.max(1)).enumerate().map(|(number, rows)| {
        let first = (number * cut.max(1)) as u64 + 2;
        Ok((batch(rows), Places::consecutive("ties.csv".into(), Unit::Line, first)))
    });
    let source = stream::iter(batches.collect::<Vec<_>>()).boxed();
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(choose_beside(keyed, source, losers, None))
        .map(|chosen| match chosen {
            Chosen::Held(winners) => winners,
            Chosen::Spilled(_) => panic!("nothing bounds the memory"),
        })
}

fn by_key(winners: &Winners) -> BTreeMap<Option<i64>, Row> {
    let slots: Vec<Slot> = winners.slots().collect();
    let columns = winners.gather(&slots, &[0, 1, 2, 3]).unwrap();
    let value = |column: &ArrayRef, row| column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row));
    let rows = (0..slots.len()).map(|row| [0, 1, 2, 3].map(|column| value(&columns[column], row)));
    rows.map(|row| (row[0], row)).collect()
}

/// What a merge would take from rows, said the slow way: the rows by key, duplicates and superseded; none for a tie.
fn model(rows: &[Row], order: Option<&str>) -> Option<(BTreeMap<Option<i64>, Row>, u64, u64)> {
    let newness = |row: &Row| match order {
        None => vec![],
        Some("o1 desc, o2 desc") => vec![row[1], row[2]],
        Some("o1 desc, o2 asc") => vec![row[1], row[2].map(|o| -o)],
        Some(other) => panic!("the model does not know the order {other}"),
    };
    let mut keys: BTreeMap<Option<i64>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        keys.entry(row[0]).or_default().push(row);
    }
    let (mut winners, mut duplicates, mut superseded) = (BTreeMap::new(), 0, 0);
    for (key, rows) in keys {
        // None sorts before Some, so nulls are oldest.
        let newest = rows.iter().map(|row| newness(row)).max()?;
        let top: Vec<&&Row> = rows.iter().filter(|row| newness(row) == newest).collect();
        if top.iter().any(|row| row != &top[0]) {
            return None;
        }
        winners.insert(key, **top[0]);
        duplicates += top.len() as u64 - 1;
        superseded += (rows.len() - top.len()) as u64;
    }
    Some((winners, duplicates, superseded))
}

proptest! {
    #[test]
    fn the_choice_is_that_of_the_model_however_rows_are_cut_and_ordered(
        rows in prop::collection::vec([
            prop::option::weighted(0.9, 0..6_i64),
            prop::option::weighted(0.8, 0..4_i64),
            prop::option::weighted(0.8, 0..4_i64),
            prop::option::weighted(0.9, 0..2_i64),
        ], 0..40).prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        cuts in (1..9_usize, 1..50_usize),
        losers in prop::sample::select(vec![0, LOSERS]),
        order in prop::sample::select(vec![None, Some("o1 desc, o2 desc"), Some("o1 desc, o2 asc")]),
    ) {
        let expected = model(&rows.0, order);
        for (rows, cut) in [(&rows.0, cuts.0), (&rows.1, cuts.1)] {
            match (choose_rows(rows, cut, order, NullKeys::Match, losers), &expected) {
                (Ok(winners), Some((by, duplicates, superseded))) => {
                    prop_assert_eq!(&by_key(&winners), by);
                    let counts = winners.counts();
                    prop_assert_eq!(counts.read, rows.len() as u64);
                    prop_assert_eq!(counts.duplicates, *duplicates);
                    prop_assert_eq!(counts.superseded, *superseded);
                }
                (Err(error), None) => prop_assert_eq!(error.kind(), crate::ErrorKind::Refused),
                (got, expected) => prop_assert!(false, "{:?} instead of {:?}", got.map(|w| by_key(&w)), expected),
            }
        }
    }
}

fn row(key: i64, order: i64, payload: i64) -> Row {
    [Some(key), Some(order), Some(0), Some(payload)]
}

#[test]
fn a_tie_names_its_keys_and_places() {
    let rows = [
        row(1, 5, 0),
        row(1007, 9, 1),
        row(1044, 1, 0),
        row(1044, 3, 7),
        row(1044, 3, 8),
        row(2, 1, 1),
        row(3, 1, 1),
        row(1007, 9, 2),
    ];
    let error = choose_rows(&rows, 3, Some("o1 desc"), NullKeys::Refuse, 0).unwrap_err();
    assert_eq!(error.message(), "2 keys have more than one newest row, so the order is not total; nothing was changed");
    assert_eq!(error.evidence(), ["k=1007  ties.csv line 3 and line 9", "k=1044  ties.csv line 5 and line 6"]);
    assert_eq!(error.advice(), Some("add a column that tells them apart, for example --newest-by \"o1 desc, p desc\""));
}

#[test]
fn a_tie_among_older_rows_is_harmless() {
    let rows = [row(1, 3, 7), row(1, 3, 8), row(1, 4, 9)];
    for rows in [rows, [rows[2], rows[0], rows[1]], [rows[0], rows[2], rows[1]]] {
        let winners = choose_rows(&rows, 1, Some("o1 desc"), NullKeys::Refuse, 0).unwrap();
        assert_eq!(by_key(&winners), BTreeMap::from([(Some(1), row(1, 4, 9))]));
        assert_eq!(winners.counts().superseded, 2);
    }
}

// Field reports A15, C03: one outcome for any order of the input.
#[test]
fn many_rows_of_one_key_have_one_winner_for_any_input_order() {
    let mut rows: Vec<Row> = (0..100).map(|n| row(1, n, n % 7)).collect();
    for turn in 0..100 {
        rows.rotate_left(37);
        rows.swap(turn, 99 - turn);
        let winners = choose_rows(&rows, 7, Some("o1 desc"), NullKeys::Refuse, 0).unwrap();
        assert_eq!(by_key(&winners), BTreeMap::from([(Some(1), row(1, 99, 99 % 7))]));
    }
}

// Field report B07: the error says which keys, where, and how many.
#[test]
fn without_an_order_a_key_with_two_rows_is_named() {
    let mut rows: Vec<Row> = (0..10_000).map(|n| row(n, 0, 0)).collect();
    rows.extend([row(77, 0, 1), row(5_000, 0, 1), row(9_999, 0, 1), row(3, 0, 0)]);
    let error = choose_rows(&rows, 4_096, None, NullKeys::Refuse, LOSERS).unwrap_err();
    assert!(error.message().starts_with("3 keys have more than one row in the source"), "{error}");
    assert_eq!(
        error.evidence(),
        [
            "k=77  ties.csv line 79 and line 10002",
            "k=5000  ties.csv line 5002 and line 10003",
            "k=9999  ties.csv line 10001 and line 10004"
        ]
    );
    rows.truncate(10_000);
    rows.push(row(3, 0, 0));
    let winners = choose_rows(&rows, 4_096, None, NullKeys::Refuse, LOSERS).unwrap();
    assert_eq!((winners.len(), winners.counts().duplicates), (10_000, 1));
}

#[test]
fn a_null_in_a_key_is_refused_with_its_place() {
    let rows = [row(1, 0, 0), [None, Some(1), Some(1), Some(1)], [None, Some(1), Some(1), Some(2)]];
    let error = choose_rows(&rows, 2, None, NullKeys::Refuse, 0).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Refused);
    assert_eq!(error.message(), "2 rows have a null in the key (k); nothing was changed");
    assert_eq!(error.evidence(), ["ties.csv line 3: k=null", "ties.csv line 4: k=null"]);
}

#[test]
fn a_tie_of_many_rows_over_sources_names_the_first_places() {
    let place = |source: &str, number| crate::source::Place { source: source.into(), unit: Unit::Row, number };
    let mut tie = Tie::new(place("b.parquet", 3), 1);
    tie.add(place("a.parquet", 9), [true].into_iter());
    assert_eq!(tie.to_string(), "a.parquet row 9 and b.parquet row 3");
    for number in [8, 7, 6, 5] {
        tie.add(place("a.parquet", number), [true].into_iter());
    }
    assert_eq!(tie.to_string(), "a.parquet row 5, row 6, row 7, row 8 and 2 more");
}
