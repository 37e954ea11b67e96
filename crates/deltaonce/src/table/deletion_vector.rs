//! Deletion vectors: which rows of a data file are deleted, as bytes (protocol, "Deletion Vectors" and "Deletion Vector
//! Format").
//!
//! A vector that is misread brings deleted rows back or takes others away, so all that the format lets one check is
//! checked, and what does not agree is refused.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use super::actions::{AddFile, DeletionVector};
use super::data_file::missing;
use crate::error::{Error, Result};
use crate::store::failure;

/// First byte of a file of vectors.
const VERSION: u8 = 1;
/// First number of a vector: what follows is the portable serialisation of a 64-bit Roaring bitmap.
const PORTABLE: u32 = 1_681_511_377;
/// The same for a serialisation that the protocol does not describe.
const NATIVE: u32 = 1_681_511_376;
/// Characters of a UUID in Z85.
const UUID_CHARS: usize = 20;
/// Where the first vector of a file starts: behind the version.
const FIRST: i32 = 1;
/// A vector that starts no later than here is read together with the version at its file's start, in one request.
const NEAR: u64 = 64 * 1024;
/// Bytes from which on a file gets no further vector, since some readers fetch the whole file for each vector in it.
const FULL: usize = 2 * 1024 * 1024;

/// A file of vectors, to be written as it is.
#[derive(Debug)]
pub(crate) struct VectorFile {
    /// Its place in a store that is rooted at the table.
    pub(crate) path: Path,
    pub(crate) bytes: Bytes,
    /// As the log names them.
    pub(crate) vectors: Vec<DeletionVector>,
}

/// Places, from 0, of the rows that the deletion vector of `file` masks; none where it has no vector. `store` is rooted
/// at the table.
///
/// # Errors
/// `Unsupported` for a vector outside the table's folder, one that is damaged, and one that does not agree with what
/// the log says of it or of the file. `Retryable` where it is gone, otherwise why storage failed.
pub(crate) async fn read(store: &Arc<dyn ObjectStore>, file: &AddFile) -> Result<RoaringTreemap> {
    let Some(vector) = &file.deletion_vector else { return Ok(RoaringTreemap::new()) };
    let fault = |why: String| Error::unsupported(format!("{} {why}", of(file)));
    let size = usize::try_from(vector.size_in_bytes)
        .map_err(|_| fault(format!("has {} bytes by the log", vector.size_in_bytes)))?;
    let masked = match vector.place().map_err(fault)? {
        None => vector.inline(size).and_then(|data| decode(&data)),
        Some(object) => {
            let framed = fetch(store, &object, vector, file, size as u64).await?;
            unframe(&framed, size).and_then(decode)
        }
    };
    let masked = masked.map_err(fault)?;
    if i64::try_from(masked.len()) != Ok(vector.cardinality) {
        return Err(fault(format!("masks {} rows, and {} by the log", masked.len(), vector.cardinality)));
    }
    match (masked.max(), file.physical_records()) {
        (Some(last), Some(rows)) if last >= rows => {
            Err(fault(format!("masks row {last}, and the file has {rows} rows by its statistics")))
        }
        _ => Ok(masked),
    }
}

/// Sets of places of rows as vectors, one each in that order, in files that are named by a `uuid` each.
///
/// # Errors
/// `Unsupported` for a set that is too large for the format.
pub(crate) fn encode(sets: &[RoaringTreemap], uuid: impl FnMut() -> Uuid) -> Result<Vec<VectorFile>> {
    encode_up_to(FULL, sets, uuid)
}

fn encode_up_to(full: usize, sets: &[RoaringTreemap], mut uuid: impl FnMut() -> Uuid) -> Result<Vec<VectorFile>> {
    let mut files = Vec::new();
    let mut open: Option<Draft> = None;
    for set in sets {
        let draft = open.get_or_insert_with(|| Draft::new(uuid()));
        draft.push(set)?;
        if draft.bytes.len() >= full {
            files.extend(open.take().map(Draft::finish));
        }
    }
    files.extend(open.map(Draft::finish));
    Ok(files)
}

impl DeletionVector {
    /// What tells the vector from every other of the table (protocol, "Derived Fields").
    pub(crate) fn unique_id(&self) -> String {
        let Self { storage_type, path_or_inline_dv, offset, .. } = self;
        match offset {
            None => format!("{storage_type}{path_or_inline_dv}"),
            Some(offset) => format!("{storage_type}{path_or_inline_dv}@{offset}"),
        }
    }

    /// The object that holds the vector, in a store that is rooted at the table; none where it is in the log itself or
    /// at no place that can be followed.
    pub(crate) fn object(&self) -> Option<Path> {
        self.place().ok().flatten()
    }

    /// As [`Self::object`], or why it cannot be followed.
    fn place(&self) -> Result<Option<Path>, String> {
        let text = &self.path_or_inline_dv;
        match self.storage_type.as_str() {
            "i" if self.offset.is_some() => Err("is in the log itself and has an offset".to_owned()),
            "i" => Ok(None),
            "u" => {
                let odd = || format!("is at '{text}', which names no file of deletion vectors");
                let prefix = text.len().checked_sub(UUID_CHARS).ok_or_else(odd)?;
                let (prefix, name) = text.split_at_checked(prefix).ok_or_else(odd)?;
                let name = z85::decode(name).map_err(|_| odd())?;
                let name = object_name(Uuid::from_slice(&name).map_err(|_| odd())?);
                // Readers do not agree on whether a prefix is percent-encoded, and dots or slashes could lead elsewhere.
                if !prefix.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_')) {
                    return Err(odd());
                }
                let folder = (!prefix.is_empty()).then_some(prefix);
                Ok(Some(folder.into_iter().chain([name.as_str()]).collect()))
            }
            "p" => Err(format!("is at '{text}', an absolute path, and those are not followed")),
            other => Err(format!("is stored as '{other}', which is not known")),
        }
    }

    /// The `size` bytes of a vector that is in the log itself.
    fn inline(&self, size: usize) -> Result<Vec<u8>, String> {
        let mut data = z85::decode(&self.path_or_inline_dv).map_err(|e| format!("is no text in Z85: {e}"))?;
        // Z85 knows groups of four bytes only; writers fill the last one up with zeros.
        let filled = data.get(size..).is_some_and(|rest| rest.len() < 4 && rest.iter().all(|byte| *byte == 0));
        if !filled {
            return Err(format!("has {} bytes, and {size} by the log", data.len()));
        }
        data.truncate(size);
        Ok(data)
    }
}

fn of(file: &AddFile) -> String {
    format!("the deletion vector of data file '{}'", file.path)
}

fn object_name(uuid: Uuid) -> String {
    format!("deletion_vector_{uuid}.bin")
}

/// The bytes of a vector of `size` bytes in its file, from its size to its checksum.
async fn fetch(
    store: &Arc<dyn ObjectStore>,
    object: &Path,
    vector: &DeletionVector,
    file: &AddFile,
    size: u64,
) -> Result<Bytes> {
    // The protocol calls an absent offset 0, where the version is; whoever leaves it out means the only vector.
    let offset = vector.offset.unwrap_or(FIRST);
    let Some(start) = u64::try_from(offset).ok().filter(|_| offset >= FIRST) else {
        return Err(Error::unsupported(format!("{} starts at byte {offset} of '{object}'", of(file))));
    };
    let end = start + 4 + size + 4;
    let (version, framed) = if start <= NEAR {
        let bytes = get(store, object, 0..end, file).await?;
        // As many bytes as were asked for, or `get` fails.
        (bytes.first().copied(), bytes.slice(usize::try_from(start).unwrap_or_default()..))
    } else {
        let version = get(store, object, 0..1, file).await?;
        (version.first().copied(), get(store, object, start..end, file).await?)
    };
    match version {
        Some(VERSION) => Ok(framed),
        _ => Err(Error::unsupported(format!(
            "{} is in '{object}', which is of version {} and not {VERSION}",
            of(file),
            version.unwrap_or_default()
        ))),
    }
}

/// A range of an object, whole.
async fn get(store: &Arc<dyn ObjectStore>, object: &Path, range: Range<u64>, file: &AddFile) -> Result<Bytes> {
    let Range { start, end } = range;
    let short = |has: u64| {
        Error::unsupported(format!("{} should end at byte {end} of '{object}', which has {has} bytes", of(file)))
    };
    // `get_ranges` would allocate by the log's numbers, and may panic where the object is shorter than they say.
    match store.get_range(object, start..end).await {
        Ok(bytes) if bytes.len() as u64 == end - start => Ok(bytes),
        Ok(bytes) => Err(short(start + bytes.len() as u64)),
        Err(e @ object_store::Error::NotFound { .. }) => Err(missing(&of(file)).caused_by(e)),
        // A range behind the end of an object is an error like any other.
        Err(e) => match store.head(object).await {
            Ok(meta) if meta.size < end => Err(short(meta.size).caused_by(e)),
            _ => Err(failure::storage(&of(file), "read", e)),
        },
    }
}

/// The data of a vector, of which its file says the size before and the checksum behind it.
fn unframe(framed: &[u8], size: usize) -> Result<&[u8], String> {
    let cut = || "is cut off".to_owned();
    let (said, rest) = framed.split_first_chunk().ok_or_else(cut)?;
    let said = i32::from_be_bytes(*said);
    if usize::try_from(said) != Ok(size) {
        return Err(format!("has {said} bytes by its file, and {size} by the log"));
    }
    let (data, checksum) = rest.split_at_checked(size).ok_or_else(cut)?;
    let checksum = u32::from_be_bytes(checksum.try_into().map_err(|_| cut())?);
    if crc32fast::hash(data) != checksum {
        return Err("is damaged: its checksum does not match".to_owned());
    }
    Ok(data)
}

/// The places that a vector's data masks.
fn decode(data: &[u8]) -> Result<RoaringTreemap, String> {
    let cut = || "is cut off".to_owned();
    let (magic, rest) = data.split_first_chunk().ok_or_else(cut)?;
    match u32::from_le_bytes(*magic) {
        PORTABLE => {}
        NATIVE => return Err(format!("is in the native format ({NATIVE}), which only its writer can read")),
        other => return Err(format!("is in a format that is not known ({other})")),
    }
    let (count, mut rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let mut bitmaps = Vec::new();
    let mut least = 0;
    // Each turn takes bytes or ends it, so the count need not be believed. The bitmaps are told apart here, since the
    // treemap would let one of two with the same key pass.
    for _ in 0..u64::from_le_bytes(*count) {
        let (key, bitmap) = rest.split_first_chunk().ok_or_else(cut)?;
        let key = u32::from_le_bytes(*key);
        if key < least || i32::try_from(key).is_err() {
            return Err(format!("is damaged: bitmap {key} is out of order"));
        }
        least = key + 1;
        rest = bitmap;
        let bitmap = RoaringBitmap::deserialize_from(&mut rest)
            .map_err(|e| format!("is damaged: bitmap {key} cannot be read: {e}"))?;
        if !bitmap.is_empty() {
            bitmaps.push((key, bitmap));
        }
    }
    if !rest.is_empty() {
        return Err(format!("is damaged: {} bytes are left over", rest.len()));
    }
    Ok(RoaringTreemap::from_bitmaps(bitmaps))
}

/// A file of vectors that may get more of them.
#[derive(Debug)]
struct Draft {
    uuid: Uuid,
    bytes: Vec<u8>,
    vectors: Vec<DeletionVector>,
}

impl Draft {
    fn new(uuid: Uuid) -> Self {
        Self { uuid, bytes: vec![VERSION], vectors: Vec::new() }
    }

    fn push(&mut self, set: &RoaringTreemap) -> Result<()> {
        let mut set = set.clone();
        set.optimize();
        let bytes = 4 + set.serialized_size();
        let large =
            || Error::unsupported(format!("a deletion vector would have {bytes} bytes, too many for the format"));
        let size = i32::try_from(bytes).map_err(|_| large())?;
        let offset = i32::try_from(self.bytes.len()).map_err(|_| large())?;
        if set.max().is_some_and(|last| i64::try_from(last).is_err()) {
            return Err(Error::internal("a deletion vector masks a row that no file can have"));
        }
        self.bytes.reserve(4 + bytes + 4);
        self.bytes.extend(size.to_be_bytes());
        let start = self.bytes.len();
        self.bytes.extend(PORTABLE.to_le_bytes());
        let written = set.serialize_into(&mut self.bytes);
        written.map_err(|e| Error::internal("a deletion vector could not be serialised").caused_by(e))?;
        let checksum = crc32fast::hash(self.bytes.get(start..).unwrap_or_default());
        self.bytes.extend(checksum.to_be_bytes());
        self.vectors.push(DeletionVector {
            storage_type: "u".to_owned(),
            path_or_inline_dv: z85::encode(self.uuid.as_bytes()),
            offset: Some(offset),
            size_in_bytes: size,
            cardinality: i64::try_from(set.len()).map_err(|_| large())?,
        });
        Ok(())
    }

    fn finish(self) -> VectorFile {
        VectorFile { path: Path::from(object_name(self.uuid)), bytes: self.bytes.into(), vectors: self.vectors }
    }
}

#[cfg(test)]
mod tests;
