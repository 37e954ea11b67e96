//! One input: a local file, an object, or bytes that the caller gives, unpacked as it is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio::runtime::Handle;

use super::fault;
use super::format::{Compression, Named};
use super::object::Object;
use super::worker;
use crate::error::{Error, Result};

/// Bytes of one piece of an input.
const PIECE: usize = 1 << 20;
/// Pieces that are read ahead of their use.
const AHEAD: usize = 4;

/// One input of a load.
#[derive(Debug)]
pub(crate) struct Input {
    name: Arc<str>,
    compression: Compression,
    place: InputPlace,
    read: Arc<AtomicU64>,
}

/// Where the bytes of an input are.
pub(crate) enum InputPlace {
    /// A file of this machine.
    Local(PathBuf),
    /// An object of an object store.
    Object(Arc<Object>),
    /// Bytes that the caller gives, once.
    Given(Given),
}

/// Bytes that can be taken once.
pub(crate) struct Given(Mutex<Option<BoxStream<'static, Result<Bytes>>>>);

impl Given {
    pub(crate) fn new(bytes: BoxStream<'static, Result<Bytes>>) -> Self {
        Self(Mutex::new(Some(bytes)))
    }

    fn take(&self) -> Option<BoxStream<'static, Result<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, bytes: BoxStream<'static, Result<Bytes>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }
}

impl std::fmt::Debug for InputPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(path) => f.debug_tuple("Local").field(path).finish(),
            Self::Object(object) => f.debug_tuple("Object").field(object).finish(),
            Self::Given(_) => f.write_str("Given"),
        }
    }
}

impl Input {
    /// An input called `name` by the user, packed as its name says; what is read of it is added to `read`.
    pub(crate) fn new(name: Arc<str>, place: InputPlace, read: Arc<AtomicU64>) -> Self {
        let compression = match place {
            InputPlace::Given(_) => Compression::None,
            _ => Named::of(&name).compression,
        };
        Self { name, compression, place, read }
    }

    /// A local file that can be read only once, such as a pipe; it is opened when it is first read.
    pub(crate) fn pipe(name: Arc<str>, path: PathBuf, read: Arc<AtomicU64>) -> Self {
        let pieces = {
            let name = name.clone();
            move || {
                let opened = name.clone();
                worker::run(name, AHEAD, move |out| {
                    let mut file = File::open(path).map_err(|e| fault::io(&opened, e))?;
                    // Handed on as it comes: a pipe may wait long between two writes.
                    let mut piece = vec![0; PIECE / 4];
                    loop {
                        let more = file.read(&mut piece).map_err(|e| fault::io(&opened, e))?;
                        let bytes = Bytes::copy_from_slice(piece.get(..more).unwrap_or_default());
                        if more == 0 || !out.send(bytes) {
                            return Ok(());
                        }
                    }
                })
            }
        };
        let bytes = stream::once(async move { pieces() }).flatten().boxed();
        let compression = Named::of(&name).compression;
        Self { name, compression, place: InputPlace::Given(Given::new(bytes)), read }
    }

    /// As the user named it.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn place(&self) -> &InputPlace {
        &self.place
    }

    /// Counts bytes, as they are stored.
    pub(crate) fn count(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// All bytes, unpacked, front to back; read and unpacked off the async threads, a few pieces ahead.
    ///
    /// # Errors
    /// In the stream, naming the input; a packed input that ends too early is `Refused`.
    pub(crate) fn bytes(self: &Arc<Self>) -> BoxStream<'static, Result<Bytes>> {
        let input = self.clone();
        let runtime = Handle::current();
        worker::run(self.name.clone(), AHEAD, move |out| {
            let mut reader = input.reader(&runtime)?;
            loop {
                let mut piece = Vec::with_capacity(PIECE);
                let more = reader.by_ref().take(PIECE as u64).read_to_end(&mut piece);
                let more = more.map_err(|e| input.fault(e))?;
                if more == 0 || !out.send(piece.into()) {
                    return Ok(());
                }
            }
        })
    }

    /// A reader of the unpacked bytes for a blocking thread; its errors go through [`Input::fault`].
    pub(crate) fn reader(self: &Arc<Self>, runtime: &Handle) -> Result<Box<dyn Read + Send>> {
        let stored: Box<dyn Read + Send> = match &self.place {
            InputPlace::Local(path) => Box::new(File::open(path).map_err(|e| fault::io(&self.name, e))?),
            InputPlace::Object(object) => Box::new(Pieces::new(object.clone().bytes(), runtime)),
            InputPlace::Given(given) => {
                let bytes = given.take().ok_or_else(|| Error::internal(format!("{} was read twice", self.name)))?;
                Box::new(Pieces::new(bytes, runtime))
            }
        };
        let stored = Stored { input: self.clone(), inner: stored };
        Ok(match self.compression {
            Compression::None => Box::new(stored),
            Compression::Gzip => Box::new(MultiGzDecoder::new(stored)),
            Compression::Zstd => Box::new(zstd::Decoder::new(stored).map_err(|e| fault::io(&self.name, e))?),
        })
    }

    /// The error of a read through [`Input::reader`].
    pub(crate) fn fault(&self, error: io::Error) -> Error {
        fault::out_of_io(error, |e| {
            let packed = match self.compression {
                Compression::None => return fault::io(&self.name, e),
                Compression::Gzip => "gzip",
                Compression::Zstd => "zstd",
            };
            let what = if e.kind() == io::ErrorKind::UnexpectedEof { "is cut short" } else { "is damaged" };
            Error::refused(format!("{} {what}: its {packed} data cannot be unpacked ({e})", self.name)).caused_by(e)
        })
    }

    /// Lets `look` see the bytes of an input from its front until it has what it wants, without using them up.
    ///
    /// `look` runs on a blocking thread, once.
    pub(crate) async fn peek<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut dyn Read) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let input = self.clone();
        let runtime = Handle::current();
        worker::once(self.name.clone(), move || {
            let InputPlace::Given(given) = &input.place else {
                // Looking is not reading: the front of the input is counted when it is read in earnest.
                let uncounted = Arc::new(input.uncounted());
                return look(&mut uncounted.reader(&runtime)?);
            };
            let bytes = given.take().ok_or_else(|| Error::internal(format!("{} was read twice", input.name)))?;
            let mut pieces = Pieces::new(bytes, &runtime).keeping();
            let seen = look(&mut pieces);
            let (kept, rest) = pieces.into_parts();
            given.put(stream::iter(kept.into_iter().map(Ok)).chain(rest).boxed());
            seen
        })
        .await
    }

    fn uncounted(&self) -> Self {
        let place = match &self.place {
            InputPlace::Local(path) => InputPlace::Local(path.clone()),
            InputPlace::Object(object) => InputPlace::Object(object.clone()),
            InputPlace::Given(_) => InputPlace::Given(Given(Mutex::new(None))),
        };
        Self { name: self.name.clone(), compression: self.compression, place, read: Arc::default() }
    }
}

/// The stored bytes of an input: counted, and with errors that name it.
struct Stored {
    input: Arc<Input>,
    inner: Box<dyn Read + Send>,
}

impl Read for Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(read) => {
                self.input.count(read);
                Ok(read)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => Err(fault::into_io(fault::out_of_io(e, |e| fault::io(&self.input.name, e)))),
        }
    }
}

/// A stream of bytes, read from a blocking thread.
struct Pieces {
    runtime: Handle,
    bytes: BoxStream<'static, Result<Bytes>>,
    current: Bytes,
    kept: Option<Vec<Bytes>>,
}

impl Pieces {
    fn new(bytes: BoxStream<'static, Result<Bytes>>, runtime: &Handle) -> Self {
        Self { runtime: runtime.clone(), bytes, current: Bytes::new(), kept: None }
    }

    /// Keeps what is read, to be given again.
    fn keeping(self) -> Self {
        Self { kept: Some(Vec::new()), ..self }
    }

    fn into_parts(self) -> (Vec<Bytes>, BoxStream<'static, Result<Bytes>>) {
        (self.kept.unwrap_or_default(), self.bytes)
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.runtime.block_on(self.bytes.next()) {
                None => return Ok(0),
                Some(Err(error)) => return Err(fault::into_io(error)),
                Some(Ok(piece)) => {
                    if let Some(kept) = &mut self.kept {
                        kept.push(piece.clone());
                    }
                    self.current = piece;
                }
            }
        }
        let read = buffer.len().min(self.current.len());
        self.current.copy_to_slice(buffer.get_mut(..read).unwrap_or_default());
        Ok(read)
    }
}

/// The bytes of a stream that the caller gives, called `name`.
pub(crate) fn given_stream(
    name: Arc<str>,
    bytes: impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> BoxStream<'static, Result<Bytes>> {
    bytes.map_err(move |e| fault::io(&name, e)).boxed()
}

/// The bytes of a reader that the caller gives.
pub(crate) fn given_reader(
    reader: impl tokio::io::AsyncRead + Send + Unpin + 'static,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    use tokio::io::AsyncReadExt;
    stream::try_unfold(reader, |mut reader| async move {
        let mut piece = bytes::BytesMut::with_capacity(PIECE / 4);
        let read = reader.read_buf(&mut piece).await?;
        Ok((read > 0).then(|| (piece.freeze(), reader)))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;
    use crate::ErrorKind;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    async fn read(name: &str, stored: &[u8]) -> (Result<Vec<u8>>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, stored).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let input = Arc::new(Input::new(name.into(), InputPlace::Local(path), count.clone()));
        let bytes = input.bytes().try_collect::<Vec<_>>().await.map(|pieces| pieces.concat());
        (bytes, count.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn all_members_and_frames_are_read() {
        let stored = [gzip(b"id\n1\n"), gzip(b""), gzip(b"2\n")].concat();
        let (bytes, count) = read("a.csv.gz", &stored).await;
        assert_eq!(bytes.unwrap(), b"id\n1\n2\n");
        assert_eq!(count, stored.len() as u64);

        let frames =
            [zstd::encode_all(&b"id\n1\n"[..], 3).unwrap(), zstd::encode_all(&b"2\n"[..], 3).unwrap()].concat();
        let (bytes, count) = read("a.csv.zst", &frames).await;
        assert_eq!(bytes.unwrap(), b"id\n1\n2\n");
        assert_eq!(count, frames.len() as u64);
    }

    #[tokio::test]
    async fn a_packed_file_cut_anywhere_is_refused() {
        let text: Vec<u8> = (0..2000).flat_map(|i| format!("{i},{}\n", i * 7919).into_bytes()).collect();
        let whole = gzip(&text);
        let frame = zstd::encode_all(&text[..], 3).unwrap();
        for (name, stored) in [("a.csv.gz", &whole), ("a.csv.zst", &frame)] {
            for cut in [1, 8, stored.len() / 2, stored.len() - 1] {
                let (bytes, _) = read(name, &stored[..cut]).await;
                let error = bytes.expect_err(&format!("{name} cut at {cut}"));
                assert_eq!(error.kind(), ErrorKind::Refused, "{name} cut at {cut}");
                assert!(error.message().starts_with(&format!("{name} is cut short")), "{}", error.message());
            }
        }
        let (bytes, _) = read("a.csv.gz", &[whole.clone(), b"tail".to_vec()].concat()).await;
        assert!(bytes.is_err());
    }

    #[tokio::test]
    async fn a_missing_file_is_named() {
        let place = InputPlace::Local("/nonexistent/a.csv".into());
        let input = Arc::new(Input::new("in/a.csv".into(), place, Arc::default()));
        let error = input.bytes().try_collect::<Vec<_>>().await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, "in/a.csv does not exist"));
    }

    #[tokio::test]
    async fn given_bytes_can_be_looked_at_first() {
        let bytes = given_stream("stdin".into(), given_reader(std::io::Cursor::new(b"one two".to_vec())));
        let input = Arc::new(Input::new("stdin".into(), InputPlace::Given(Given::new(bytes)), Arc::default()));
        let head = input
            .peek(|reader| {
                let mut head = [0; 3];
                reader.read_exact(&mut head).unwrap();
                Ok(head)
            })
            .await
            .unwrap();
        assert_eq!(&head, b"one");
        let all = input.bytes().try_collect::<Vec<_>>().await.unwrap().concat();
        assert_eq!(all, b"one two");
        assert!(input.bytes().try_collect::<Vec<_>>().await.is_err());
    }
}
