//! Takes out of a program's output what differs from run to run.

use std::sync::LazyLock;

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
        (r"\b[0-9a-f]{32}\b", "[token]"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?(\.\d+)? UTC", "[time]"),
        (r#"("(?:time|timestamp|at_time|created_at|at)": ?)("[^"]*"|\d+)"#, "$1[time]"),
        (r"(took +)\S+( (ms|s|min|m|h))?", "$1[duration]"),
        (r#"("(?:took|took_ms|took_s|seconds|duration_ms)": ?)[\d.]+"#, "$1[duration]"),
        (r"127\.0\.0\.1:\d+", "[server]"),
        (r"\b\d+(\.\d+)? ?(B|KiB|MiB|GiB|kB|MB|GB)\b", "[bytes]"),
        (r#"("(?:read|written)": ?)\d+(, ?"written"|\})"#, "$1[bytes]$2"),
        (r#""written": ?\d+"#, r#""written": [bytes]"#),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is a regular expression"), with))
    .into()
});

/// `text` with times, durations, tokens, file ids and sizes replaced by their names.
#[must_use]
pub fn redact(text: &str) -> String {
    RULES.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}
