//! Makes bad inputs of good ones: in their bytes, in their words, and in the values of JSON.

use serde_json::Value;

use super::random::Random;

/// What a mutated value of JSON becomes, as raw text: some of it no JSON at all.
const VALUES: [&str; 30] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "7",
    "0.1",
    "-0.0",
    "1e999",
    "1E-400",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775809",
    "340282366920938463463374607431768211456",
    "NaN",
    "Infinity",
    "\"NaN\"",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"1\"",
    "\"\u{202e}\u{feff}é\"",
    "[]",
    "{}",
    "[null,{}]",
    "{\"a\":[{\"b\":null}]}",
    "\"true\"",
];

/// Paths that must not be followed out of a table's folder, or not at all.
pub(super) const PATHS: [&str; 27] = [
    "../outside/kept.parquet",
    "%2e%2e/outside/kept.parquet",
    "..%2Foutside%2Fkept.parquet",
    "x/../../outside/kept.parquet",
    "./../outside/kept.parquet",
    "%252e%252e/outside/kept.parquet",
    "..\\outside\\kept.parquet",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "FILE:///etc/passwd",
    "s3://other/kept.parquet",
    "S3://other/kept.parquet",
    "s3:other",
    "abfss://c@a.dfs.core.windows.net/x",
    "http://[::1",
    "data:text/plain,x",
    "C:\\kept.parquet",
    "",
    ".",
    "a//b.parquet",
    "%zz",
    "%00",
    "_delta_log/00000000000000000000.json",
    "?x=1#y",
    "\u{0}",
];

/// Spoils bytes: cuts, flips, repeats, drops or puts in.
pub(super) fn bytes(random: &mut Random, data: &mut Vec<u8>) {
    let at = random.below(data.len() + 1);
    let length = random.length(200).min(data.len() - at);
    match random.below(8) {
        0 => data.truncate(at),
        1 => drop(data.drain(at..at + length)),
        2 => {
            let again = data[at..at + length].to_vec();
            data.splice(at..at, again);
        }
        3 if at < data.len() => data[at] ^= 1 << random.below(8),
        4 if at < data.len() => data[at] = random.next() as u8,
        5 => drop(data.splice(
            at..at,
            [b"\0", b"\n", b"\r", b"\"", b"'", b",", b"{", b"\xff", b"\xc3"][random.below(9)].to_vec(),
        )),
        6 => {
            let to = random.below(data.len() + 1);
            let moved = data[at..at + length].to_vec();
            data.splice(to..to, moved);
        }
        _ => drop(data.splice(at..at, vec![*random.pick(b"\"'([{,0 -"); random.length(3_000)])),
    }
}

/// Spoils text in its words and signs, some of them from `words`.
pub(super) fn text(random: &mut Random, text: &mut String, words: &[&str]) {
    let mut parts: Vec<String> = split(text);
    let at = random.below(parts.len() + 1);
    let word = (*random.pick(words)).to_owned();
    match random.below(9) {
        0 => parts.insert(at, word),
        1 if at < parts.len() => parts[at] = word,
        2 if at < parts.len() => drop(parts.remove(at)),
        3 if at < parts.len() => {
            let again = parts[at].clone();
            parts.insert(at, again);
        }
        4 if at < parts.len() => {
            let other = random.below(parts.len());
            parts.swap(at, other);
        }
        5 => parts.truncate(at),
        6 => {
            let (open, close) = *random.pick(&[
                ("(", ")"),
                ("NOT (", ")"),
                ("- (", ")"),
                ("array<", ">"),
                ("struct<a: ", ">"),
                ("lower(", ")"),
                ("CAST(", " AS STRING)"),
                ("CASE WHEN ", " THEN 1 END"),
                ("[", "]"),
                ("{\"type\":", "}"),
            ]);
            let times = *random.pick(&[1, 2, 40, 60, 200, 3_000, 60_000]);
            let end = at + random.length(20).min(parts.len() - at);
            parts.insert(end, close.repeat(times));
            parts.insert(at, open.repeat(times));
        }
        7 if at < parts.len() => {
            let end = at + random.length(6).min(parts.len() - at);
            let times = *random.pick(&[2, 30, 500, 5_000]);
            let again = parts[at..end].concat().repeat(times);
            parts.insert(at, again);
        }
        _ => {
            let mut bytes = text.clone().into_bytes();
            self::bytes(random, &mut bytes);
            *text = String::from_utf8_lossy(&bytes).into_owned();
            return;
        }
    }
    *text = parts.concat();
}

/// Words, and signs and spaces one by one.
fn split(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in text.chars() {
        let is_word = letter.is_alphanumeric() || letter == '_';
        match parts.last_mut() {
            Some(last) if is_word && in_word => last.push(letter),
            _ => parts.push(letter.to_string()),
        }
        in_word = is_word;
    }
    parts
}

/// Spoils one value of a JSON text somewhere within; the text may be no JSON after it. Text that is none already is
/// spoilt in its bytes.
pub(super) fn json(random: &mut Random, text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        let mut bytes = text.as_bytes().to_vec();
        self::bytes(random, &mut bytes);
        return String::from_utf8_lossy(&bytes).into_owned();
    };
    let target = random.below(count(&value));
    let raw = raw(random);
    let mut seen = 0;
    change(random, &mut value, target, &mut seen);
    value.to_string().replace(&format!("\"{HERE}\""), &raw)
}

/// Stands where raw text goes.
const HERE: &str = "<raw text goes here>";

fn raw(random: &mut Random) -> String {
    match random.below(12) {
        0 => {
            let depth = *random.pick(&[100, 127, 128, 1_000, 100_000]);
            if random.once_in(2) {
                "[".repeat(depth) + &"]".repeat(depth)
            } else {
                "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)
            }
        }
        1 => format!("\"{}\"", "x".repeat(*random.pick(&[300, 5_000, 100_000]))),
        2..=4 => Value::from(*random.pick(&PATHS)).to_string(),
        _ => (*random.pick(&VALUES)).to_owned(),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::String(text) => nested(text).map_or(0, |value| count(&value)),
        _ => 0_usize,
    }
}

/// JSON within a JSON string: schemas and statistics.
fn nested(text: &str) -> Option<Value> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok())?
}

fn change(random: &mut Random, value: &mut Value, target: usize, seen: &mut usize) {
    if *seen == target {
        *seen += 1;
        match value {
            Value::Object(fields) if !fields.is_empty() && random.once_in(2) => {
                let key = random.pick(&fields.keys().cloned().collect::<Vec<_>>()).clone();
                let taken = fields.remove(&key);
                if random.once_in(2) {
                    fields.insert(random.pick(&["x", "", "PATH", "a.b"]).to_string() + &key, taken.unwrap_or_default());
                }
            }
            Value::Array(items) if !items.is_empty() && random.once_in(2) => {
                let again = random.pick(items).clone();
                items.push(again);
            }
            Value::Number(number) if random.once_in(3) => {
                let number = number.as_i64().unwrap_or_default();
                *value = number.wrapping_add(random.within(-2, 2)).wrapping_mul(random.within(-1, 1_000)).into();
            }
            other => *other = HERE.into(),
        }
        return;
    }
    *seen += 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| change(random, item, target, seen)),
        Value::Object(fields) => fields.values_mut().for_each(|field| change(random, field, target, seen)),
        Value::String(text) => {
            if let Some(mut inner) = nested(text) {
                let before = *seen;
                change(random, &mut inner, target, seen);
                if (before..*seen).contains(&target) {
                    // What goes in is escaped with the rest of the inner text.
                    let raw = raw(random);
                    *text = inner.to_string().replace(&format!("\"{HERE}\""), &raw);
                }
            }
        }
        _ => {}
    }
}
