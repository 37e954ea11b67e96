//! A panic is a defect: it ends as an internal error in one sentence, not as a backtrace.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;

use deltaonce::{Error, ErrorKind, Result};

use crate::environment;

static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the first panic of any thread for the report instead of printing it; a developer's backtrace is printed still.
pub(crate) fn record() {
    install(environment::wants_backtrace());
}

fn install(loud: bool) {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if loud {
            default(info);
        }
        if let Ok(mut first) = FIRST.lock() {
            first.get_or_insert_with(|| sentence(info));
        }
    }));
}

/// Runs `work`; a panic in it becomes an internal error, and an internal error says which panic came before it.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = panic::catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::internal("the program met a defect of its own and stopped").hint(ADVICE)));
    let panicked = FIRST.lock().ok().and_then(|mut first| first.take());
    match (result, panicked) {
        (Err(error), Some(panic)) if error.kind() == ErrorKind::Internal => Err(error.detail(panic)),
        (result, _) => result,
    }
}

const ADVICE: &str = "report it with the command that was run; a load with an identity can be run again safely";

fn sentence(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    format!("panic{place}: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error_that_says_where() {
        // Loud, since the hook is the whole process's and other tests may fail.
        install(true);
        let result: Result<()> = caught(|| std::panic::panic_any("index out of step"));
        let error = result.expect_err("a panic is an error");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.evidence().len(), 1);
        assert!(error.evidence()[0].ends_with(": index out of step"), "{:?}", error.evidence());
    }
}
