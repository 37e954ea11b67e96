//! Dates and times as text, by ISO 8601 as RFC 3339 narrows it.

use super::Why;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Whether a timestamp must say its offset from UTC or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// An instant: text without an offset could mean many.
    Required,
    /// A wall-clock time: an offset would be dropped.
    Forbidden,
}

impl Zone {
    /// What an Arrow timestamp type with or without a time zone asks for.
    pub(crate) fn of(zone: Option<&str>) -> Self {
        if zone.is_some() { Self::Required } else { Self::Forbidden }
    }
}

/// A number of exactly `N` digits.
#[inline]
fn fixed<const N: usize>(digits: [u8; N]) -> Option<i32> {
    let (mut value, mut all_digits) = (0, true);
    // All digits are looked at, good or not: there is nothing to predict, which is faster than to stop at the first.
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        all_digits &= digit <= 9;
        value = value * 10 + i32::from(digit);
    }
    all_digits.then_some(value)
}

/// Days since 1970-01-01 of a day in the proleptic Gregorian calendar, years 1 to 9999 as Delta has them.
#[inline]
fn days(year: i32, month: i32, day: i32) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if year < 1 || day < 1 || day > last {
        return None;
    }
    // Years are counted from March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    // 719,468 days lie between the first of March of year 0 and 1970-01-01.
    Some(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468)
}

#[inline]
fn date(text: [u8; 10], otherwise: Why) -> Result<i32, Why> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return Err(otherwise) };
    match (fixed([y1, y2, y3, y4]), fixed([m1, m2]), fixed([d1, d2])) {
        (Some(year), Some(month), Some(day)) => days(year, month, day).ok_or(Why::NoSuchDay),
        _ => Err(otherwise),
    }
}

/// `YYYY-MM-DD` as days since 1970-01-01.
pub(crate) fn date32(text: &str) -> Result<i32, Why> {
    let Ok(bytes) = <[u8; 10]>::try_from(text.as_bytes()) else {
        return Err(Why::unless_empty(text, Why::NotDate));
    };
    date(bytes, Why::NotDate)
}

/// `YYYY-MM-DD`, `T` or a space, `HH:MM:SS`, a fraction or none, an offset or none, as microseconds since 1970-01-01
/// (of UTC where the zone is required, of the wall clock where it is forbidden).
pub(crate) fn timestamp_micros(text: &str, zone: Zone) -> Result<i64, Why> {
    let not = Why::NotTimestamp;
    let Some((head, rest)) = text.as_bytes().split_first_chunk::<19>() else {
        return Err(Why::unless_empty(text, not));
    };
    let [y1, y2, y3, y4, c1, m1, m2, c2, d1, d2, b'T' | b' ', h1, h2, b':', n1, n2, b':', s1, s2] = *head else {
        return Err(not);
    };
    let days = date([y1, y2, y3, y4, c1, m1, m2, c2, d1, d2], not)?;
    let (Some(hour), Some(minute), Some(second)) = (fixed([h1, h2]), fixed([n1, n2]), fixed([s1, s2])) else {
        return Err(not);
    };
    if hour > 23 || minute > 59 || second > 59 {
        return Err(Why::NoSuchTime);
    }
    let (micros, rest) = fraction(rest)?;
    let seconds = i64::from(days) * SECONDS_PER_DAY + i64::from(hour * 3_600 + minute * 60 + second);
    match (zone, rest) {
        (Zone::Forbidden, []) => Ok(seconds * MICROS_PER_SECOND + micros),
        (Zone::Forbidden, rest) => Err(offset(rest).map_or(not, |_| Why::HasOffset)),
        (Zone::Required, []) => Err(Why::NoOffset),
        (Zone::Required, rest) => {
            let offset = offset(rest).ok_or(not)?;
            Ok((seconds - offset) * MICROS_PER_SECOND + micros)
        }
    }
}

/// Reads `.digits`, if there, as microseconds, and gives what follows.
fn fraction(text: &[u8]) -> Result<(i64, &[u8]), Why> {
    let [b'.', text @ ..] = text else { return Ok((0, text)) };
    // Microseconds and then something else, most times.
    if let Some((digits, rest)) = text.split_first_chunk::<6>()
        && !matches!(rest, [b'0'..=b'9', ..])
        && let Some(micros) = fixed(*digits)
    {
        return Ok((i64::from(micros), rest));
    }
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err(Why::NotTimestamp);
    }
    let mut micros = 0;
    for place in 0..digits.len().max(6) {
        let digit = digits.get(place).map_or(0, |byte| i64::from(byte - b'0'));
        if place < 6 {
            micros = micros * 10 + digit;
        } else if digit != 0 {
            return Err(Why::FinerThanMicros);
        }
    }
    Ok((micros, rest))
}

/// `Z`, `±HH:MM`, `±HHMM` or `±HH`, up to 18 hours either way, as seconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (east, hours, minutes) = match *text {
        [b'Z'] => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, fixed([h1, h2])?, fixed([m1, m2])?),
        [sign, h1, h2] => (sign, fixed([h1, h2])?, 0),
        _ => return None,
    };
    let seconds = hours * 3_600 + minutes * 60;
    if minutes > 59 || seconds > 18 * 3_600 {
        return None;
    }
    match east {
        b'+' => Some(i64::from(seconds)),
        b'-' => Some(i64::from(-seconds)),
        _ => None,
    }
}
