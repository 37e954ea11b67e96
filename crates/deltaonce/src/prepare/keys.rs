//! The columns that say which row is which, and which of two is newer, as bytes that compare.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::load::{NullKeys, Order};
use crate::table::schema::TableSchema;

/// The key of a load, and its order if it has one, over the columns of a table.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) table: String,
    pub(crate) schema: TableSchema,
    pub(crate) key: Key,
    pub(crate) order: Option<Ordering>,
    pub(crate) null_keys: NullKeys,
}

impl Keyed {
    /// The columns that `key` and `order` name; `table` is how errors call the table.
    ///
    /// # Errors
    /// `Invalid` for no key column, one that is named twice, that the table lacks, or whose type has no order.
    pub(crate) fn new(
        table: &str,
        schema: &TableSchema,
        key: &[String],
        order: Option<&Order>,
        null_keys: NullKeys,
    ) -> Result<Self> {
        Ok(Self {
            table: table.to_owned(),
            schema: schema.clone(),
            key: Key::new(table, schema, key)?,
            order: order.map(|order| Ordering::new(table, schema, order)).transpose()?,
            null_keys,
        })
    }
}

impl Keyed {
    /// The same once more.
    ///
    /// # Errors
    /// None that [`Keyed::new`] did not give.
    pub(crate) fn again(&self) -> Result<Self> {
        let order = self.order.as_ref().map(Ordering::declared);
        Self::new(&self.table, &self.schema, self.key.names(), order, self.null_keys)
    }
}

/// Columns that identify a row.
#[derive(Debug)]
pub(crate) struct Key {
    names: Vec<String>,
    columns: Vec<usize>,
    /// For each name, which of `columns` it is.
    named: Vec<usize>,
    converter: RowConverter,
}

impl Key {
    fn new(table: &str, schema: &TableSchema, names: &[String]) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::invalid(format!("the key for {table} names no column")));
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = comparable("key", table, schema, name)?;
            if columns.contains(&column) {
                return Err(Error::invalid(format!("the key for {table} names column '{name}' twice")));
            }
            columns.push(column);
        }
        let declared = columns.clone();
        // A file has one value of a partition column, so that keys which differ there first order by file, and a file's
        // range then says most about them.
        columns.sort_by_key(|&column| !schema.is_partition_column(schema.columns().field(column).name()));
        let named = declared.iter().filter_map(|column| columns.iter().position(|other| other == column)).collect();
        let fields = columns.iter().map(|&column| SortField::new(schema.columns().field(column).data_type().clone()));
        let converter = converter(fields.collect())?;
        Ok(Self { names: names.to_vec(), columns, named, converter })
    }

    /// Indices into the table's columns: partition columns before others, and else in the order in which the key names
    /// them.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The keys of rows, given [`columns`](Self::columns): equal bytes are equal keys, a null equals a null, 0.0 equals
    /// -0.0 and any NaN any other. The bytes of each column order as its values do, and stand in the columns' order.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<Rows> {
        encode(&self.converter, columns)
    }

    /// The key of one row for a person, given [`columns`](Self::columns): `tenant=a, order_id=7`.
    pub(crate) fn show(&self, columns: &[ArrayRef], row: usize) -> String {
        let options = FormatOptions::new().with_null("null");
        let parts = self.names.iter().zip(&self.named).map(|(name, &column)| {
            let format = columns.get(column).map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
            let value = format.and_then(|format| format.ok()?.value(row).try_to_string().ok());
            format!("{name}={}", value.unwrap_or_else(|| "?".to_owned()))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The key as a list of its columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// Columns that say which of two rows is newer.
#[derive(Debug)]
pub(crate) struct Ordering {
    declared: Order,
    columns: Vec<usize>,
    converter: RowConverter,
}

impl Ordering {
    fn new(table: &str, schema: &TableSchema, order: &Order) -> Result<Self> {
        let columns = order
            .0
            .iter()
            .map(|column| comparable("order", table, schema, &column.name))
            .collect::<Result<Vec<_>>>()?;
        let fields = columns.iter().zip(&order.0).map(|(&column, declared)| {
            // Greater bytes are to be newer, so a column whose least value is newest goes in upside down. Nulls first
            // makes them oldest in both.
            let options = SortOptions { descending: !declared.descending, nulls_first: true };
            SortField::new_with_options(schema.columns().field(column).data_type().clone(), options)
        });
        let converter = converter(fields.collect())?;
        Ok(Self { declared: order.clone(), columns, converter })
    }

    /// The order as it was declared.
    pub(crate) fn declared(&self) -> &Order {
        &self.declared
    }

    /// Indices into the table's columns, in the order's order.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The order tuples of rows, given the order's columns: greater bytes are newer, equal bytes equally new.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<Rows> {
        encode(&self.converter, columns)
    }
}

fn comparable(role: &str, table: &str, schema: &TableSchema, name: &str) -> Result<usize> {
    let Some((index, field)) = schema.columns().column_with_name(name) else {
        let names: Vec<&str> = schema.columns().fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!("{table} has no column '{name}', which the {role} names"))
            .hint(format!("its columns are {}", names.join(", "))));
    };
    if field.data_type().is_nested() {
        return Err(Error::invalid(format!(
            "column '{name}' of {table} is of the type {}, which cannot be part of the {role}",
            field.data_type()
        )));
    }
    Ok(index)
}

fn converter(fields: Vec<SortField>) -> Result<RowConverter> {
    RowConverter::new(fields).map_err(|e| Error::internal("the key's types could not be encoded").caused_by(e))
}

fn encode(converter: &RowConverter, columns: &[ArrayRef]) -> Result<Rows> {
    let columns: Vec<ArrayRef> = columns.iter().map(normal).collect();
    converter.convert_columns(&columns).map_err(|e| Error::internal("a key could not be encoded").caused_by(e))
}

/// The array with one bit pattern for values that are equal: 0.0 for -0.0, and one NaN, greater than every number.
pub(crate) fn normal(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let values: Float32Array =
                array.as_primitive::<Float32Type>().unary(|value| if value.is_nan() { f32::NAN } else { value + 0.0 });
            Arc::new(values)
        }
        DataType::Float64 => {
            let values: Float64Array =
                array.as_primitive::<Float64Type>().unary(|value| if value.is_nan() { f64::NAN } else { value + 0.0 });
            Arc::new(values)
        }
        _ => array.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn schema() -> TableSchema {
        let fields = vec![
            Field::new("id", DataType::Int64, true),
            Field::new("x", DataType::Float64, true),
            Field::new("tags", DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))), true),
        ];
        TableSchema::new(Arc::new(Schema::new(fields)), Vec::new())
    }

    fn keyed(key: &[&str], order: Option<&str>) -> Result<Keyed> {
        let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        let order = order.map(|order| Order::parse(order).unwrap());
        Keyed::new("t", &schema(), &key, order.as_ref(), NullKeys::Match)
    }

    #[test]
    fn floats_that_are_equal_are_one_key() {
        let key = keyed(&["x"], None).unwrap().key;
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | (1 << 63) | 7);
        let x: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(0.0), Some(-0.0), Some(f64::NAN), Some(negative_nan), None, None]));
        let rows = key.encode(&[x]).unwrap();
        assert_eq!(rows.row(0), rows.row(1));
        assert_eq!(rows.row(2), rows.row(3));
        assert_eq!(rows.row(4), rows.row(5));
        assert_ne!(rows.row(0), rows.row(4));
    }

    #[test]
    fn nulls_are_oldest_in_either_direction() {
        for (order, newest_first) in [("id desc", [2, 1]), ("id asc", [1, 2])] {
            let order = keyed(&["x"], Some(order)).unwrap().order.unwrap();
            let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(newest_first[0]), Some(newest_first[1]), None]));
            let rows = order.encode(&[ids]).unwrap();
            assert!(rows.row(0) > rows.row(1), "{}", order.declared());
            assert!(rows.row(1) > rows.row(2), "{}", order.declared());
        }
    }

    #[test]
    fn a_column_that_cannot_be_a_key_is_named() {
        for (key, order, words) in [
            (vec![], None, "names no column"),
            (vec!["id", "id"], None, "'id' twice"),
            (vec!["nope"], None, "no column 'nope', which the key names"),
            (vec!["id"], Some("nope"), "no column 'nope', which the order names"),
            (vec!["tags"], None, "cannot be part of the key"),
        ] {
            let error = keyed(&key, order).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[test]
    fn a_key_is_shown_with_its_columns() {
        let key = keyed(&["id", "x"], None).unwrap().key;
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![7])), Arc::new(Float64Array::from(vec![None as Option<f64>]))];
        assert_eq!(key.show(&columns, 0), "id=7, x=null");
    }
}
