//! Per-file statistics, as the log holds them (protocol, "Per-file Statistics").

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Float32Type, Float64Type, Schema};
use arrow::record_batch::RecordBatch;
use parquet::file::metadata::ParquetMetaData;

use super::bounds::{Bounds, bounds};
use super::settings::Indexed;
use crate::table::encoded::EncodedGroup;

/// Which statistics a table's files get, worked out once from its schema.
#[derive(Debug)]
pub(super) struct StatsPlan {
    columns: Vec<Node>,
    leaves: usize,
}

#[derive(Debug)]
struct Node {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A field that is not a struct. `parquet` is the place of its (first) column among the file's.
    Leaf {
        leaf: usize,
        parquet: usize,
        data_type: DataType,
        indexed: bool,
    },
    Struct(Vec<Node>),
}

/// What Parquet's own statistics do not say, gathered while a file is written.
#[derive(Debug)]
pub(super) struct Observed {
    rows: i64,
    leaves: Vec<Seen>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    nulls: u64,
    nan: bool,
}

impl StatsPlan {
    /// A plan for files with the columns of `schema`, of which `indexed` have statistics, and so have those named in
    /// `always`.
    pub(super) fn new(schema: &Schema, indexed: &Indexed, always: &[String]) -> Self {
        let mut walk = Walk { indexed, always, leaf: 0, parquet: 0, path: Vec::new() };
        let columns = walk.nodes(schema.fields());
        Self { columns, leaves: walk.leaf }
    }

    /// Nothing seen yet.
    pub(super) fn observe(&self) -> Observed {
        Observed { rows: 0, leaves: vec![Seen::default(); self.leaves] }
    }

    /// The statistics of a file whose rows went through `observed` and whose footer is `footer`: JSON text.
    pub(super) fn json(&self, observed: &Observed, footer: &ParquetMetaData) -> String {
        let mut mins = String::new();
        let mut maxs = String::new();
        let mut nulls = String::new();
        let ends = self.ends(observed, footer);
        let end = |leaf: usize| ends.get(leaf);
        object(&self.columns, &mut mins, &|leaf| end(leaf).and_then(|end| end.min.clone()));
        object(&self.columns, &mut maxs, &|leaf| end(leaf).and_then(|end| end.max.clone()));
        object(&self.columns, &mut nulls, &|leaf| observed.leaves.get(leaf).map(|seen| seen.nulls.to_string()));
        let rows = observed.rows;
        format!(
            r#"{{"numRecords":{rows},"minValues":{mins},"maxValues":{maxs},"nullCount":{nulls},"tightBounds":true}}"#
        )
    }

    fn ends(&self, observed: &Observed, footer: &ParquetMetaData) -> Vec<Bounds> {
        let mut ends = Vec::with_capacity(self.leaves);
        each_leaf(&self.columns, &mut |leaf, parquet, data_type, indexed| {
            // A reader's order may put NaN above every number or below it, so with one in the file there is no bound.
            let known = indexed && !observed.leaves.get(leaf).is_some_and(|seen| seen.nan);
            let chunks = footer.row_groups().iter().filter_map(|group| group.columns().get(parquet));
            ends.push(if known { bounds(data_type, chunks) } else { Bounds::default() });
        });
        ends
    }
}

impl Observed {
    /// Takes note of rows that go into the file.
    pub(super) fn batch(&mut self, plan: &StatsPlan, rows: &RecordBatch) {
        self.rows += rows.num_rows() as i64;
        for (node, column) in plan.columns.iter().zip(rows.columns()) {
            self.array(node, column, None);
        }
    }

    /// Takes note of a row group that goes into the file as it is, in which there is no NaN.
    pub(super) fn copied(&mut self, plan: &StatsPlan, group: &EncodedGroup) {
        self.rows += group.rows().cast_signed();
        each_leaf(&plan.columns, &mut |leaf, parquet, _, indexed| {
            let nulls = group.columns().get(parquet).and_then(|chunk| chunk.statistics()?.null_count_opt());
            if let (true, Some(seen), Some(nulls)) = (indexed, self.leaves.get_mut(leaf), nulls) {
                seen.nulls = seen.nulls.saturating_add(nulls);
            }
        });
    }

    fn array(&mut self, node: &Node, array: &ArrayRef, parent_nulls: Option<&NullBuffer>) {
        // A field of a null struct counts as null, whatever its own array says.
        let nulls = NullBuffer::union(parent_nulls, array.logical_nulls().as_ref());
        match &node.kind {
            Kind::Struct(fields) => {
                if let Some(values) = array.as_struct_opt() {
                    for (field, values) in fields.iter().zip(values.columns()) {
                        self.array(field, values, nulls.as_ref());
                    }
                }
            }
            Kind::Leaf { leaf, indexed: true, data_type, .. } => {
                if let Some(seen) = self.leaves.get_mut(*leaf) {
                    seen.nulls += nulls.as_ref().map_or(0, NullBuffer::null_count) as u64;
                    seen.nan = seen.nan || has_nan(data_type, array, nulls.as_ref());
                }
            }
            Kind::Leaf { .. } => {}
        }
    }
}

fn has_nan(data_type: &DataType, array: &ArrayRef, nulls: Option<&NullBuffer>) -> bool {
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    match data_type {
        DataType::Float32 => array.as_primitive_opt::<Float32Type>().is_some_and(|numbers| {
            numbers.values().iter().any(|n| n.is_nan())
                && numbers.values().iter().enumerate().any(|(row, n)| n.is_nan() && valid(row))
        }),
        DataType::Float64 => array.as_primitive_opt::<Float64Type>().is_some_and(|numbers| {
            numbers.values().iter().any(|n| n.is_nan())
                && numbers.values().iter().enumerate().any(|(row, n)| n.is_nan() && valid(row))
        }),
        _ => false,
    }
}

struct Walk<'a> {
    indexed: &'a Indexed,
    always: &'a [String],
    leaf: usize,
    parquet: usize,
    path: Vec<String>,
}

impl Walk<'_> {
    fn nodes(&mut self, fields: &Fields) -> Vec<Node> {
        fields.iter().map(|field| self.node(field)).collect()
    }

    fn node(&mut self, field: &Field) -> Node {
        self.path.push(field.name().clone());
        let kind = if let DataType::Struct(fields) = field.data_type() {
            Kind::Struct(self.nodes(fields))
        } else {
            let indexed = self.is_indexed();
            let kind =
                Kind::Leaf { leaf: self.leaf, parquet: self.parquet, data_type: field.data_type().clone(), indexed };
            self.leaf += 1;
            self.parquet += parquet_columns(field.data_type());
            kind
        };
        self.path.pop();
        Node { name: field.name().clone(), kind }
    }

    fn is_indexed(&self) -> bool {
        if let [name] = self.path.as_slice()
            && self.always.contains(name)
        {
            return true;
        }
        match self.indexed {
            Indexed::All => true,
            Indexed::First(count) => self.leaf < *count,
            Indexed::Columns(paths) => paths.iter().any(|path| self.path.starts_with(path)),
        }
    }
}

/// Parquet columns that a field of `data_type` becomes.
fn parquet_columns(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| parquet_columns(field.data_type())).sum(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => parquet_columns(item.data_type()),
        _ => 1,
    }
}

fn each_leaf(nodes: &[Node], visit: &mut impl FnMut(usize, usize, &DataType, bool)) {
    for node in nodes {
        match &node.kind {
            Kind::Leaf { leaf, parquet, data_type, indexed } => visit(*leaf, *parquet, data_type, *indexed),
            Kind::Struct(fields) => each_leaf(fields, visit),
        }
    }
}

/// Appends an object with the values that `value` has for indexed leaves; a struct without any is left out.
/// Built by hand, because serde_json would take decimals through f64.
fn object(nodes: &[Node], out: &mut String, value: &dyn Fn(usize) -> Option<String>) {
    out.push('{');
    let mut first = true;
    for node in nodes {
        let text = match &node.kind {
            Kind::Leaf { indexed: false, .. } => None,
            Kind::Leaf { leaf, .. } => value(*leaf),
            Kind::Struct(fields) => {
                let mut inner = String::new();
                object(fields, &mut inner, value);
                (inner != "{}").then_some(inner)
            }
        };
        if let Some(text) = text {
            let comma = if first { "" } else { "," };
            // Writing into a string cannot fail.
            let _ = write!(out, "{comma}{}:{text}", serde_json::Value::from(node.name.as_str()));
            first = false;
        }
    }
    out.push('}');
}
