//! What a table's protocol and properties ask of a writer, and which of it this library does.

use arrow::datatypes::DataType;
use delta_kernel::table_features::TableFeature;
use deltalake::kernel::{DataType as DeltaType, PrimitiveType};

use super::snapshot::Snapshot;
use crate::error::{Error, Result};
use crate::load::Contract;

/// Whether a load of `contract` into this table is right, before anything of the table's rows is read or written.
///
/// Columns of types that no data file holds are refused as features are.
///
/// Rules are those of the Delta protocol, "Valid Feature Names in Table Features" and "Writer Version Requirements".
///
/// # Errors
/// `Unsupported`, naming the feature; `Refused` for a replace on an append-only table.
pub(crate) fn check(table: &str, snapshot: &Snapshot, contract: &Contract) -> Result<()> {
    let unsupported = |feature: &str, why: &str| {
        Err(Error::unsupported(format!("{table} uses {feature}, {why}; nothing was changed")))
    };
    if snapshot.is_set("delta.appendOnly") && matches!(contract, Contract::Replace(_)) {
        return Err(Error::refused(format!(
            "{table} is append-only (delta.appendOnly), so nothing in it can be replaced; nothing was changed"
        )));
    }
    let protocol = snapshot.protocol();
    let (reader, writer) = (protocol.min_reader_version(), protocol.min_writer_version());
    if reader > 3 || writer > 7 {
        return unsupported(
            &format!("protocol versions {reader} (reader) and {writer} (writer)"),
            "which are newer than this version knows",
        );
    }
    for feature in features(snapshot) {
        let name = feature.to_string();
        match need(&feature, snapshot, contract) {
            Need::Met => {}
            Need::Unmet(why) => return unsupported(&name, why),
        }
    }
    for field in snapshot.declared().fields() {
        if let Some((path, name)) = unheld(field.data_type(), field.name()) {
            return unsupported(&format!("the type {name} in column '{path}'"), "whose values are not written");
        }
    }
    Ok(())
}

/// Where in a column there is a type that is Delta's and that no data file holds, and its name. Told from Delta's own
/// types: in Arrow's an interval is a number.
fn unheld(data_type: &DeltaType, path: &str) -> Option<(String, &'static str)> {
    match data_type {
        DeltaType::Primitive(PrimitiveType::Void) => Some((path.to_owned(), "void")),
        DeltaType::Primitive(PrimitiveType::IntervalYearMonth | PrimitiveType::IntervalDayTime) => {
            Some((path.to_owned(), "interval"))
        }
        DeltaType::Primitive(_) | DeltaType::Variant(_) => None,
        DeltaType::Struct(fields) => {
            fields.fields().find_map(|field| unheld(field.data_type(), &format!("{path}.{}", field.name())))
        }
        DeltaType::Array(array) => unheld(array.element_type(), path),
        DeltaType::Map(map) => unheld(map.key_type(), path).or_else(|| unheld(map.value_type(), path)),
    }
}

enum Need {
    Met,
    Unmet(&'static str),
}

fn need(feature: &TableFeature, snapshot: &Snapshot, contract: &Contract) -> Need {
    let unless = |fine: bool, why: &'static str| if fine { Need::Met } else { Need::Unmet(why) };
    let no_field_has = |prefix: &str| {
        let fields = snapshot.schema().columns().fields();
        !fields.iter().any(|field| field.metadata().keys().any(|key| key.starts_with(prefix)))
    };
    match feature {
        TableFeature::AppendOnly
        | TableFeature::Invariants
        | TableFeature::CheckConstraints
        | TableFeature::TimestampWithoutTimezone
        | TableFeature::DomainMetadata
        | TableFeature::VacuumProtocolCheck
        | TableFeature::DeletionVectors
        | TableFeature::ChangeDataFeed
        | TableFeature::V2Checkpoint
        // Only columns that a source lacks take their default, and such a source is refused when its rows are prepared.
        | TableFeature::AllowColumnDefaults
        | TableFeature::InCommitTimestamp => Need::Met,
        TableFeature::GeneratedColumns => {
            unless(no_field_has("delta.generationExpression"), "whose values are not computed yet")
        }
        TableFeature::IdentityColumns => unless(no_field_has("delta.identity"), "whose values are not given out yet"),
        TableFeature::ColumnMapping => {
            let mode = snapshot.metadata().configuration().get("delta.columnMapping.mode").map(String::as_str);
            unless(matches!(mode, None | Some("none")), "whose physical column names are not written yet")
        }
        TableFeature::ClusteredTable => unless(
            has_all_statistics(snapshot),
            "and its clustering columns may lie outside the columns that have statistics",
        ),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => {
            unless(matches!(contract, Contract::Append), "and this load reads rows, whose types are not widened yet")
        }
        _ => Need::Unmet("which this version does not write"),
    }
}

/// Whether every column has statistics, as clustering asks for its own columns (protocol, "Clustered Table").
fn has_all_statistics(snapshot: &Snapshot) -> bool {
    let configuration = snapshot.metadata().configuration();
    let indexed = configuration.get("delta.dataSkippingNumIndexedCols").map_or(Ok(32), |text| text.parse::<i64>());
    let columns: i64 = snapshot.schema().columns().fields().iter().map(|field| leaves(field.data_type())).sum();
    !configuration.contains_key("delta.dataSkippingStatsColumns")
        && indexed.is_ok_and(|indexed| indexed == -1 || indexed >= columns)
}

/// How many columns a column counts for: those within a struct count one by one.
fn leaves(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        _ => 1,
    }
}

/// The features that a table lists, or that its legacy protocol version stands for.
fn features(snapshot: &Snapshot) -> Vec<TableFeature> {
    let protocol = snapshot.protocol();
    let listed = [protocol.reader_features(), protocol.writer_features()];
    let mut features: Vec<TableFeature> = listed.into_iter().flatten().flatten().cloned().collect();
    let legacy: [(i32, &[TableFeature]); 5] = [
        (2, &[TableFeature::AppendOnly, TableFeature::Invariants]),
        (3, &[TableFeature::CheckConstraints]),
        (4, &[TableFeature::ChangeDataFeed, TableFeature::GeneratedColumns]),
        (5, &[TableFeature::ColumnMapping]),
        (6, &[TableFeature::IdentityColumns]),
    ];
    if protocol.min_writer_version() < 7 {
        let implied = legacy.into_iter().filter(|(version, _)| *version <= protocol.min_writer_version());
        features.extend(implied.flat_map(|(_, implied)| implied.iter().cloned()));
    }
    features
}
