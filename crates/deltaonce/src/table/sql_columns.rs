//! A column list in SQL as Spark writes it: `id bigint not null, tags array<string> comment 'free text'`.

use std::collections::HashMap;

use deltalake::kernel::{ArrayType, DataType, MapType, StructField, StructType};

use super::columns::NESTING;
use crate::error::{Error, Result};

/// Reads a column list.
///
/// # Errors
/// `Invalid`, naming the column and the character (from 1) where reading stopped.
pub(crate) fn parse(text: &str) -> Result<StructType> {
    let mut reader = Reader { tokens: tokens(text)?, next: 0, column: String::new(), depth: 0 };
    let columns = reader.columns(&Token::End)?;
    reader.expect(&Token::End)?;
    Ok(columns)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Text(String),
    Sign(char),
    End,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Quoted(name) => format!("`{name}`"),
            Self::Text(text) => format!("the text '{text}'"),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end".into(),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let start = at + 1;
        match letter {
            _ if letter.is_whitespace() => at += 1,
            _ if letter.is_alphanumeric() || letter == '_' => {
                let word: String = letters.iter().skip(at).take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                at += word.chars().count();
                found.push((start, Token::Word(word)));
            }
            '`' | '\'' | '"' => {
                let (inner, end) = quoted(&letters, at).ok_or_else(|| {
                    Error::invalid(format!("the schema's quote at character {start} is never closed"))
                })?;
                at = end;
                found.push((start, if letter == '`' { Token::Quoted(inner) } else { Token::Text(inner) }));
            }
            sign => {
                at += 1;
                found.push((start, Token::Sign(sign)));
            }
        }
    }
    found.push((letters.len() + 1, Token::End));
    Ok(found)
}

/// What stands between the quote at `start` and its partner, and where reading goes on; a doubled quote is one, and in
/// text a backslash takes the next letter as it is.
fn quoted(letters: &[char], start: usize) -> Option<(String, usize)> {
    let quote = *letters.get(start)?;
    let mut inner = String::new();
    let mut at = start + 1;
    loop {
        let letter = *letters.get(at)?;
        if letter == quote && letters.get(at + 1) == Some(&quote) {
            inner.push(quote);
            at += 2;
        } else if letter == quote {
            return Some((inner, at + 1));
        } else if letter == '\\' && quote != '`' {
            inner.push(*letters.get(at + 1)?);
            at += 2;
        } else {
            inner.push(letter);
            at += 1;
        }
    }
}

struct Reader {
    tokens: Vec<(usize, Token)>,
    next: usize,
    column: String,
    /// How many types are open around the one that is read.
    depth: usize,
}

impl Reader {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    /// An error at the token that comes next.
    fn wrong(&self, what: &str) -> Error {
        let at = self.tokens.get(self.next).or(self.tokens.last()).map_or(1, |(at, _)| *at);
        let column = if self.column.is_empty() { String::new() } else { format!(", column '{}'", self.column) };
        Error::invalid(format!("schema{column}, character {at}: {what}"))
            .hint("write columns as in order_id bigint not null, amount decimal(12,2), tags array<string>")
    }

    fn expect(&mut self, token: &Token) -> Result<()> {
        if self.peek() == token {
            self.next += 1;
            return Ok(());
        }
        Err(self.wrong(&format!("expected {}, found {}", token.shown(), self.peek().shown())))
    }

    fn skip(&mut self, token: &Token) -> bool {
        let there = self.peek() == token;
        self.next += usize::from(there);
        there
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word));
        self.next += usize::from(there);
        there
    }

    /// Columns up to `end`, which is left to be read.
    fn columns(&mut self, end: &Token) -> Result<StructType> {
        let outer = std::mem::take(&mut self.column);
        let mut columns: Vec<StructField> = Vec::new();
        let mut names: HashMap<String, String> = HashMap::new();
        loop {
            self.column.clone_from(&outer);
            let start = self.next;
            let name = match self.take() {
                Token::Word(name) | Token::Quoted(name) => name,
                found => {
                    self.next = start;
                    return Err(self.wrong(&format!("expected a column name, found {}", found.shown())));
                }
            };
            self.column = if outer.is_empty() { name.clone() } else { format!("{outer}.{name}") };
            if let Some(twin) = names.insert(name.to_lowercase(), name.clone()) {
                self.next = start;
                return Err(self.wrong(&format!("the column '{twin}' is there already")));
            }
            columns.push(self.column(name)?);
            if !self.skip(&Token::Sign(',')) {
                if self.peek() != end {
                    return Err(self.wrong(&format!("expected ',' or {}, found {}", end.shown(), self.peek().shown())));
                }
                break;
            }
        }
        self.column = outer;
        StructType::try_new(columns).map_err(|e| self.wrong(&e.to_string()))
    }

    fn column(&mut self, name: String) -> Result<StructField> {
        self.skip(&Token::Sign(':'));
        let data_type = self.data_type()?;
        let mut nullable = true;
        let mut comment = None;
        loop {
            if self.skip_word("not") {
                if !self.skip_word("null") {
                    return Err(self.wrong(&format!("expected null after not, found {}", self.peek().shown())));
                }
                nullable = false;
            } else if self.skip_word("comment") {
                match self.take() {
                    Token::Text(text) => comment = Some(text),
                    found => {
                        self.next -= 1;
                        return Err(self.wrong(&format!("expected a quoted comment, found {}", found.shown())));
                    }
                }
            } else {
                break;
            }
        }
        let field = StructField::new(name, data_type, nullable);
        Ok(match comment {
            Some(comment) => field.with_metadata([("comment", comment)]),
            None => field,
        })
    }

    fn data_type(&mut self) -> Result<DataType> {
        if self.depth > NESTING {
            return Err(self.wrong(&format!("types are more than {NESTING} deep inside each other")));
        }
        self.depth += 1;
        let data_type = self.data_type_here();
        self.depth -= 1;
        data_type
    }

    fn data_type_here(&mut self) -> Result<DataType> {
        let start = self.next;
        let Token::Word(word) = self.take() else {
            self.next = start;
            return Err(self.wrong(&format!("expected a type, found {}", self.peek().shown())));
        };
        Ok(match word.to_ascii_lowercase().as_str() {
            "boolean" => DataType::BOOLEAN,
            "tinyint" | "byte" => DataType::BYTE,
            "smallint" | "short" => DataType::SHORT,
            "int" | "integer" => DataType::INTEGER,
            "bigint" | "long" => DataType::LONG,
            "float" | "real" => DataType::FLOAT,
            "double" => DataType::DOUBLE,
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "string" => DataType::STRING,
            "binary" => DataType::BINARY,
            "date" => DataType::DATE,
            "timestamp" | "timestamp_ltz" => DataType::TIMESTAMP,
            "timestamp_ntz" => DataType::TIMESTAMP_NTZ,
            "array" => {
                self.expect(&Token::Sign('<'))?;
                let element = self.data_type()?;
                self.expect(&Token::Sign('>'))?;
                ArrayType::new(element, true).into()
            }
            "map" => {
                self.expect(&Token::Sign('<'))?;
                let key = self.data_type()?;
                self.expect(&Token::Sign(','))?;
                let value = self.data_type()?;
                self.expect(&Token::Sign('>'))?;
                MapType::new(key, value, true).into()
            }
            "struct" => {
                self.expect(&Token::Sign('<'))?;
                let fields = self.columns(&Token::Sign('>'))?;
                self.expect(&Token::Sign('>'))?;
                fields.into()
            }
            "varchar" | "char" | "character" | "text" => {
                self.next = start;
                return Err(self
                    .wrong(&format!("the type {word} is not Delta's: it would promise a length that nobody checks"))
                    .hint("use string"));
            }
            _ => {
                self.next = start;
                return Err(self.wrong(&format!("'{word}' is not a type")));
            }
        })
    }

    /// `(precision[, scale])`; left out it is (10,0), as in Spark.
    fn decimal(&mut self) -> Result<DataType> {
        let start = self.next;
        let (mut precision, mut scale) = (10, 0);
        if self.skip(&Token::Sign('(')) {
            precision = self.number()?;
            if self.skip(&Token::Sign(',')) {
                scale = self.number()?;
            }
            self.expect(&Token::Sign(')'))?;
        }
        DataType::decimal(precision, scale).map_err(|_| {
            self.next = start;
            self.wrong(&format!("decimal({precision},{scale}) does not exist; at most 38 digits, the scale among them"))
        })
    }

    fn number(&mut self) -> Result<u8> {
        if let Token::Word(word) = self.peek()
            && let Ok(number) = word.parse()
        {
            self.next += 1;
            return Ok(number);
        }
        Err(self.wrong(&format!("expected a number of digits, found {}", self.peek().shown())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_spark_writes() {
        let text =
            "order_id BIGINT NOT NULL, amount decimal(12,2), n numeric, tags array<string>, m map<string,array<int>>,
            s struct<a: int not null, b: string comment 'it''s'>, ts timestamp, t timestamp_ntz,
            `from` date, c string COMMENT 'plain \\'text\\'' not null, `odd``name` byte, empty: binary";
        let schema = parse(text).unwrap();
        let json = serde_json::to_value(&schema).unwrap();
        let expected: serde_json::Value = serde_json::from_str(
            r#"{"type":"struct","fields":[
            {"name":"order_id","type":"long","nullable":false,"metadata":{}},
            {"name":"amount","type":"decimal(12,2)","nullable":true,"metadata":{}},
            {"name":"n","type":"decimal(10,0)","nullable":true,"metadata":{}},
            {"name":"tags","type":{"type":"array","elementType":"string","containsNull":true},"nullable":true,"metadata":{}},
            {"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"integer","containsNull":true},"valueContainsNull":true},"nullable":true,"metadata":{}},
            {"name":"s","type":{"type":"struct","fields":[
                {"name":"a","type":"integer","nullable":false,"metadata":{}},
                {"name":"b","type":"string","nullable":true,"metadata":{"comment":"it's"}}]},"nullable":true,"metadata":{}},
            {"name":"ts","type":"timestamp","nullable":true,"metadata":{}},
            {"name":"t","type":"timestamp_ntz","nullable":true,"metadata":{}},
            {"name":"from","type":"date","nullable":true,"metadata":{}},
            {"name":"c","type":"string","nullable":false,"metadata":{"comment":"plain 'text'"}},
            {"name":"odd`name","type":"byte","nullable":true,"metadata":{}},
            {"name":"empty","type":"binary","nullable":true,"metadata":{}}]}"#,
        )
        .unwrap();
        assert_eq!(json, expected);
    }

    #[test]
    fn hostile_sizes_end_in_a_sentence() {
        let nested = |depth: usize| format!("a {}int{}", "array<".repeat(depth), ">".repeat(depth));
        let nested_in = |opening: &str| format!("a {}", opening.repeat(50_000));
        assert!(parse(&nested(NESTING)).is_ok());
        for text in [nested(NESTING + 1), nested(100_000), nested_in("struct<b "), nested_in("map<int,")] {
            let error = parse(&text).unwrap_err();
            assert!(error.message().contains("types are more than 32 deep inside each other"), "{error}");
        }
        let many = (0..60_000).map(|i| format!("c{i} int")).collect::<Vec<_>>().join(",");
        assert_eq!(parse(&many).unwrap().num_fields(), 60_000);
    }

    #[test]
    fn says_which_column_and_where() {
        let message = |text: &str| parse(text).unwrap_err().message().to_owned();
        assert_eq!(
            message("id bigint, amount decmal(3)"),
            "schema, column 'amount', character 19: 'decmal' is not a type"
        );
        assert_eq!(
            message("id bigint, ID string"),
            "schema, column 'ID', character 12: the column 'id' is there already"
        );
        assert_eq!(
            message("s struct<a int, b decimal(39,2)>"),
            "schema, column 's.b', character 26: decimal(39,2) does not exist; at most 38 digits, the scale among them"
        );
        assert_eq!(message("id bigint,"), "schema, character 11: expected a column name, found the end");
        assert_eq!(
            message("id bigint default 3"),
            "schema, column 'id', character 11: expected ',' or the end, found 'default'"
        );
        assert_eq!(message("id array<int"), "schema, column 'id', character 13: expected '>', found the end");
        assert!(parse("name varchar(20)").unwrap_err().advice().unwrap().contains("use string"));
        assert_eq!(message("`id bigint"), "the schema's quote at character 1 is never closed");
    }
}
