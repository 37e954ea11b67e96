//! Which rows of an opened file can have a key of the source: by its row groups' statistics, their Bloom filters and the
//! index of their pages.

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Date32Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::ScalarValue;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::bloom_filter::Sbbf;

use super::bounds::FileBounds;
use super::source_keys::{Extents, SourceKeys};
use crate::error::Result;
use crate::table::row_ranges::RowRanges;
use crate::table::scan::OpenFile;
use crate::table::widen::widen;

/// Keys beyond which a Bloom filter is not asked: so many would find one that passes by chance.
const FILTERED_KEYS: u64 = 1024;

/// The rows of `file` that can have one of `keys`.
///
/// # Errors
/// As reading the file's Bloom filters fails.
pub(super) async fn candidates(file: &OpenFile, keys: &SourceKeys) -> Result<RowRanges> {
    let bounds = FileBounds::of(file.file(), file.schema());
    let columns: Vec<KeyColumn<'_>> =
        keys.names().enumerate().filter_map(|(number, name)| KeyColumn::of(file, number, name)).collect();
    let mut ranges = Vec::new();
    for (group, rows) in file.groups().iter().enumerate() {
        let extents = GroupExtents { bounds: &bounds, columns: &columns, group };
        if !keys.may_be_within(&extents) || filtered_out(file, keys, &columns, group).await? {
            continue;
        }
        let mut inside = RowRanges::of([rows.clone()]);
        for column in &columns {
            if let Some(pages) = column.pages(keys, group, rows.start, rows.end) {
                inside = inside.and(&pages);
            }
        }
        ranges.extend(inside.ranges().iter().cloned());
    }
    Ok(RowRanges::of(ranges))
}

/// A column of the key that the file holds.
struct KeyColumn<'a> {
    /// Its place in the key.
    number: usize,
    name: &'a str,
    data_type: DataType,
    /// The file's column.
    leaf: usize,
    /// Whether the file has the values in the table's own type.
    is_exact: bool,
    file: &'a OpenFile,
    converter: StatisticsConverter<'a>,
    groups: Option<Stats>,
}

/// Statistics of several row groups or pages of one column.
struct Stats {
    mins: ArrayRef,
    maxs: ArrayRef,
    nulls: UInt64Array,
    rows: Vec<u64>,
}

impl Stats {
    fn null(&self, at: usize) -> bool {
        self.nulls.is_null(at) || self.nulls.value(at) > 0
    }

    fn value(&self, at: usize) -> bool {
        self.nulls.is_null(at) || self.rows.get(at) != Some(&self.nulls.value(at))
    }

    fn range(&self, at: usize) -> Option<(ScalarValue, ScalarValue)> {
        let end = |ends: &ArrayRef| ScalarValue::try_from_array(ends, at).ok().filter(|end| !end.is_null());
        let (min, max) = (end(&self.mins)?, end(&self.maxs)?);
        // Ends that contradict each other say nothing.
        (min <= max).then_some((min, max))
    }
}

impl<'a> KeyColumn<'a> {
    /// None where the file's statistics of the column cannot be told or trusted.
    fn of(file: &'a OpenFile, number: usize, name: &'a str) -> Option<Self> {
        let field = file.schema().column(name)?;
        if file.schema().is_partition_column(name) || !has_safe_order(field.data_type()) {
            return None;
        }
        let had = file.columns().field_with_name(name).ok()?;
        let converter = StatisticsConverter::try_new(had.name(), file.columns(), file.parquet_schema()).ok()?;
        let leaf = converter.parquet_column_index()?;
        let mut column = Self {
            number,
            name,
            data_type: field.data_type().clone(),
            leaf,
            is_exact: had.data_type() == field.data_type(),
            file,
            converter,
            groups: None,
        };
        column.groups = column.group_stats();
        Some(column)
    }

    fn group_stats(&self) -> Option<Stats> {
        let groups = self.file.footer().row_groups();
        // Statistics of the first kind that Parquet had may be of another order than the column's.
        let trusted = groups
            .iter()
            .all(|group| group.column(self.leaf).statistics().is_none_or(|stats| !stats.is_min_max_deprecated()));
        if !trusted {
            return None;
        }
        Some(Stats {
            mins: widen(&self.converter.row_group_mins(groups).ok()?, &self.data_type).ok()?,
            maxs: widen(&self.converter.row_group_maxes(groups).ok()?, &self.data_type).ok()?,
            nulls: self.converter.row_group_null_counts(groups).ok()?,
            rows: self.file.groups().iter().map(|rows| rows.end - rows.start).collect(),
        })
    }

    /// The rows of a row group (`start..end`) whose page in this column can hold a value of one of `keys`; none where
    /// there is no index to tell.
    fn pages(&self, keys: &SourceKeys, group: usize, start: u64, end: u64) -> Option<RowRanges> {
        let footer = self.file.footer();
        let (index, offsets) = (footer.column_index()?, footer.offset_index()?);
        let locations = offsets.get(group)?.get(self.leaf)?.page_locations();
        let mut firsts: Vec<u64> =
            locations.iter().map(|page| u64::try_from(page.first_row_index).ok()).collect::<Option<_>>()?;
        firsts.push(end - start);
        if firsts.len() < 2 || firsts.first() != Some(&0) || !firsts.is_sorted() {
            return None;
        }
        let groups = [group];
        let stats = Stats {
            mins: widen(&self.converter.data_page_mins(index, offsets, &groups).ok()?, &self.data_type).ok()?,
            maxs: widen(&self.converter.data_page_maxes(index, offsets, &groups).ok()?, &self.data_type).ok()?,
            nulls: self.converter.data_page_null_counts(index, offsets, &groups).ok()?,
            rows: firsts.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?)).collect(),
        };
        if [stats.mins.len(), stats.maxs.len(), stats.nulls.len()] != [locations.len(); 3] {
            return None;
        }
        let kept = firsts.windows(2).enumerate().filter_map(|(page, ends)| {
            let may = keys.may_have(self.number, stats.null(page), stats.value(page), stats.range(page));
            may.then_some(start + ends.first()?..start + ends.get(1)?)
        });
        Some(RowRanges::of(kept))
    }
}

/// Types whose values order in Parquet's statistics as they do here. In floats, NaN and -0.0 lie outside of them.
fn has_safe_order(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Utf8
    )
}

/// What the file's footer says of one row group, and the log of its partition.
struct GroupExtents<'a> {
    bounds: &'a FileBounds<'a>,
    columns: &'a [KeyColumn<'a>],
    group: usize,
}

impl GroupExtents<'_> {
    fn stats(&self, column: &str) -> Option<&Stats> {
        self.columns.iter().find(|known| known.name == column)?.groups.as_ref()
    }
}

impl Extents for GroupExtents<'_> {
    fn may_be_null(&self, column: &str) -> bool {
        self.stats(column).map_or_else(|| self.bounds.may_be_null(column), |stats| stats.null(self.group))
    }

    fn may_be_value(&self, column: &str) -> bool {
        self.stats(column).map_or_else(|| self.bounds.may_be_value(column), |stats| stats.value(self.group))
    }

    fn range(&self, column: &str) -> Option<(ScalarValue, ScalarValue)> {
        self.stats(column).map_or_else(|| self.bounds.range(column), |stats| stats.range(self.group))
    }
}

/// Whether a Bloom filter of a row group says that it holds none of `keys`.
async fn filtered_out(file: &OpenFile, keys: &SourceKeys, columns: &[KeyColumn<'_>], group: usize) -> Result<bool> {
    if keys.len() > FILTERED_KEYS {
        return Ok(false);
    }
    for column in columns.iter().filter(|column| column.is_exact) {
        let Some(values) = keys.values(column.number) else { continue };
        let has_filter = file.footer().row_group(group).column(column.leaf).bloom_filter_offset().is_some();
        if !has_filter || values.iter().any(|values| values.null_count() > 0 || !is_hashed(values.data_type())) {
            continue;
        }
        let filter = file.bloom_filter(group, column.leaf).await?;
        if filter.is_some_and(|filter| !values.iter().any(|values| any_passes(&filter, values))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Types of which the bytes that Parquet hashes are known here.
fn is_hashed(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Utf8
    )
}

fn any_passes(filter: &Sbbf, values: &ArrayRef) -> bool {
    match values.data_type() {
        DataType::Int32 => values.as_primitive::<Int32Type>().values().iter().any(|value| filter.check(value)),
        DataType::Date32 => values.as_primitive::<Date32Type>().values().iter().any(|value| filter.check(value)),
        DataType::Int64 => values.as_primitive::<Int64Type>().values().iter().any(|value| filter.check(value)),
        DataType::Timestamp(..) => {
            values.as_primitive::<TimestampMicrosecondType>().values().iter().any(|value| filter.check(value))
        }
        DataType::Utf8 => values.as_string::<i32>().iter().flatten().any(|value| filter.check(value)),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
