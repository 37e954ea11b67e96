//! Which call a fault strikes, and how.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::Error;
use object_store::path::Path;

use super::plan::Call;

/// What a call asks of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Writing a whole object, with or without a condition.
    Put,
    /// Beginning an upload in parts.
    StartUpload,
    /// Writing one part.
    PutPart,
    /// Ending an upload, which makes the object visible.
    CompleteUpload,
    /// Giving an upload up.
    AbortUpload,
    /// Reading an object, ranges of it, or only its size.
    Get,
    /// Listing.
    List,
    /// Deleting one object.
    Delete,
    /// Copying an object; the path is the target's.
    Copy,
}

/// What becomes of a call that is answered with a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It never reached the store.
    Lost,
    /// The store carried it out; only the answer is false.
    Taken,
    /// The store carries it out later: right before the n-th call after it (1 is the very next), or when
    /// [`Plan::release_late`](super::Plan::release_late) says so. A zombie.
    Late(u64),
}

/// What the caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing came back in time.
    Timeout,
    /// The connection broke.
    Reset,
    /// An HTTP status, turned into the error that `object_store`'s S3 client makes of it: 404, 409, 412, 500, 503 …
    Status(u16),
    /// A local error, such as a full disk.
    Io(io::ErrorKind),
}

#[derive(Debug, thiserror::Error)]
#[error("HTTP status {0}, by plan of a test")]
struct StatusError(u16);

impl Answer {
    /// The error for a call on `path`; `creates` says that it was a put-if-absent.
    #[must_use]
    pub fn error(self, path: &Path, creates: bool) -> Error {
        let path = path.to_string();
        let status = match self {
            Self::Timeout => return generic(io::Error::from(io::ErrorKind::TimedOut)),
            Self::Reset => return generic(io::Error::from(io::ErrorKind::ConnectionReset)),
            Self::Io(io::ErrorKind::PermissionDenied) => {
                return Error::PermissionDenied {
                    path,
                    source: io::Error::from(io::ErrorKind::PermissionDenied).into(),
                };
            }
            Self::Io(kind) => return generic(io::Error::from(kind)),
            Self::Status(status) => status,
        };
        let source = Box::new(StatusError(status));
        match status {
            401 => Error::Unauthenticated { path, source },
            403 => Error::PermissionDenied { path, source },
            404 => Error::NotFound { path, source },
            409 => Error::AlreadyExists { path, source },
            304 | 412 if creates => Error::AlreadyExists { path, source },
            304 => Error::NotModified { path, source },
            412 => Error::Precondition { path, source },
            _ => generic(StatusError(status)),
        }
    }
}

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "fault", source: Box::new(source) }
}

/// Something a test does at a call.
pub(super) type Hook = Arc<dyn Fn(Call) -> BoxFuture<'static, ()> + Send + Sync>;

/// A rule: which calls it strikes and what happens then. A rule that only matches changes nothing.
///
/// Each rule counts the calls that match it from the moment it is added, and strikes the first of them unless
/// [`nth`](Self::nth), [`times`](Self::times) or [`always`](Self::always) say otherwise. Where several rules strike one
/// call, the one added first does.
#[derive(Clone)]
pub struct Rule {
    operation: Option<Operation>,
    path_part: String,
    first: u64,
    last: u64,
    pub(super) ignores_condition: bool,
    pub(super) fault: Option<(Effect, Answer)>,
    pub(super) before: Option<Hook>,
    pub(super) meanwhile: Option<Hook>,
}

impl Rule {
    /// Matches calls of one operation.
    #[must_use]
    pub fn on(operation: Operation) -> Self {
        Self { operation: Some(operation), ..Self::on_any() }
    }

    /// Matches all calls.
    #[must_use]
    pub fn on_any() -> Self {
        Self {
            operation: None,
            path_part: String::new(),
            first: 1,
            last: 1,
            ignores_condition: false,
            fault: None,
            before: None,
            meanwhile: None,
        }
    }

    /// Strikes the n-th call of any kind, from 1.
    #[must_use]
    pub fn call(n: u64) -> Self {
        Self::on_any().nth(n)
    }

    /// Matches only calls whose path holds `part`.
    #[must_use]
    pub fn path_containing(mut self, part: impl Into<String>) -> Self {
        self.path_part = part.into();
        self
    }

    /// Strikes from the n-th matching call on, from 1, as often as before.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.last = self.last.saturating_sub(self.first).saturating_add(n);
        self.first = n;
        self
    }

    /// Strikes `n` matching calls in a row.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        self.last = self.first.saturating_add(n).saturating_sub(1);
        self
    }

    /// Strikes every matching call from the first one that it strikes.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.last = u64::MAX;
        self
    }

    /// Answers the call falsely.
    #[must_use]
    pub fn fails(mut self, effect: Effect, answer: Answer) -> Self {
        self.fault = Some((effect, answer));
        self
    }

    /// Carries out a put-if-absent as a plain put, as stores do that do not know the condition.
    #[must_use]
    pub fn ignores_condition(mut self) -> Self {
        self.ignores_condition = true;
        self
    }

    /// Runs `hook` before the call takes effect. The call waits for it: so a test can hold a call back.
    #[must_use]
    pub fn before<F>(mut self, hook: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.before = Some(Arc::new(move |call| hook(call).boxed()));
        self
    }

    /// Runs `hook` after the call took effect (or was lost) and before it is answered: another writer's commit, say.
    #[must_use]
    pub fn meanwhile<F>(mut self, hook: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.meanwhile = Some(Arc::new(move |call| hook(call).boxed()));
        self
    }

    pub(super) fn matches(&self, operation: Operation, path: &Path) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation) && path.as_ref().contains(&self.path_part)
    }

    /// Whether it strikes the n-th call that matches it.
    pub(super) fn strikes(&self, n: u64) -> bool {
        (self.first..=self.last).contains(&n)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("operation", &self.operation)
            .field("path_part", &self.path_part)
            .field("calls", &(self.first..=self.last))
            .field("ignores_condition", &self.ignores_condition)
            .field("fault", &self.fault)
            .field("before", &self.before.is_some())
            .field("meanwhile", &self.meanwhile.is_some())
            .finish()
    }
}
