//! The one error of the library, by what its caller must do next.

use std::error::Error as StdError;
use std::fmt;

/// What a caller can do about an [`Error`].
///
/// The kind is the contract; messages are for people and may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The rows are wrong for this table or this contract. Nothing changed; the same load fails again.
    Refused,
    /// The request, the configuration or the credentials are wrong. Nothing changed.
    Invalid,
    /// The table uses something this library does not write or read rightly. Nothing changed.
    Unsupported,
    /// Storage or contention got in the way. Nothing changed; the same load may succeed later.
    Retryable,
    /// It could not be learned whether the load landed. Run it again with the same identity.
    Unknown,
    /// The caller stopped the load. Nothing changed.
    Interrupted,
    /// A defect of this library.
    Internal,
}

impl ErrorKind {
    /// Whether running the same load again, unchanged, can succeed.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Retryable | Self::Unknown | Self::Interrupted)
    }
}

/// An error: one sentence that names the table or file and what is wrong, with samples and a hint apart.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Vec<String>,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything fallible here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, message) })*
    };
}

impl Error {
    /// An error of `kind`; `message` is one sentence in lower case that names the table or file.
    ///
    /// What it quotes may be anybody's: it is brought on one line of a length that can be read, as evidence and hint are.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: line(message.into()), details: Vec::new(), hint: None, source: None }
    }

    constructors! {
        /// The data is wrong.
        refused => Refused;
        /// The request or the configuration is wrong.
        invalid => Invalid;
        /// The table uses a feature that is not supported.
        unsupported => Unsupported;
        /// Storage or contention got in the way; nothing changed.
        retryable => Retryable;
        /// It is not known whether the load landed.
        unknown => Unknown;
        /// A defect of this library.
        internal => Internal;
    }

    /// Adds one line of evidence: a file and line, a key, a value.
    #[must_use]
    pub fn detail(mut self, evidence: impl Into<String>) -> Self {
        self.details.push(line(evidence.into()));
        self
    }

    /// Adds several lines of evidence.
    #[must_use]
    pub fn details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(lines.into_iter().map(line));
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(line(hint.into()));
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Puts the table or file that it is about before the sentence.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = line(format!("{what}: {}", self.message));
        self
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence, without evidence and hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The evidence, a line each.
    #[must_use]
    pub fn evidence(&self) -> &[String] {
        &self.details
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Characters of a line, at most.
const LONGEST_LINE: usize = 1_000;

/// The text on one line: what breaks lines is a space, other control characters are spelt out, and the middle of what is
/// longer than [`LONGEST_LINE`] is left out, since a sentence tells what is wrong at its end as well as at its start.
fn line(text: String) -> String {
    let mut line = text;
    if line.contains(char::is_control) {
        let mut spelt = String::with_capacity(line.len());
        for letter in line.chars() {
            match letter {
                '\n' | '\r' | '\t' => spelt.push(' '),
                _ if letter.is_control() => spelt.extend(letter.escape_unicode()),
                _ => spelt.push(letter),
            }
        }
        line = spelt;
    }
    // Bytes are never fewer than characters.
    if line.len() <= LONGEST_LINE || line.chars().count() <= LONGEST_LINE {
        return line;
    }
    let start = line.chars().take(LONGEST_LINE * 2 / 3);
    let end: Vec<char> = line.chars().rev().take(LONGEST_LINE / 3).collect();
    start.chain([' ', '…', ' ']).chain(end.into_iter().rev()).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_quoted_an_error_is_lines_that_can_be_read() {
        let error = Error::invalid("order 'a\nb\0\u{1b}[31m' is odd").detail("x\r\ny").hint("say\tso").about("t\nu");
        assert_eq!(error.message(), "t u: order 'a b\\u{0}\\u{1b}[31m' is odd");
        assert_eq!(error.evidence(), ["x  y"]);
        assert_eq!(error.advice(), Some("say so"));

        let long = Error::invalid(format!("order '{}' is odd", "é".repeat(100_000))).about("t");
        assert!(long.message().starts_with("t: order 'éé"), "{long}");
        assert!(long.message().ends_with("éé' is odd"), "{long}");
        assert!(long.message().chars().count() <= LONGEST_LINE + 3);
        let fits = "x".repeat(LONGEST_LINE);
        assert_eq!(Error::invalid(fits.clone()).message(), fits);
    }
}
