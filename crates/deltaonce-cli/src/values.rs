//! Values as people write them on a command line.

use std::time::Duration;

use deltaonce::{Identity, Scratch};

/// Reads `KEY=VALUE`; only the first `=` splits.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("it is not KEY=VALUE".to_owned()),
    }
}

/// Reads `APP=VERSION`; the last `=` splits, so that an app id may hold one.
pub(crate) fn identity(text: &str) -> Result<Identity, String> {
    let (app_id, number) = text.rsplit_once('=').ok_or("it is not APP=VERSION")?;
    Ok(Identity { app_id: name(app_id)?, version: version(number)? })
}

/// Reads a txnVersion: a whole number from 0.
pub(crate) fn version(text: &str) -> Result<i64, String> {
    text.parse()
        .ok()
        .filter(|version| *version >= 0)
        .ok_or_else(|| format!("'{text}' is not a whole number from 0 to {}", i64::MAX))
}

/// Reads a name that must say something.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Reads one column of a list.
pub(crate) fn column(text: &str) -> Result<String, String> {
    name(text.trim()).map_err(|_| "a column's name is missing".to_owned())
}

/// Reads `2m`, `90s`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "it is not a time like 90s, 2m or 1h30m".to_owned())
}

/// Reads an amount of memory.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    Scratch::memory_of(text).map_err(|_| "it is not a size of at least 1 MiB, such as 512MiB or 2GiB".to_owned())
}

/// Reads `COLUMN=EXPRESSION`; the first `=` splits, so that an expression may compare.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    pair(text).map_err(|_| "it is not COLUMN=EXPRESSION".to_owned())
}

/// Reads a CSV delimiter: one ASCII character, `\t` or `tab`.
pub(crate) fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => ascii(text).ok_or_else(|| "it is not one ASCII character, \\t or tab".to_owned()),
    }
}

/// How values that hold the delimiter are written in a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    /// Between two of this character.
    Character(u8),
    /// Not at all.
    None,
}

/// Reads a CSV quote: one ASCII character or `none`.
pub(crate) fn quote(text: &str) -> Result<Quote, String> {
    match text {
        "none" => Ok(Quote::None),
        _ => ascii(text).map(Quote::Character).ok_or_else(|| "it is not one ASCII character or none".to_owned()),
    }
}

fn ascii(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Some(*byte),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_id_may_hold_an_equals_sign() {
        let read = |text| identity(text).map(|identity| (identity.app_id, identity.version));
        assert_eq!(read("orders=42"), Ok(("orders".to_owned(), 42)));
        assert_eq!(read("topic=orders/0=7"), Ok(("topic=orders/0".to_owned(), 7)));
        assert_eq!(read("orders"), Err("it is not APP=VERSION".to_owned()));
        assert_eq!(read("=7"), Err("it is empty".to_owned()));
        for wrong in ["orders=-1", "orders=", "orders=1.0", "orders=9223372036854775808"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_may_hold_an_equals_sign_and_may_be_empty() {
        assert_eq!(pair("AWS_SECRET_ACCESS_KEY=a=b=="), Ok(("AWS_SECRET_ACCESS_KEY".to_owned(), "a=b==".to_owned())));
        assert_eq!(pair("k="), Ok(("k".to_owned(), String::new())));
        assert!(pair("k").is_err());
        assert!(pair("=v").is_err());
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("120").is_err());
        assert!(duration("-1s").is_err());
    }

    #[test]
    fn csv_characters_are_single_bytes() {
        assert_eq!(delimiter("\\t"), Ok(b'\t'));
        assert_eq!(delimiter("\t"), Ok(b'\t'));
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert_eq!(delimiter(";"), Ok(b';'));
        for wrong in ["", ";;", "§", "\n"] {
            assert!(delimiter(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(quote("none"), Ok(Quote::None));
        assert_eq!(quote("'"), Ok(Quote::Character(b'\'')));
        assert!(quote("").is_err());
    }
}
