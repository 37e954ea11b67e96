//! A log whose JSON is nested no deeper than its readers can bear.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Brackets open at once in one line. Delta's own actions and schemas have some dozens.
const DEEPEST: u32 = 500;

/// A store that breaks off the read of a log's JSON where it is nested too deep.
///
/// The kernel's reader of JSON shows what it did not expect by recursion, and a line of a hundred thousand brackets, which
/// anybody can write who may write to the table, ends the process. Brackets within texts count too: statistics and
/// schemas are JSON in a text.
#[derive(Debug)]
pub(crate) struct Shallow {
    inner: Arc<dyn ObjectStore>,
}

/// The cause of the error where JSON is nested too deep.
#[derive(Debug)]
pub(crate) struct TooDeep {
    path: Path,
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has JSON nested more than {DEEPEST} deep", self.path)
    }
}

impl std::error::Error for TooDeep {}

impl Shallow {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner }
    }
}

impl fmt::Display for Shallow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Whether an object is JSON of a log: an entry, a checkpoint, a checksum.
fn is_json(path: &Path) -> bool {
    path.parts().any(|part| part.as_ref() == "_delta_log") && !path.as_ref().ends_with(".parquet")
}

/// How many brackets are open after `bytes` of a line, and of the lines after it, where `depth` were before; none where
/// they are too many.
fn depth_after(bytes: &[u8], mut depth: u32) -> Option<u32> {
    for byte in bytes {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' => depth = 0,
            _ => {}
        }
        if depth > DEEPEST {
            return None;
        }
    }
    Some(depth)
}

fn too_deep(path: &Path) -> Error {
    Error::NotSupported { source: Box::new(TooDeep { path: path.clone() }) }
}

#[async_trait]
impl ObjectStore for Shallow {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let found = self.inner.get_opts(location, options).await?;
        if !is_json(location) {
            return Ok(found);
        }
        let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
        let (path, mut depth) = (location.clone(), 0);
        let checked = found.into_stream().map(move |bytes| {
            let bytes = bytes?;
            depth = depth_after(&bytes, depth).ok_or_else(|| too_deep(&path))?;
            Ok(bytes)
        });
        Ok(GetResult { payload: GetResultPayload::Stream(checked.boxed()), meta, range, attributes })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn deep_json_of_a_log_is_not_handed_out() {
        let store = Shallow::new(Arc::new(InMemory::new()));
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let cases = [
            ("t/_delta_log/0.json", nested(500), true),
            ("t/_delta_log/0.json", [nested(400), nested(400)].join("\n"), true),
            ("t/_delta_log/0.json", nested(501), false),
            ("t/_delta_log/0.json", format!("{{\"stats\":\"{}\"}}", nested(100_000)), false),
            ("t/_delta_log/0.crc", nested(100_000), false),
            ("t/_delta_log/0.checkpoint.parquet", nested(100_000), true),
            ("t/part.json", nested(100_000), true),
        ];
        for (path, content, is_read) in cases {
            let path = Path::from(path);
            store.put(&path, content.clone().into()).await.unwrap();
            let read = store.get(&path).await.unwrap().bytes().await;
            assert_eq!(read.is_ok(), is_read, "{path}: {}", content.len());
            if let Err(error) = read {
                assert!(error.to_string().contains("nested more than 500 deep"), "{error}");
            }
        }
    }
}
