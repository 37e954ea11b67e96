use crate::plan::fixture::Table;

#[tokio::test]
async fn rows_that_changed_are_told_before_and_after_and_no_others() {
    for masks in [false, true] {
        let table = Table::of_versions().feeding();
        let mut table = if masks { table.masking() } else { table };
        let change = table.merge(table.versions(&[(1, "a", 1), (2, "b", 1), (3, "c", 1), (4, "d", 1)])).await.unwrap();
        assert_eq!(change.rows.inserted, 4);
        assert!(table.changes().is_empty(), "rows that are only added are told from their file");
        let rows = [(1, "a", 1), (2, "B", 2), (3, "older", 0), (9, "new", 1)];
        table.merge(table.versions(&rows)).await.unwrap();
        let told = ["2|B|2|update_postimage", "2|b|1|update_preimage", "9|new|1|insert"];
        assert_eq!(table.changes(), told, "masks: {masks}");
        table.merge(table.versions(&rows)).await.unwrap();
        table.insert(table.versions(&[(10, "x", 1)])).await.unwrap();
        assert!(table.changes().is_empty());
    }
}
