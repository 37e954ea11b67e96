//! What a caught panic says.

use std::any::Any;

/// Its words.
#[must_use]
pub fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    words.unwrap_or("a panic without words").to_owned()
}
