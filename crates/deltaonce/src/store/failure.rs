//! What a failure of storage means for the one who asked.

use std::error::Error as StdError;
use std::io;

use deltalake::DeltaTableError;

use crate::error::{Error, ErrorKind};
pub(crate) use diagnosis::Diagnosis;

mod diagnosis;

/// The kind of the innermost telling [`io::Error`] among `error` and its sources; none where there is no such error.
///
/// Kinds that tell nothing (`Other`) are passed over, since clients wrap their own errors in them.
pub(crate) fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() != io::ErrorKind::Other {
                found = Some(io.kind());
            }
            // An io::Error hands out the source of what it wraps, not what it wraps.
            next = io.get_ref().map(|inner| inner as &(dyn StdError + 'static));
        } else {
            next = error.source();
        }
    }
    found
}

/// What the caller of a load can do about a failed storage call of which it is known that it changed nothing.
pub(crate) fn kind(error: &object_store::Error) -> ErrorKind {
    Diagnosis::of(error).kind
}

/// Whether a put with this answer is refused for good, so that the commit need not ask again.
pub(crate) fn is_final(error: &object_store::Error) -> bool {
    kind(error) == ErrorKind::Invalid
        || matches!(io_kind(error), Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

/// The error for `doing` something to `what` (a table or file, as the user named it) that storage failed.
pub(crate) fn storage(what: &str, doing: &str, error: object_store::Error) -> Error {
    explain(Diagnosis::of(&error), what, doing).caused_by(error)
}

/// The same for an error of deltalake, which may have one of storage inside.
pub(crate) fn delta(what: &str, doing: &str, error: DeltaTableError) -> Error {
    explain(diagnose(&error), what, doing).caused_by(error)
}

/// Why something failed, whose error may have one of storage inside.
pub(crate) fn diagnose(error: &(dyn StdError + 'static)) -> Diagnosis {
    match store_error(error) {
        Some(store) => Diagnosis::of(store),
        None => Diagnosis {
            // What may not pass is a log that cannot be read, now or later.
            kind: if may_pass(error) { ErrorKind::Retryable } else { ErrorKind::Unsupported },
            reason: root(error).to_string(),
            advice: None,
            said: None,
        },
    }
}

/// The error of which this is the diagnosis.
pub(crate) fn explain(diagnosis: Diagnosis, what: &str, doing: &str) -> Error {
    let Diagnosis { kind, reason, advice, said } = diagnosis;
    let error = Error::new(kind, format!("cannot {doing} {what}: {reason}"));
    let error = error.details(said.map(|said| format!("the store said: {said}")));
    match advice {
        Some(advice) => error.hint(advice),
        None => error,
    }
}

/// Whether the kernel's error may be one of the moment: a file that went away, a request that broke off.
fn may_pass(error: &(dyn StdError + 'static)) -> bool {
    use delta_kernel::Error as Kernel;
    io_kind(error).is_some()
        || causes(error).any(|error| match error.downcast_ref() {
            Some(Kernel::FileNotFound(_) | Kernel::IOError(_) | Kernel::Reqwest(_)) => true,
            Some(Kernel::Backtraced { source, .. }) => may_pass(source.as_ref()),
            _ => false,
        })
}

/// The error of the object store among `error` and its causes. The kernel keeps it without calling it a source.
fn store_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a object_store::Error> {
    causes(error).find_map(|error| match error.downcast_ref() {
        Some(delta_kernel::Error::ObjectStore(store)) => Some(store),
        Some(delta_kernel::Error::Backtraced { source, .. }) => store_error(source.as_ref()),
        _ => error.downcast_ref(),
    })
}

/// The last of the sources, which says it in the fewest words.
fn root<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    causes(error).last().unwrap_or(error)
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: source.into() }
    }

    #[test]
    fn the_kind_is_found_below_wrappers() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = generic(generic(io::Error::other(generic(full))));
        assert_eq!(io_kind(&error), Some(io::ErrorKind::StorageFull));
        assert_eq!(kind(&error), ErrorKind::Retryable);
        assert_eq!(io_kind(&generic("no io here")), None);
    }

    #[test]
    fn what_does_not_mend_itself_is_not_retryable() {
        for io in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert_eq!(kind(&generic(io::Error::from(io))), ErrorKind::Invalid);
        }
        assert_eq!(kind(&generic(io::Error::from(io::ErrorKind::TimedOut))), ErrorKind::Retryable);
    }
}
