//! What a failure of storage means for the caller.

use std::error::Error as StdError;
use std::io;

use deltalake::{DeltaTableError, ObjectStoreError};

use crate::error::{Error, ErrorKind};

/// Whether trying again cannot help: the credentials, the bucket, the disk or the path is wrong.
pub(crate) fn is_final(error: &ObjectStoreError) -> bool {
    kind_of(error) == ErrorKind::Invalid
}

/// The error for an operation on `what` (a table or file, as the user named it) that storage failed.
pub(crate) fn storage(what: &str, doing: &str, error: ObjectStoreError) -> Error {
    let kind = kind_of(&error);
    explain(kind, what, doing, Box::new(error))
}

/// The same for an error of deltalake, which may have one of storage inside.
pub(crate) fn delta(what: &str, doing: &str, error: DeltaTableError) -> Error {
    let kind = find::<ObjectStoreError>(&error).map_or_else(|| io_kind(&error), kind_of);
    explain(kind, what, doing, Box::new(error))
}

fn explain(kind: ErrorKind, what: &str, doing: &str, error: Box<dyn StdError + Send + Sync>) -> Error {
    let reason = root(error.as_ref());
    Error::new(kind, format!("cannot {doing} {what}: {reason}")).caused_by(error)
}

fn kind_of(error: &ObjectStoreError) -> ErrorKind {
    match error {
        ObjectStoreError::PermissionDenied { .. }
        | ObjectStoreError::Unauthenticated { .. }
        | ObjectStoreError::NotImplemented { .. }
        | ObjectStoreError::UnknownConfigurationKey { .. }
        | ObjectStoreError::InvalidPath { .. }
        | ObjectStoreError::NotSupported { .. } => ErrorKind::Invalid,
        ObjectStoreError::NotFound { source, .. } if source.to_string().contains("NoSuchBucket") => ErrorKind::Invalid,
        other => io_kind(other),
    }
}

fn io_kind(error: &(dyn StdError + 'static)) -> ErrorKind {
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename,
        ) => ErrorKind::Invalid,
        _ => ErrorKind::Retryable,
    }
}

/// The first error of type `T` in a chain of causes.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The last cause, which says it in the fewest words.
fn root<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last
}
