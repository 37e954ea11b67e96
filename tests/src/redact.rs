//! Takes out of a program's output what differs from run to run.

use std::sync::LazyLock;

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
        (r"\b[0-9a-f]{32}\b", "[token]"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?(\.\d+)? UTC", "[time]"),
        (r#""(timestamp|at_time|last_updated)":"[^"]*""#, r#""$1":[time]"#),
        (r"(?m)^(  took +).+$", "$1[duration]"),
        (r#""took_ms":\d+"#, r#""took_ms":[duration]"#),
        (r#""bytes":\{[^}]*\}"#, r#""bytes":[bytes]"#),
        (r"\b\d+(\.\d+)? (bytes|kB|MB|GB)\b", "[bytes]"),
        (r"127\.0\.0\.1:\d+", "[server]"),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is a regular expression"), with))
    .into()
});

/// `text` with times, durations, tokens, file ids and sizes replaced by their names.
#[must_use]
pub fn redact(text: &str) -> String {
    RULES.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}
