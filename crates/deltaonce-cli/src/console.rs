//! The only writer to stdout and stderr.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use crate::args::Output;

/// Writes `text` to stdout. A reader that went away wanted no more: that is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes `text` and a line end to stderr; where stderr is gone there is nobody left to tell.
pub(crate) fn say(text: &str) {
    let text = text.trim_end();
    drop(writeln!(io::stderr().lock(), "{}", harmless(text)));
}

/// Says a load's warnings on stderr, unless the JSON document holds them.
pub(crate) fn warn(warnings: &[String], output: Output) {
    if output == Output::Text {
        for warning in warnings {
            say(&format!("warning: {warning}"));
        }
    }
}

/// Text without control characters other than line ends and tabs: what a table's log or a file holds must not move the
/// reader's cursor or colour the terminal.
fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if harmful(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\n\tö"), "a\\u{1b}[2Jb\\r\n\tö");
    }
}
