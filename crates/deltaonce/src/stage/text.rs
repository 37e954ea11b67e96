//! Values as the log writes them, where statistics and partition values agree.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Timelike};

/// Days from the first day of the common era to the Unix epoch, as chrono counts them.
const EPOCH_FROM_CE: i32 = 719_163;

/// `YYYY-MM-DD`; none outside the years 1 to 9999, which readers do not agree on how to write.
pub(super) fn date(days: i32) -> Option<String> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_FROM_CE)?)?;
    written_alike(date.year()).then(|| day(date))
}

/// A moment in microseconds since the epoch, as a calendar date and time; none outside the years 1 to 9999.
pub(super) fn date_time(micros: i64) -> Option<NaiveDateTime> {
    let moment = DateTime::from_timestamp_micros(micros)?.naive_utc();
    written_alike(moment.year()).then_some(moment)
}

/// `YYYY-MM-DD`.
pub(super) fn day(date: impl Datelike) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

/// `HH:MM:SS`.
pub(super) fn time(time: impl Timelike) -> String {
    format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
}

fn written_alike(year: i32) -> bool {
    (1..=9999).contains(&year)
}

/// A decimal in plain notation with exactly `scale` digits after the point; every digit is kept.
pub(super) fn decimal(unscaled: i128, scale: i8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(scale) => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{fraction}")
        }
        Err(_) => format!("{sign}{digits}{}", "0".repeat(usize::from(scale.unsigned_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_every_digit() {
        assert_eq!(decimal(-1, 18), "-0.000000000000000001");
        assert_eq!(decimal(0, 2), "0.00");
        assert_eq!(decimal(99_999, 2), "999.99");
        assert_eq!(decimal(-120, 0), "-120");
        assert_eq!(decimal(12, -3), "12000");
        assert_eq!(
            decimal(12_345_678_901_234_567_890_123_456_789_012_345_678, 18),
            "12345678901234567890.123456789012345678"
        );
    }

    #[test]
    fn dates_outside_four_digit_years_have_no_text() {
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        assert_eq!(date(-719_162).as_deref(), Some("0001-01-01"));
        assert_eq!(date(2_932_896).as_deref(), Some("9999-12-31"));
        for days in [-719_163, 2_932_897, i32::MIN, i32::MAX] {
            assert_eq!(date(days), None, "{days}");
        }
    }
}
