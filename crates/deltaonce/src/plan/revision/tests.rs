use arrow::array::RecordBatch;
use arrow::datatypes::DataType;

use crate::error::{ErrorKind, Result};
use crate::load::Update;
use crate::plan::Change;
use crate::plan::fixture::{Table, field};

/// `id, at, qty, price, note` with three rows.
async fn stock(masks: bool, update: Update) -> Table {
    let fields = vec![
        field("id", DataType::Int64),
        field("at", DataType::Int64),
        field("qty", DataType::Int32),
        field("price", DataType::Decimal128(12, 2)),
        field("note", DataType::Utf8),
    ];
    let table = Table::new(fields, &[], &["id"]).newest_by("at desc");
    let table = if masks { table.masking() } else { table };
    let rows = table.rows(&[
        &["1", "2", "3", "4"],
        &["1", "1", "1", "1"],
        &["10", "20", "30", "40"],
        &["1.50", "2.50", "3.50", "4.50"],
        &["a", "b", "c", "d"],
    ]);
    let mut table = table.holding(rows).await;
    table.update = update;
    table
}

fn update(columns: &[&str], set: &[(&str, &str)]) -> Update {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    Update { columns, set: set.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect() }
}

/// One row that is newer, one that is as new as the table's, and one that is new.
fn delta(table: &Table) -> RecordBatch {
    table.rows(&[&["1", "2", "9"], &["2", "1", "2"], &["5", "5", "5"], &["9.00", "", "9.00"], &["x", "b", "z"]])
}

async fn merged(table: &mut Table, rows: RecordBatch) -> Result<(Change, Vec<String>)> {
    let change = table.merge(rows).await?;
    Ok((change, table.all().await))
}

#[tokio::test]
async fn named_columns_come_from_the_source_and_others_stay() {
    for masks in [false, true] {
        let mut table = stock(masks, update(&["note"], &[])).await;
        let rows = delta(&table);
        let (change, all) = merged(&mut table, rows.clone()).await.unwrap();
        // Of the second row only the note is compared, which says the same.
        assert_eq!((change.rows.updated, change.rows.unchanged, change.rows.inserted), (1, 1, 1));
        assert_eq!(all, ["1|2|10|1.50|x", "2|1|20|2.50|b", "3|1|30|3.50|c", "4|1|40|4.50|d", "9|2|5|9.00|z"]);
        assert!(merged(&mut table, rows).await.unwrap().0.is_empty());
    }
}

#[tokio::test]
async fn columns_are_computed_once_from_both_rows() {
    for masks in [false, true] {
        let set = [("qty", "target.qty + source.qty"), ("note", "coalesce(target.note, '') || '+' || source.note")];
        let mut table = stock(masks, update(&["price"], &set)).await;
        let rows = delta(&table);
        let (change, all) = merged(&mut table, rows.clone()).await.unwrap();
        assert_eq!((change.rows.updated, change.rows.divergent, change.rows.inserted), (1, 1, 1));
        assert_eq!(all, ["1|2|15|9.00|a+x", "2|1|20|2.50|b", "3|1|30|3.50|c", "4|1|40|4.50|d", "9|2|5|9.00|z"]);
        assert!(merged(&mut table, rows).await.unwrap().0.is_empty(), "a newer order lets each row in once");
    }
}

#[tokio::test]
async fn what_cannot_be_computed_is_refused_and_changes_nothing() {
    let big = [("qty", "target.qty + 2147483647")];
    let mut table = stock(true, update(&[], &big)).await;
    let before = table.all().await;
    let rows = delta(&table);
    let error = merged(&mut table, rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.message().contains("column 'qty' (int)"), "{error}");
    assert_eq!(table.all().await, before);
    for (columns, set, says) in [
        (&["nope"][..], &[][..], "no column 'nope'"),
        (&["id"], &[], "part of the key"),
        (&["note"], &[("note", "'x'")], "in two ways"),
        (&[], &[("at", "target.at")], "by which rows are ordered"),
        (&[], &[("qty", "note")], "'note' does not say whose column"),
        (&[], &[("qty", "source.nope")], "no column 'source.nope'"),
        (&[], &[("note", "current_date")], "takes no current_date"),
        (&[], &[("qty", "source.note")], "column 'qty' of type int"),
        (&[], &[("price", "source.price * source.price")], "column 'price'"),
        (&[], &[("note", "now()")], "takes no now()"),
        (&[], &[("note", "other.note")], "not a column of source or target"),
        (&[], &[("qty", "(select 1)")], "takes no subquery"),
    ] {
        let mut table = stock(false, update(columns, set)).await;
        let rows = delta(&table);
        let error = merged(&mut table, rows).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(says), "{says}: {error}");
    }
}
