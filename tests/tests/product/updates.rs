//! Merges that update a part of a row, and merges of more than fits in memory.

use crate::support::{counts, disk_and_s3, done, refused};

const STOCK: &str =
    "--schema 'sku string not null, at bigint, qty int not null, price decimal(12,2), name string not null'";

#[test]
fn named_columns_are_updated_and_others_computed_once() {
    for (sandbox, table) in disk_and_s3("stock") {
        done(&sandbox, &format!("create {table} {STOCK}"));
        sandbox.write("all.csv", "sku,at,qty,price,name\na,1,10,1.50,Apple\nb,1,20,2.50,Bread\n");
        done(&sandbox, &format!("merge {table} all.csv --key sku --newest-by at"));
        // The source has no name, which holds no nulls.
        sandbox.write("moves.csv", "sku,at,qty,price\na,2,-3,1.60\nb,1,99,9.99\n");
        let merge = format!(
            "merge {table} moves.csv --key sku --newest-by at --update-columns price --set 'qty=target.qty + source.qty'"
        );
        let receipt = done(&sandbox, &merge);
        assert_eq!(counts(&receipt), "read=2 updated=1 divergent=1");
        let rows = sandbox.table(&table).rows_by_all();
        let apple = rows.only("sku", "a").clone();
        let text = |name: &str| apple[name].clone().unwrap();
        assert_eq!([text("qty"), text("price"), text("name"), text("at")], ["7", "1.60", "Apple", "2"]);
        let again = done(&sandbox, &merge);
        assert_eq!(again["outcome"], "unchanged");
        assert_eq!(sandbox.table(&table).rows_by_all(), rows);

        // A row that is new has to be whole.
        sandbox.write("moves.csv", "sku,at,qty,price\nc,2,5,1.60\n");
        let error = refused(&sandbox, &merge, 1);
        assert!(error.to_string().contains("1 of the new rows would have no value in column 'name'"), "{error}");
        let error = refused(&sandbox, &merge.replace("--newest-by at ", ""), 2);
        assert!(error.to_string().contains("twice"), "{error}");
        assert_eq!(sandbox.table(&table).rows_by_all(), rows);
    }
}

#[test]
fn a_source_beyond_its_memory_ends_as_one_within_it() {
    let [(sandbox, table), _] = disk_and_s3("big");
    let rows = |from: i64, to: i64, version: i64| {
        let mut text = "id,v,version\n".to_owned();
        // In no order, and each key twice.
        (from..to).chain(from..to).for_each(|n| {
            let id = (n * 7_919) % 60_000;
            text.push_str(&format!("{id},value of {id} in version {},{}\n", version + n % 2, version + n % 2));
        });
        text
    };
    sandbox.write("first.csv", rows(0, 40_000, 1));
    sandbox.write("second.csv", rows(20_000, 60_000, 1));
    let ends = ["64MiB", "1MiB"].map(|memory| {
        let table = format!("{table}_{memory}");
        done(
            &sandbox,
            &format!("create {table} --schema 'id bigint not null, v string, version bigint' --deletion-vectors"),
        );
        let merge = |file: &str| {
            done(&sandbox, &format!("merge {table} {file} --key id --newest-by version --memory {memory}"))
        };
        let receipts = [merge("first.csv"), merge("second.csv"), merge("second.csv")].map(|receipt| counts(&receipt));
        (receipts, sandbox.table(&table).rows_by_all())
    });
    assert_eq!(ends[0].0, ends[1].0);
    assert!(ends[0].1 == ends[1].1, "the two tables hold other rows");
}
