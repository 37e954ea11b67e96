//! JSON text as tokens that keep their spelling.
//!
//! `serde_json` hands numbers out as `u64`, `i64` or `f64`, which loses decimal digits, and `arrow-json` takes strings
//! for numbers and the last of repeated keys. Here a number stays the text it is until its column's type is known.

use std::borrow::Cow;
use std::fmt;

use crate::prepare::text::Why;

/// Text that is not JSON, from this byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) at: usize,
}

/// One JSON value, spelled as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Json<'a> {
    Null,
    Boolean(bool),
    Number(&'a str),
    String(JsonString<'a>),
    /// Its whole text, braces included; what is within is not checked yet.
    Object(&'a str),
    /// Its whole text, brackets included; what is within is not checked yet.
    Array(&'a str),
}

impl Json<'_> {
    /// Why this value does not fit where one of another kind is asked for.
    pub(super) fn misplaced(self) -> Why {
        match self {
            Self::Null => Why::IsNull,
            Self::Boolean(_) => Why::IsBoolean,
            Self::Number(_) => Why::IsNumber,
            Self::String(_) => Why::IsString,
            Self::Object(_) => Why::IsObject,
            Self::Array(_) => Why::IsArray,
        }
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Number(text) | Self::Object(text) | Self::Array(text) => f.write_str(text),
            Self::String(text) => f.write_str(text.quoted),
        }
    }
}

/// A JSON string, its escapes not yet undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JsonString<'a> {
    quoted: &'a str,
    has_escapes: bool,
}

impl<'a> JsonString<'a> {
    /// The characters it stands for.
    ///
    /// # Errors
    /// For an escape that JSON does not have, and for half of a surrogate pair.
    pub(super) fn text(self) -> Result<Cow<'a, str>, Why> {
        if self.has_escapes {
            serde_json::from_str(self.quoted).map(Cow::Owned).map_err(|_| Why::BadEscape)
        } else {
            let end = self.quoted.len().saturating_sub(1);
            Ok(Cow::Borrowed(self.quoted.get(1..end).unwrap_or_default()))
        }
    }
}

/// Takes tokens off a text.
#[derive(Debug, Clone)]
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed<T>(&self) -> Result<T, Malformed> {
        Err(Malformed { at: self.at })
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Takes `byte`, with any space before it, if it comes next.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let comes = self.peek() == Some(byte);
        self.at += usize::from(comes);
        comes
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.takes(byte) { Ok(()) } else { self.malformed() }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, Malformed> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.malformed();
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> Result<Json<'a>, Malformed> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => Ok(Json::Object(self.nested()?)),
            Some(b'[') => Ok(Json::Array(self.nested()?)),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.malformed(),
        }
    }

    fn string(&mut self) -> Result<JsonString<'a>, Malformed> {
        self.skip_space();
        let start = self.at;
        if self.peek() != Some(b'"') {
            return self.malformed();
        }
        self.at += 1;
        let mut has_escapes = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 2;
                }
                Some(0..=0x1F) | None => return self.malformed(),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(JsonString { quoted: self.since(start), has_escapes })
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.malformed() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json<'a>, Malformed> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Json::Number(self.since(start)))
    }

    /// Takes an object or array up to the bracket that closes it.
    fn nested(&mut self) -> Result<&'a str, Malformed> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(_) => {}
                None => return self.malformed(),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(self.since(start));
            }
        }
    }

    /// Whether another item comes in an object or array that `close` closes; with nothing but space after that.
    fn goes_on(&mut self, close: u8, is_first: bool) -> Result<bool, Malformed> {
        if self.takes(close) {
            self.skip_space();
            return if self.at == self.text.len() { Ok(false) } else { self.malformed() };
        }
        if !is_first {
            self.expect(b',')?;
        }
        Ok(true)
    }
}

/// Hands each member of the object that `text` is to `take`, until that says stop.
///
/// # Errors
/// The inner one where `text` is not one JSON object with nothing after it; the outer one from `take`.
pub(super) fn members<'a, E>(
    text: &'a str,
    mut take: impl FnMut(JsonString<'a>, Json<'a>) -> Result<(), E>,
) -> Result<Result<(), Malformed>, E> {
    let mut scanner = Scanner { text, at: 0 };
    let mut is_first = true;
    let mut next = || -> Result<Option<(JsonString<'a>, Json<'a>)>, Malformed> {
        if is_first {
            scanner.expect(b'{')?;
        }
        if !scanner.goes_on(b'}', is_first)? {
            return Ok(None);
        }
        is_first = false;
        let key = scanner.string()?;
        scanner.expect(b':')?;
        Ok(Some((key, scanner.value()?)))
    };
    loop {
        match next() {
            Ok(Some((key, value))) => take(key, value)?,
            Ok(None) => return Ok(Ok(())),
            Err(malformed) => return Ok(Err(malformed)),
        }
    }
}

/// Hands each element of the array that `text` is to `take`.
///
/// # Errors
/// Where `text` is not one JSON array with nothing after it.
pub(super) fn elements<'a>(text: &'a str, mut take: impl FnMut(Json<'a>)) -> Result<(), Malformed> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.expect(b'[')?;
    let mut is_first = true;
    while scanner.goes_on(b']', is_first)? {
        is_first = false;
        take(scanner.value()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks a value all the way down.
    fn is_json(value: Json<'_>) -> bool {
        match value {
            Json::String(text) => text.text().is_ok(),
            Json::Object(text) => matches!(
                members(text, |key, value| if key.text().is_ok() && is_json(value) { Ok(()) } else { Err(()) }),
                Ok(Ok(()))
            ),
            Json::Array(text) => {
                let mut good = true;
                elements(text, |value| good &= is_json(value)).is_ok() && good
            }
            Json::Null | Json::Boolean(_) | Json::Number(_) => true,
        }
    }

    fn is_object(text: &str) -> bool {
        text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') && is_json(Json::Object(text))
    }

    #[test]
    fn takes_what_json_is() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1,"b":-0.5e+10,"c":[],"d":[1,[2,{}],"x]"],"e":{"f":null},"g":true,"h":"\u00e9\"\\"}"#,
        ] {
            assert!(is_object(text), "{text}");
        }
    }

    #[test]
    fn denies_what_json_is_not() {
        for text in [
            "",
            "{",
            "}",
            "{}}",
            "{} {}",
            "[1]",
            "1",
            "null",
            "{a:1}",
            "{'a':1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":+1}"#,
            r#"{"a":1e}"#,
            r#"{"a":NaN}"#,
            r#"{"a":tru}"#,
            r#"{"a":truex}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":[1}}"#,
            r#"{"a":"x}"#,
            "{\"a\":\"\t\"}",
            r#"{"a":"\x"}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":1 "b":2}"#,
        ] {
            assert!(!is_object(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in r#"\{("a"|"\\u0041"|[{}\[\]":, ]|[0-9eE.+-]|null|true|\\|é){0,12}\}"#) {
            let is = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
            // serde_json also denies numbers beyond any double.
            prop_assert!(is_object(&text) == is || text.contains(['e', 'E']), "{}", text);
        }
    }
}
