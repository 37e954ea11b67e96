//! Structs, arrays and maps, whose insides are cast in turn.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, ListArray, MapArray, OffsetSizeTrait, StructArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::{ArrowNativeType, DataType, Field};

use super::cast::{Caster, Misfit, join, masked, wrong_type};

impl Caster {
    pub(super) fn structure(&mut self, array: &ArrayRef, to: &Field, path: &str) -> Result<ArrayRef, Misfit> {
        let wrong = || wrong_type(array.data_type(), to, path, "convert the column in the source");
        let (Some(rows), DataType::Struct(fields)) = (array.as_struct_opt(), to.data_type()) else {
            return Err(wrong());
        };
        let nulls = rows.nulls().cloned();
        // What lies within a null struct is nothing, whatever its memory holds.
        let columns: Vec<_> = rows.columns().iter().map(|column| masked(column, nulls.as_ref())).collect();
        let columns = self.fields(&columns, rows.fields(), fields, rows.len(), nulls.as_ref(), path)?;
        let rows = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows.len());
        rows.map(|rows| Arc::new(rows) as _).map_err(|_| wrong())
    }

    pub(super) fn list(&mut self, array: &ArrayRef, to: &Field, path: &str) -> Result<ArrayRef, Misfit> {
        let wrong = || wrong_type(array.data_type(), to, path, "convert the column in the source");
        let DataType::List(element) = to.data_type() else { return Err(wrong()) };
        let parts = match array.data_type() {
            DataType::List(_) => array.as_list_opt::<i32>().and_then(Parts::of_list),
            DataType::LargeList(_) => array.as_list_opt::<i64>().and_then(Parts::of_list),
            DataType::FixedSizeList(..) => array.as_fixed_size_list_opt().and_then(|list| {
                let size = list.value_length() as usize;
                Parts::new(list.values(), (0..=list.len()).map(|row| row * size), list.nulls())
            }),
            _ => None,
        };
        let parts = parts.ok_or_else(wrong)?;
        let values = self
            .cast(&parts.values, element, None, &join(path, "element"))
            .map_err(|misfit| misfit.of_outer(|value| parts.row_of(value)))?;
        let list = ListArray::try_new(element.clone(), parts.offsets, values, array.nulls().cloned());
        list.map(|list| Arc::new(list) as _).map_err(|_| wrong())
    }

    pub(super) fn map(&mut self, array: &ArrayRef, to: &Field, path: &str) -> Result<ArrayRef, Misfit> {
        let wrong = || wrong_type(array.data_type(), to, path, "convert the column in the source");
        let (Some(map), DataType::Map(entries, sorted)) = (array.as_map_opt(), to.data_type()) else {
            return Err(wrong());
        };
        let DataType::Struct(pair) = entries.data_type() else { return Err(wrong()) };
        let [key, value] = pair.as_ref() else { return Err(wrong()) };
        let pairs: ArrayRef = Arc::new(map.entries().clone());
        let offsets = map.value_offsets().iter().map(|offset| offset.as_usize());
        let parts = Parts::new(&pairs, offsets, map.nulls()).ok_or_else(wrong)?;
        let [keys, values] = parts.values.as_struct_opt().map(StructArray::columns).unwrap_or_default() else {
            return Err(wrong());
        };
        let outer = |misfit: Misfit| misfit.of_outer(|entry| parts.row_of(entry));
        let keys = self.cast(keys, key, None, &join(path, "key")).map_err(outer)?;
        let values = self.cast(values, value, None, &join(path, "value")).map_err(outer)?;
        let pairs = StructArray::try_new(pair.clone(), vec![keys, values], None).map_err(|_| wrong())?;
        let map = MapArray::try_new(entries.clone(), parts.offsets, pairs, map.nulls().cloned(), *sorted);
        map.map(|map| Arc::new(map) as _).map_err(|_| wrong())
    }
}

/// The values that the rows of a list or map hold, and no others.
struct Parts {
    values: ArrayRef,
    offsets: OffsetBuffer<i32>,
}

impl Parts {
    fn of_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Option<Self> {
        Self::new(list.values(), list.value_offsets().iter().map(|offset| offset.as_usize()), list.nulls())
    }

    /// `None` where 32 bits do not count the values.
    fn new(values: &ArrayRef, offsets: impl Iterator<Item = usize>, nulls: Option<&NullBuffer>) -> Option<Self> {
        let offsets: Vec<usize> = offsets.collect();
        let ranges = || offsets.iter().zip(offsets.iter().skip(1)).enumerate();
        let holds = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        i32::try_from(last - first).ok()?;
        let lengths = ranges().map(|(row, (start, end))| if holds(row) { end - start } else { 0 });
        let lengths = OffsetBuffer::<i32>::from_lengths(lengths);
        let held = lengths.last().map_or(0, |last| last.unsigned_abs() as usize);
        let values = if held == last - first {
            values.slice(first, held)
        } else {
            // A null row may still span values; they are not the source's.
            let picked =
                ranges().filter(|(row, _)| holds(*row)).flat_map(|(_, (start, end))| *start as u64..*end as u64);
            compute::take(values, &UInt64Array::from_iter_values(picked), None).ok()?
        };
        Some(Self { values, offsets: lengths })
    }

    /// The row that holds `value`.
    fn row_of(&self, value: usize) -> usize {
        self.offsets.partition_point(|offset| offset.unsigned_abs() as usize <= value).saturating_sub(1)
    }
}
