//! Where a data file goes, and how the log says it.

use std::fmt::Write as _;

use object_store::path::Path;

use super::partition::Values;
use crate::error::{Error, Result};

/// What stands for null in a directory's name.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Bytes that file systems allow in one name.
const NAME_LIMIT: usize = 255;

/// The object that a file called `name` of a partition becomes, below `folder` where there is one.
///
/// Directories are named as Hive and Spark do. They mean nothing to readers, who take values from the log; so one whose
/// name is too long for a file system is left out.
///
/// # Errors
/// `Internal` for a name that no store can hold.
pub(super) fn object(folder: Option<&str>, partition: &Values, name: &str) -> Result<Path> {
    let mut path = folder.map(|folder| format!("{folder}/")).unwrap_or_default();
    for (column, value) in partition {
        let value = value.directory.as_deref().map_or_else(|| NULL.to_owned(), escape);
        let directory = format!("{}={value}", escape(column));
        if directory.len() <= NAME_LIMIT {
            path.push_str(&directory);
            path.push('/');
        }
    }
    path.push_str(name);
    Path::parse(&path).map_err(|e| Error::internal(format!("'{path}' is not a path for a data file")).caused_by(e))
}

/// The `path` of the `add` action for an object: a relative URI, every byte that is not plain percent-encoded.
pub(super) fn in_log(object: &Path) -> String {
    percent_encode(object.as_ref(), |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'=' | b'/')
    })
}

/// Escapes what Spark escapes in the name of a partition's directory.
fn escape(text: &str) -> String {
    percent_encode(text, |byte| {
        !(byte.is_ascii_control()
            || matches!(
                byte,
                b'"' | b'#' | b'%' | b'\'' | b'*' | b'/' | b':' | b'=' | b'?' | b'\\' | b'{' | b'[' | b']' | b'^'
            ))
    })
}

/// Encodes the bytes that are not `plain`. `plain` answers alike for all bytes above ASCII.
fn percent_encode(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        if bytes.iter().all(|byte| plain(*byte)) {
            encoded.push(c);
        } else {
            for byte in bytes {
                // Writing into a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
