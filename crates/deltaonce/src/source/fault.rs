//! What went wrong while an input was read, as the library's error.

use std::io;

use crate::error::Error;
use crate::store::failure;

/// The error for an operating system's error on `name`: what a retry can mend is retryable.
pub(crate) fn io(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::invalid(format!("{name} does not exist")),
        io::ErrorKind::PermissionDenied => Error::invalid(format!("{name} may not be read: permission denied")),
        io::ErrorKind::IsADirectory => Error::invalid(format!("{name} is a folder")),
        _ => Error::retryable(format!("{name} cannot be read: {error}")),
    }
    .caused_by(error)
}

/// The error for an object store's error on `name`.
pub(crate) fn store(name: &str, error: object_store::Error) -> Error {
    let diagnosis = failure::diagnose(&error);
    // A bucket that is missing is told by the diagnosis.
    let is_missing = matches!(error, object_store::Error::NotFound { .. }) && diagnosis.advice.is_none();
    match is_missing {
        true => Error::invalid(format!("{name} does not exist")),
        false => failure::explain(diagnosis, name, "read"),
    }
    .caused_by(error)
}

/// Carries `error` through code that knows only [`io::Error`]; [`out_of_io`] gives it back.
pub(crate) fn into_io(error: Error) -> io::Error {
    io::Error::other(error)
}

/// The error that [`into_io`] wrapped, or what `otherwise` makes of an error that arose in between.
pub(crate) fn out_of_io(error: io::Error, otherwise: impl FnOnce(io::Error) -> Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(otherwise)
}
