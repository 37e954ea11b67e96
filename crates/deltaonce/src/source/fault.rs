//! What went wrong while an input was read, as the library's error.

use std::io;

use crate::error::Error;

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
    use object_store::Error as Store;
    match &error {
        Store::NotFound { .. } => Error::invalid(format!("{name} does not exist")),
        Store::PermissionDenied { .. } => Error::invalid(format!("{name} may not be read: permission denied")),
        Store::Unauthenticated { .. } => {
            Error::invalid(format!("{name} may not be read: the credentials are not accepted"))
        }
        _ => Error::retryable(format!("{name} cannot be read")).detail(error.to_string()),
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
