//! A source whose inputs are found and, where typed, agree on their columns.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::format::Format;
use super::given::{Rows, Source};
use super::input::{Given, Input, InputPlace, given_stream};
use super::{CsvOptions, SourceBatch, arrow_ipc, batches, csv, json, listing, parquet, worker};
use crate::error::{Error, Result};
use crate::store::location::Location;
use crate::table::columns::sql_type;
use crate::table::schema::TableSchema;

/// Inputs whose headers are looked at together.
const LOOKS: usize = 8;

/// A source that was found to be there and of one kind; its rows are not read yet.
pub(crate) struct OpenSource {
    rows: OpenRows,
    schema: Option<SchemaRef>,
    bytes_read: Arc<AtomicU64>,
    skipped: Vec<String>,
}

enum OpenRows {
    Files { format: Format, files: Vec<OpenFile> },
    Batches { name: Arc<str>, batches: BoxStream<'static, Result<RecordBatch, ArrowError>> },
}

struct OpenFile {
    input: Arc<Input>,
    csv: CsvOptions,
}

impl std::fmt::Debug for OpenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSource").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Source {
    /// Finds the inputs and, of typed ones, reads the schema; no row is read.
    ///
    /// # Errors
    /// `Invalid` where an input is missing, given twice, or of another format than the rest; `Refused`, naming two
    /// files and the column, where typed files differ in columns or types; `Retryable` where storage fails.
    pub(crate) async fn open(self) -> Result<OpenSource> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut skipped = Vec::new();
        let (format, files) = match self.given {
            Rows::Batches(schema, batches) => {
                return Ok(OpenSource::batches(name_or(self.name, "the given batches"), schema, batches));
            }
            Rows::Reader(reader) => {
                let name = name_or(self.name, "the given batches");
                let schema = reader.schema();
                let batches = batches::drawn(&name, reader);
                return Ok(OpenSource::batches(name, schema, batches));
            }
            Rows::Bytes(bytes) => {
                let format = self.format.ok_or_else(|| Error::invalid("bytes are given without their format"))?;
                let name = name_or(self.name, "standard input");
                let place = InputPlace::Given(Given::new(given_stream(name.clone(), bytes)));
                let input = Arc::new(Input::new(name, place, bytes_read.clone()));
                (format, vec![OpenFile { input, csv: self.csv }])
            }
            Rows::Files(paths) => {
                let paths = paths
                    .into_iter()
                    .map(|path| {
                        path.into_string().map_err(|path| Error::invalid(format!("{} is not UTF-8", path.display())))
                    })
                    .collect::<Result<Vec<_>>>()?;
                let locate = |address: &str| {
                    let (defaults, options) = (self.storage.defaults.clone(), self.storage.options.clone());
                    let location = Location::parse_with_defaults(address, defaults, options)?;
                    Ok((location.store()?, location.path().clone()))
                };
                let listing = listing::list(&paths, self.format, &locate).await?;
                skipped = listing.skipped;
                let files = listing.files.into_iter().map(|file| {
                    let mut csv = self.csv.clone();
                    if file.tabs && csv.delimiter == b',' {
                        csv.delimiter = b'\t';
                    }
                    let input = match (file.place, file.size) {
                        (InputPlace::Local(path), None) => Input::pipe(file.name, path, bytes_read.clone()),
                        (place, _) => Input::new(file.name, place, bytes_read.clone()),
                    };
                    OpenFile { input: Arc::new(input), csv }
                });
                (listing.format, files.collect())
            }
        };
        let schema = common_schema(format, &files).await?;
        Ok(OpenSource { rows: OpenRows::Files { format, files }, schema, bytes_read, skipped })
    }
}

impl OpenSource {
    fn batches(
        name: Arc<str>,
        schema: SchemaRef,
        batches: BoxStream<'static, Result<RecordBatch, ArrowError>>,
    ) -> Self {
        Self {
            rows: OpenRows::Batches { name, batches },
            schema: Some(schema),
            bytes_read: Arc::default(),
            skipped: Vec::new(),
        }
    }

    /// The source's own columns and types; `None` where it is text.
    ///
    /// Of several files: the first one's columns, nullable where any file's are. A file's batches may have the same
    /// columns in another order, and other Arrow types of the same SQL type.
    pub(crate) fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Bytes read so far, as they are stored.
    pub(crate) fn bytes_read(&self) -> Arc<AtomicU64> {
        self.bytes_read.clone()
    }

    /// Files in folders and globs that are not read, since nothing says how.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// All rows, input after input, each input in its own order. Text takes the types of `target`'s columns; typed rows
    /// come in their own. About `parallelism` threads decode at a time. To be called, and the stream to be polled, within
    /// a Tokio runtime.
    pub(crate) fn read(self, target: &TableSchema, parallelism: usize) -> BoxStream<'static, Result<SourceBatch>> {
        let target = target.clone();
        match self.rows {
            OpenRows::Batches { name, batches } => match self.schema {
                Some(schema) => batches::read(name, schema, batches),
                None => stream::empty().boxed(),
            },
            OpenRows::Files { format, files } => {
                worker::in_order(files.into_iter().map(move |OpenFile { input, csv }| match format {
                    Format::Csv => csv::read(input.name().clone(), input.bytes(), &target, &csv, parallelism),
                    Format::Ndjson => json::read(input.name().clone(), input.bytes(), &target, parallelism),
                    Format::Parquet => parquet::read(&input, parallelism),
                    Format::Arrow => arrow_ipc::read(&input),
                }))
            }
        }
    }
}

fn name_or(name: Option<String>, default: &str) -> Arc<str> {
    name.map_or_else(|| default.into(), Into::into)
}

async fn common_schema(format: Format, files: &[OpenFile]) -> Result<Option<SchemaRef>> {
    if !format.is_typed() {
        return Ok(None);
    }
    let inputs: Vec<_> = files.iter().map(|file| file.input.clone()).collect();
    let mut schemas = stream::iter(inputs)
        .map(|input| async move {
            let schema = match format {
                Format::Parquet => parquet::schema(&input).await?,
                _ => arrow_ipc::schema(&input).await?,
            };
            unique_columns(input.name(), &schema)?;
            Ok::<_, Error>((input.name().clone(), schema))
        })
        .buffered(LOOKS);
    let mut common: Option<(Arc<str>, SchemaRef)> = None;
    while let Some((name, schema)) = schemas.try_next().await? {
        common = Some(match common {
            None => (name, schema),
            Some((first, before)) => {
                let merged = merge(&first, &before, &name, &schema)?;
                (first, merged)
            }
        });
    }
    Ok(common.map(|(_, schema)| schema))
}

fn unique_columns(name: &str, schema: &Schema) -> Result<()> {
    let mut seen = HashMap::new();
    for field in schema.fields() {
        if let Some(twin) = seen.insert(field.name().to_lowercase(), field.name()) {
            return Err(Error::refused(format!("{name} has the column {twin} twice (as {twin} and {})", field.name())));
        }
    }
    Ok(())
}

/// The columns of `before`, nullable where either is; a column of nulls only takes the other file's type.
fn merge(first: &str, before: &Schema, name: &str, schema: &Schema) -> Result<SchemaRef> {
    if let Some(extra) = schema.fields().iter().find(|field| before.field_with_name(field.name()).is_err()) {
        return Err(Error::refused(format!("{name} has the column {}, which {first} has not", extra.name()))
            .hint("load files of different columns one after the other"));
    }
    let fields = before
        .fields()
        .iter()
        .map(|field| {
            let Some((_, other)) = schema.fields().find(field.name()) else {
                return Err(Error::refused(format!("{first} has the column {}, which {name} has not", field.name()))
                    .hint("load files of different columns one after the other"));
            };
            // A column of nulls may call itself not nullable.
            let nullable = [field, other].iter().any(|field| field.is_nullable() || field.data_type().is_null());
            let data_type = match (field.data_type(), other.data_type()) {
                (DataType::Null, theirs) => theirs,
                (ours, DataType::Null) => ours,
                (ours, theirs) if sql_type(ours) == sql_type(theirs) => &nullable_in_either(ours, theirs),
                (ours, theirs) => {
                    return Err(Error::refused(format!(
                        "column {} is {} in {first} and {} in {name}",
                        field.name(),
                        sql_type(ours),
                        sql_type(theirs)
                    )));
                }
            };
            Ok(Field::new(field.name(), data_type.clone(), nullable))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Schema::new(fields).into())
}

/// `ours`, with fields inside it nullable where they are in `theirs` too; both are of one SQL type.
fn nullable_in_either(ours: &DataType, theirs: &DataType) -> DataType {
    let both = |ours: &FieldRef, theirs: &FieldRef| {
        let data_type = nullable_in_either(ours.data_type(), theirs.data_type());
        let field = ours.as_ref().clone().with_data_type(data_type);
        Arc::new(field.with_nullable(ours.is_nullable() || theirs.is_nullable()))
    };
    match (ours, inner(theirs)) {
        (DataType::Struct(fields), Inner::Fields(others)) => {
            DataType::Struct(fields.iter().zip(others).map(|(field, other)| both(field, other)).collect())
        }
        (DataType::List(item), Inner::Item(other)) => DataType::List(both(item, other)),
        (DataType::LargeList(item), Inner::Item(other)) => DataType::LargeList(both(item, other)),
        (DataType::ListView(item), Inner::Item(other)) => DataType::ListView(both(item, other)),
        (DataType::LargeListView(item), Inner::Item(other)) => DataType::LargeListView(both(item, other)),
        (DataType::FixedSizeList(item, size), Inner::Item(other)) => DataType::FixedSizeList(both(item, other), *size),
        (DataType::Map(entries, sorted), Inner::Item(other)) => DataType::Map(both(entries, other), *sorted),
        _ => ours.clone(),
    }
}

/// What a type holds.
enum Inner<'a> {
    Fields(&'a Fields),
    /// The one field of a list or a map.
    Item(&'a FieldRef),
    Nothing,
}

fn inner(data_type: &DataType) -> Inner<'_> {
    match data_type {
        DataType::Struct(fields) => Inner::Fields(fields),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => Inner::Item(item),
        _ => Inner::Nothing,
    }
}

#[cfg(test)]
mod tests;
