//! Numbers, times and names as people read them.

use std::fmt::Display;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use deltaonce::ErrorKind;

/// `12,041`
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `no rows`, `1 row`, `12,041 rows`
pub(super) fn count(n: u64, noun: &str) -> String {
    match n {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        n => format!("{} {noun}s", number(n)),
    }
}

/// `312 bytes`, `1.2 MB`; units of a thousand.
pub(super) fn bytes(n: u64) -> String {
    let mut unit = "";
    let mut whole = n;
    let mut tenths = 0;
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if whole < 1000 {
            break;
        }
        tenths = whole % 1000 / 100;
        whole /= 1000;
        unit = larger;
    }
    if unit.is_empty() { count(n, "byte") } else { format!("{whole}.{tenths} {unit}") }
}

/// `35 ms`, `0.4 s`, `2 min 3 s`
pub(super) fn duration(took: Duration) -> String {
    match took.as_millis() {
        ms @ 0..100 => format!("{ms} ms"),
        ms @ 100..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60),
    }
}

/// `2026-10-05 04:12 UTC`, from milliseconds since the epoch; none past the calendar's end.
pub(super) fn minute(ms: i64) -> Option<String> {
    time(ms).map(|time| time.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// `2026-10-05 04:12:33 UTC`
pub(super) fn second(ms: i64) -> Option<String> {
    time(ms).map(|time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// `2026-10-05T04:12:33.120Z`
pub(super) fn timestamp(ms: i64) -> Option<String> {
    time(ms).map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn time(ms: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(ms)
}

/// `a=1, b=2`
pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// The word that an error of this kind begins with.
pub(super) fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Refused => "refused",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Retryable => "retryable",
        ErrorKind::Unknown => "unknown",
        ErrorKind::Interrupted => "interrupted",
        _ => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        let read: Vec<_> = [0, 999, 1000, 12041, 1_234_567].into_iter().map(number).collect();
        assert_eq!(read, ["0", "999", "1,000", "12,041", "1,234,567"]);
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([0, 1, 2].map(|n| count(n, "row")), ["no rows", "1 row", "2 rows"]);
    }

    #[test]
    fn sizes_and_times_have_units() {
        let sizes = [0, 1, 999, 1000, 12_399_999, u64::MAX].map(bytes);
        assert_eq!(sizes, ["no bytes", "1 byte", "999 bytes", "1.0 kB", "12.3 MB", "18446.7 PB"]);
        let times = [7, 99, 100, 449, 59_999, 60_000, 3_723_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(times, ["7 ms", "99 ms", "0.1 s", "0.4 s", "59.9 s", "1 min 0 s", "62 min 3 s"]);
    }

    #[test]
    fn moments_are_in_utc() {
        let ms = 1_791_173_553_120;
        assert_eq!(minute(ms).as_deref(), Some("2026-10-05 04:12 UTC"));
        assert_eq!(second(ms).as_deref(), Some("2026-10-05 04:12:33 UTC"));
        assert_eq!(timestamp(ms).as_deref(), Some("2026-10-05T04:12:33.120Z"));
        assert_eq!(timestamp(i64::MAX), None);
    }
}
