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

/// Brackets open at once in a line, or in a text of it. Delta's own actions and schemas have some dozens.
const DEEPEST: u32 = 500;

/// A store that breaks off the read of a log's JSON where it is nested too deep.
///
/// The kernel's reader of JSON shows what it did not expect by recursion, and a line of a hundred thousand brackets, which
/// anybody can write who may write to the table, ends the process. Texts are looked into as well, since statistics and schemas
/// are JSON in a text; not so the texts in these, which are names and values.
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

/// What is open where the bytes of a log's JSON that were read end.
#[derive(Debug, Default)]
struct Nesting {
    line: Open,
    /// Within the text that the line is in.
    text: Open,
    /// The digits of `\u` so far, and their number.
    code: Option<(u32, u32)>,
}

/// What is open within JSON: brackets, and whether it is in a text, in which brackets are none.
#[derive(Debug, Default)]
struct Open {
    brackets: u32,
    in_text: bool,
    escaped: bool,
}

impl Nesting {
    /// Reads on; false where too many brackets are open.
    fn read(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            *self = Self::default();
            return true;
        }
        let (was_in_text, was_escaped) = (self.line.in_text, self.line.escaped);
        if !self.line.step(byte) {
            return false;
        }
        if !was_in_text {
            (self.text, self.code) = (Open::default(), None);
            return true;
        }
        let ends = !self.line.in_text;
        ends || self.unescaped(byte, was_escaped).is_none_or(|byte| self.text.step(byte))
    }

    /// The byte that a text says with `byte`, if that ends a way to say one.
    fn unescaped(&mut self, byte: u8, escaped: bool) -> Option<u8> {
        match (self.code.take(), escaped) {
            (Some((value, count)), _) => {
                let value = value * 16 + char::from(byte).to_digit(16).unwrap_or_default();
                if count < 3 {
                    self.code = Some((value, count + 1));
                    return None;
                }
                // Nothing beyond ASCII opens or closes anything.
                u8::try_from(value).ok()
            }
            (None, true) if byte == b'u' => {
                self.code = Some((0, 0));
                None
            }
            (None, true) => matches!(byte, b'"' | b'\\' | b'/').then_some(byte),
            (None, false) => (byte != b'\\').then_some(byte),
        }
    }
}

impl Open {
    /// Reads a byte; false where too many brackets are open.
    fn step(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'[' | b'{' => self.brackets += 1,
            b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.brackets <= DEEPEST
    }
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
        let (path, mut nesting) = (location.clone(), Nesting::default());
        let checked = found.into_stream().map(move |bytes| {
            let bytes = bytes?;
            if nesting.read(&bytes) { Ok(bytes) } else { Err(too_deep(&path)) }
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
    use serde_json::json;

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
            ("t/_delta_log/0.json", json!({"stats": nested(501)}).to_string(), false),
            (
                "t/_delta_log/0.json",
                json!({"stats": json!({"a": "\"", "b": nested(501)}).to_string()}).to_string(),
                true,
            ),
            (
                "t/_delta_log/0.json",
                json!({"stats": format!("{{\"a\":\"\\\"\",\"b\":{}", nested(501))}).to_string(),
                false,
            ),
            ("t/_delta_log/0.json", format!("{{\"stats\":\"{}\"}}", "\\u005b".repeat(501)), false),
            ("t/_delta_log/0.json", format!("{{\"stats\":\"{}\"}}", "\\u015b".repeat(501)), true),
            ("t/_delta_log/0.json", format!("{{\"a\":\"\\\\\",\"b\":{}}}", nested(500)), false),
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
