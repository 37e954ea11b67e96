//! Rows of a source that do not fit in memory: sorted by key in runs on local disk, and given back in the order of their
//! keys, some at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::row::Rows;

use crate::error::{Error, Result};
use crate::host::Scratch;
use crate::prepare::keys::Keyed;
use crate::source::{Places, Unit};

/// Rows of a batch on disk.
const BATCH_ROWS: usize = 8192;
/// Columns beside the table's, which say where a row stood.
const SOURCE: &str = "__source";
const NUMBER: &str = "__number";

/// Rows with where they stood.
pub(super) type Placed = (RecordBatch, Places);

/// A folder of this load's own, which goes with it.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It holds nothing that is of use to anyone, and lies where such things are cleared away.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Takes rows in any order.
#[derive(Debug)]
pub(super) struct Spill {
    keyed: Keyed,
    folder: Folder,
    runs: Vec<PathBuf>,
    held: Vec<Placed>,
    bytes: u64,
    /// Bytes of rows that are held before they become a run.
    limit: u64,
    sources: Vec<(Arc<str>, Unit)>,
    numbers: HashMap<Arc<str>, u32>,
}

/// All rows of a source, sorted by key. They can be gone through several times.
#[derive(Debug)]
pub(crate) struct Sorted {
    keyed: Keyed,
    folder: Folder,
    runs: Vec<PathBuf>,
    sources: Arc<[(Arc<str>, Unit)]>,
    limit: u64,
}

/// Bytes that a batch's rows take.
pub(super) fn bytes(rows: &RecordBatch) -> u64 {
    let bytes = rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or_default());
    bytes.sum::<usize>() as u64
}

fn failed(doing: &str, folder: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::retryable(format!("rows could not be {doing} the scratch folder {}: {error}", folder.display()))
        .hint("see to the space in it, give another one by TMPDIR, or more memory by --memory")
        .caused_by(error)
}

impl Spill {
    /// A spill into a folder named `name` below that of `scratch`, which holds at most `limit` bytes of rows.
    ///
    /// # Errors
    /// `Retryable` where the folder cannot be made.
    pub(super) fn new(keyed: Keyed, scratch: &Scratch, name: &str, limit: u64) -> Result<Self> {
        let folder = scratch.folder.join(name);
        fs::create_dir_all(&folder).map_err(|e| failed("put into", &folder, e))?;
        let (folder, runs, held) = (Folder(folder), Vec::new(), Vec::new());
        Ok(Self { keyed, folder, runs, held, bytes: 0, limit, sources: Vec::new(), numbers: HashMap::new() })
    }

    /// Takes rows.
    ///
    /// # Errors
    /// `Retryable` where the disk does not.
    pub(super) fn add(&mut self, rows: RecordBatch, places: Places) -> Result<()> {
        self.bytes += bytes(&rows);
        self.held.push((rows, places));
        if self.bytes >= self.limit { self.write_run() } else { Ok(()) }
    }

    /// Ends the source.
    ///
    /// # Errors
    /// As [`Spill::add`].
    pub(super) fn finish(mut self) -> Result<Sorted> {
        self.write_run()?;
        let Self { keyed, folder, runs, sources, limit, .. } = self;
        Ok(Sorted { keyed, folder, runs, sources: sources.into(), limit })
    }

    fn write_run(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        self.bytes = 0;
        let Some((first, _)) = held.first() else { return Ok(()) };
        let schema = placed_schema(&first.schema());
        let keys: Vec<Rows> = held.iter().map(|(rows, _)| encode(&self.keyed, rows)).collect::<Result<_>>()?;
        let batches: Vec<RecordBatch> =
            held.into_iter().map(|(rows, places)| self.with_places(&schema, &rows, &places)).collect::<Result<_>>()?;
        let mut order: Vec<(usize, usize)> = keys
            .iter()
            .enumerate()
            .flat_map(|(batch, keys)| (0..keys.num_rows()).map(move |row| (batch, row)))
            .collect();
        let key = |&(batch, row): &(usize, usize)| keys.get(batch).map(|keys| keys.row(row));
        order.sort_by(|one, other| key(one).cmp(&key(other)));

        let path = self.folder.0.join(format!("run-{}.arrow", self.runs.len()));
        let fault = |error: ArrowError| failed("put into", &self.folder.0, error);
        let file = File::create(&path).map_err(|e| fault(e.into()))?;
        let mut writer = StreamWriter::try_new(BufWriter::new(file), &schema).map_err(fault)?;
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        for picks in order.chunks(BATCH_ROWS) {
            let rows = interleave_record_batch(&batches, picks).map_err(fault)?;
            writer.write(&rows).map_err(fault)?;
        }
        writer.finish().map_err(fault)?;
        self.runs.push(path);
        Ok(())
    }

    /// The rows with their places as columns.
    fn with_places(&mut self, schema: &SchemaRef, rows: &RecordBatch, places: &Places) -> Result<RecordBatch> {
        let all = (0..rows.num_rows()).map(|row| places.of(row));
        let (sources, numbers): (Vec<u32>, Vec<u64>) =
            all.map(|place| (self.source(&place.source, place.unit), place.number)).unzip();
        let columns: [ArrayRef; 2] = [Arc::new(UInt32Array::from(sources)), Arc::new(UInt64Array::from(numbers))];
        RecordBatch::try_new(schema.clone(), rows.columns().iter().cloned().chain(columns).collect())
            .map_err(|e| Error::internal("rows could not be marked with their places").caused_by(e))
    }

    fn source(&mut self, name: &Arc<str>, unit: Unit) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.sources.push((name.clone(), unit));
        self.numbers.insert(name.clone(), number);
        number
    }
}

/// All columns may be null here: whether they are has been looked at.
fn placed_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
    let places = [Field::new(SOURCE, DataType::UInt32, false), Field::new(NUMBER, DataType::UInt64, false)];
    let fields: Fields = fields.chain(places.map(Arc::new)).collect();
    Arc::new(Schema::new(fields))
}

fn encode(keyed: &Keyed, rows: &RecordBatch) -> Result<Rows> {
    let columns: Vec<ArrayRef> = keyed.key.columns().iter().map(|&column| rows.column(column).clone()).collect();
    keyed.key.encode(&columns)
}

impl Sorted {
    /// The key and order by which rows are to be chosen.
    pub(super) fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// Goes through the rows from the least key on.
    ///
    /// # Errors
    /// `Retryable` where the disk does not give them back.
    pub(super) fn read(&self) -> Result<Merge> {
        let mut merge = Merge {
            keyed: self.keyed.again()?,
            folder: self.folder.0.clone(),
            readers: Vec::new(),
            batches: Vec::new(),
            least: BinaryHeap::new(),
            sources: self.sources.clone(),
            limit: self.limit,
        };
        for (number, run) in self.runs.iter().enumerate() {
            let file = File::open(run).map_err(|e| failed("read from", &merge.folder, e))?;
            let stream = StreamReader::try_new(BufReader::new(file), None);
            let stream = stream.map_err(|e| failed("read from", &merge.folder, e))?;
            merge.readers.push(Reader { stream, batch: 0, keys: None, row: 0, row_bytes: 0 });
            merge.find(number)?;
        }
        Ok(merge)
    }
}

/// A pass over sorted runs.
#[derive(Debug)]
pub(super) struct Merge {
    keyed: Keyed,
    folder: PathBuf,
    readers: Vec<Reader>,
    /// Batches with rows that were taken and not yet gathered, or that a reader is at.
    batches: Vec<RecordBatch>,
    /// For each run that is not at its end, its next key.
    least: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    sources: Arc<[(Arc<str>, Unit)]>,
    limit: u64,
}

#[derive(Debug)]
struct Reader {
    stream: StreamReader<BufReader<File>>,
    /// Which of the batches it is at.
    batch: usize,
    /// The keys of that batch; none before the first and after the last.
    keys: Option<Rows>,
    /// The row that it is at.
    row: usize,
    /// Bytes of a row of that batch, on average.
    row_bytes: u64,
}

impl Merge {
    /// All rows of the next keys, about as many as may be held at a time; none at the end.
    ///
    /// # Errors
    /// `Retryable` where the disk does not give them back.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Placed>>> {
        let mut chunk = Vec::new();
        let (mut picks, mut bytes) = (Vec::new(), 0);
        let mut last: Option<Vec<u8>> = None;
        while let Some(Reverse((key, run))) = self.least.pop() {
            // A key's rows stay together, so that one of them can be chosen.
            if bytes >= self.limit && last.as_ref() != Some(&key) {
                self.least.push(Reverse((key, run)));
                break;
            }
            let reader = self.readers.get_mut(run).ok_or_else(lost)?;
            picks.push((reader.batch, reader.row));
            bytes += reader.row_bytes;
            reader.row += 1;
            self.find(run)?;
            last = Some(key);
            if picks.len() >= BATCH_ROWS {
                chunk.push(self.gather(&std::mem::take(&mut picks))?);
            }
        }
        if !picks.is_empty() {
            chunk.push(self.gather(&picks)?);
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// Finds the key of the row that a run is at, in its next batch where the last one is at its end.
    fn find(&mut self, run: usize) -> Result<()> {
        let reader = self.readers.get_mut(run).ok_or_else(lost)?;
        while reader.keys.as_ref().is_none_or(|keys| reader.row >= keys.num_rows()) {
            reader.keys = None;
            let Some(rows) = reader.stream.next() else { return Ok(()) };
            let rows = rows.map_err(|e| failed("read from", &self.folder, e))?;
            (reader.keys, reader.row, reader.batch) = (Some(encode(&self.keyed, &rows)?), 0, self.batches.len());
            reader.row_bytes = bytes(&rows) / (rows.num_rows() as u64).max(1);
            self.batches.push(rows);
        }
        if let Some(keys) = &reader.keys {
            self.least.push(Reverse((keys.row(reader.row).data().to_vec(), run)));
        }
        Ok(())
    }

    /// The picked rows (batch, row) as one batch, with their places. Batches that are done with are dropped.
    fn gather(&mut self, picks: &[(usize, usize)]) -> Result<Placed> {
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let rows = interleave_record_batch(&batches, picks);
        let rows = rows.map_err(|e| Error::internal("spilled rows could not be put together").caused_by(e))?;
        let mut left = Vec::new();
        for reader in self.readers.iter_mut().filter(|reader| reader.keys.is_some()) {
            left.push(self.batches.get(reader.batch).ok_or_else(lost)?.clone());
            reader.batch = left.len() - 1;
        }
        self.batches = left;
        let width = rows.num_columns().saturating_sub(2);
        let sources = rows.column(width).as_primitive::<UInt32Type>().values().iter().copied().collect();
        let numbers = rows.column(width + 1).as_primitive::<UInt64Type>().values().iter().copied().collect();
        let rows = rows.project(&(0..width).collect::<Vec<_>>());
        let rows = rows.map_err(|e| Error::internal("spilled rows have lost columns").caused_by(e))?;
        Ok((rows, Places::mixed(self.sources.clone(), sources, numbers)))
    }
}

fn lost() -> Error {
    Error::internal("a run of spilled rows is gone")
}
