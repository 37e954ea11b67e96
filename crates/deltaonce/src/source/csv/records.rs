//! Splits CSV text into records and fields.

use crate::source::chunks::End;

/// How the text is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
}

/// Why a record cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It has this many fields, not as many as the header.
    Ragged { fields: usize },
    /// A field that does not start with a quote has one within.
    StrayQuote,
    /// Text follows the quote that closes a field.
    AfterQuote,
    /// A quoted field is not closed at the end of the file.
    OpenQuote,
    /// The record is longer than one may be.
    Overlong,
    /// Byte `byte` of the line, from 1, is not UTF-8.
    NotUtf8 { byte: usize },
}

/// A [`Fault`], the line it is at and the field, from 0, it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Faulty {
    pub(super) fault: Fault,
    pub(super) line: u64,
    pub(super) field: usize,
}

/// One field: where its text stands, and whether it was quoted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    start: u32,
    /// The end, exclusive, below two flags; a chunk is far shorter than 2^30.
    end: u32,
}

/// The field was written in quotes.
const QUOTED: u32 = 1 << 31;
/// The field's text stands among the unescaped ones.
const UNESCAPED: u32 = 1 << 30;

impl Field {
    fn new(start: usize, end: usize, flags: u32) -> Self {
        Self { start: start as u32, end: end as u32 | flags }
    }

    pub(super) fn is_quoted(self) -> bool {
        self.end & QUOTED != 0
    }

    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.end & !(QUOTED | UNESCAPED)) as usize
    }
}

/// Records split from a text, column by column.
#[derive(Debug)]
pub(super) struct Records<'a> {
    text: &'a str,
    /// Texts of fields that had doubled quotes, with single ones.
    unescaped: String,
    /// The fields of column c are at `c * most ..`.
    fields: Vec<Field>,
    most: usize,
    rows: usize,
    /// The line each record starts with.
    lines: Vec<u64>,
}

impl Records<'_> {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The line each record starts with.
    pub(super) fn lines(&self) -> &[u64] {
        self.lines.get(..self.rows).unwrap_or_default()
    }

    /// The first `rows` fields of a column, with their texts.
    pub(super) fn column(&self, column: usize, rows: usize) -> impl ExactSizeIterator<Item = (Field, &str)> + Clone {
        let start = column * self.most;
        let fields = self.fields.get(start..start + rows.min(self.rows)).unwrap_or_default();
        fields.iter().map(|&field| {
            let text = if field.end & UNESCAPED == 0 { self.text } else { &self.unescaped };
            (field, text.get(field.range()).unwrap_or_default())
        })
    }
}

/// What ended a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Delimiter,
    /// A line feed, or the end of the text.
    Record,
}

/// Takes records off a text, in order.
#[derive(Debug)]
pub(super) struct Splitter<'a> {
    text: &'a str,
    end: End,
    dialect: Dialect,
    position: usize,
    line: u64,
    has_quotes: bool,
}

impl<'a> Splitter<'a> {
    /// A splitter of `text`, whose first line is line `line` of its file.
    pub(super) fn new(text: &'a str, end: End, line: u64, dialect: Dialect) -> Self {
        let has_quotes = dialect.quote.is_some_and(|quote| memchr::memchr(quote, text.as_bytes()).is_some());
        Self { text, end, dialect, position: 0, line, has_quotes }
    }

    /// How many bytes have been taken, and the line that comes next.
    pub(super) fn position(&self) -> (usize, u64) {
        (self.position, self.line)
    }

    /// Takes one record of any width; `None` at the end.
    pub(super) fn header(&mut self) -> Result<Option<Vec<String>>, Faulty> {
        if self.position == self.text.len() && self.end == End::Whole {
            return Ok(None);
        }
        let (mut names, mut unescaped) = (Vec::new(), String::new());
        let line = self.line;
        loop {
            let (field, mark) = self.field(&mut unescaped, names.len(), line)?;
            let text = if field.end & UNESCAPED == 0 { self.text } else { &unescaped };
            names.push(text.get(field.range()).unwrap_or_default().to_owned());
            if mark == Mark::Record {
                return Ok(Some(names));
            }
        }
    }

    /// Takes up to `most` records of `width` fields; none at the end.
    ///
    /// A line with nothing on it is passed over where records have several fields: it holds no value. Records before
    /// a faulty one are given with its fault.
    pub(super) fn records(&mut self, width: usize, most: usize) -> (Records<'a>, Option<Faulty>) {
        let mut records = Records {
            text: self.text,
            unescaped: String::new(),
            fields: vec![Field::default(); width * most],
            most,
            rows: 0,
            lines: Vec::with_capacity(most),
        };
        if !self.has_quotes {
            self.plain_records(width, &mut records);
        }
        let mut fault = None;
        // What the plain way leaves (quotes, ragged records, the end of the text) is taken field by field.
        while fault.is_none() && records.rows < most && !self.is_done() {
            fault = self.record(width, &mut records).err();
        }
        (records, fault)
    }

    fn is_done(&self) -> bool {
        self.position >= self.text.len() && self.end == End::Whole
    }

    /// Takes records off a text without quotes until one is not `width` fields wide or the text ends within it.
    fn plain_records(&mut self, width: usize, records: &mut Records<'a>) {
        let bytes = self.text.as_bytes();
        let delimiter = self.dialect.delimiter;
        let (mut start, mut column) = (self.position, 0);
        for at in Marks::new(bytes, self.position, delimiter, b'\n') {
            let is_delimiter = bytes.get(at) == Some(&delimiter);
            if is_delimiter == (column + 1 == width) {
                let blank = !is_delimiter && column == 0 && matches!(bytes.get(start..at), Some([] | [b'\r']));
                if !blank {
                    break;
                }
                self.line += 1;
                self.position = at + 1;
                start = at + 1;
                continue;
            }
            let mut end = at;
            if !is_delimiter && at > start && bytes.get(at - 1) == Some(&b'\r') {
                end = at - 1;
            }
            if let Some(field) = records.fields.get_mut(column * records.most + records.rows) {
                *field = Field::new(start, end, 0);
            }
            start = at + 1;
            if is_delimiter {
                column += 1;
            } else {
                column = 0;
                records.lines.push(self.line);
                records.rows += 1;
                self.line += 1;
                self.position = start;
                if records.rows == records.most {
                    break;
                }
            }
        }
    }

    /// Takes one record, or one empty line.
    fn record(&mut self, width: usize, records: &mut Records<'a>) -> Result<(), Faulty> {
        let first_line = self.line;
        let mut column = 0;
        loop {
            let (field, mark) = self.field(&mut records.unescaped, column, first_line)?;
            if column == 0 && mark == Mark::Record && width > 1 && field.range().is_empty() && !field.is_quoted() {
                return Ok(());
            }
            if column < width
                && let Some(slot) = records.fields.get_mut(column * records.most + records.rows)
            {
                *slot = field;
            }
            column += 1;
            if mark == Mark::Record {
                break;
            }
        }
        if column != width {
            return Err(Faulty { fault: Fault::Ragged { fields: column }, line: first_line, field: column.min(width) });
        }
        records.lines.push(first_line);
        records.rows += 1;
        Ok(())
    }

    /// Takes the field at the current position, the `field`-th of a record that starts at `first_line`, with what
    /// ends it.
    fn field(&mut self, unescaped: &mut String, field: usize, first_line: u64) -> Result<(Field, Mark), Faulty> {
        let bytes = self.text.as_bytes();
        let start = self.position;
        let rest = bytes.get(start..).unwrap_or_default();
        let fault = |fault| Faulty { fault, line: first_line, field };
        let Some(quote) = self.dialect.quote else {
            return self.unquoted(start, memchr::memchr2(self.dialect.delimiter, b'\n', rest), field, first_line);
        };
        if rest.first() != Some(&quote) {
            let found = memchr::memchr3(self.dialect.delimiter, b'\n', quote, rest);
            if found.and_then(|found| rest.get(found)) == Some(&quote) {
                return Err(fault(Fault::StrayQuote));
            }
            return self.unquoted(start, found, field, first_line);
        }
        let (mut from, saved) = (start + 1, unescaped.len());
        loop {
            let rest = bytes.get(from..).unwrap_or_default();
            let Some(found) = memchr::memchr(quote, rest) else {
                return Err(self.cut_off(field, first_line, Fault::OpenQuote));
            };
            let close = from + found;
            let after = bytes.get(close + 1);
            let doubled = after == Some(&quote);
            if doubled || unescaped.len() > saved {
                unescaped.push_str(self.text.get(from..close + usize::from(doubled)).unwrap_or_default());
            }
            if doubled {
                from = close + 2;
                continue;
            }
            let taken = if unescaped.len() > saved {
                Field::new(saved, unescaped.len(), QUOTED | UNESCAPED)
            } else {
                Field::new(start + 1, close, QUOTED)
            };
            self.line += memchr::memchr_iter(b'\n', bytes.get(start..close).unwrap_or_default()).count() as u64;
            let (mark, width) = match (after, bytes.get(close + 2)) {
                (Some(&byte), _) if byte == self.dialect.delimiter => (Mark::Delimiter, 1),
                (Some(b'\n'), _) => (Mark::Record, 1),
                (Some(b'\r'), Some(b'\n')) => (Mark::Record, 2),
                (Some(b'\r'), None) if self.end == End::Whole => (Mark::Record, 1),
                (None, _) if self.end == End::Whole => (Mark::Record, 0),
                (None, _) | (Some(b'\r'), None) => return Err(self.cut_off(field, first_line, Fault::AfterQuote)),
                _ => return Err(fault(Fault::AfterQuote)),
            };
            self.pass(close + 1 + width, mark, width > 0);
            return Ok((taken, mark));
        }
    }

    /// Takes a field without quotes that ends `found` bytes after `start`, or with the text.
    fn unquoted(
        &mut self,
        start: usize,
        found: Option<usize>,
        field: usize,
        first_line: u64,
    ) -> Result<(Field, Mark), Faulty> {
        let bytes = self.text.as_bytes();
        let (mut end, mark) = match found.map(|found| start + found) {
            Some(at) if bytes.get(at) == Some(&b'\n') => (at, Mark::Record),
            Some(at) => (at, Mark::Delimiter),
            None if self.end == End::Whole => (bytes.len(), Mark::Record),
            None => return Err(self.cut_off(field, first_line, Fault::OpenQuote)),
        };
        self.pass(end + usize::from(found.is_some()), mark, found.is_some());
        if mark == Mark::Record && end > start && bytes.get(end - 1) == Some(&b'\r') {
            end -= 1;
        }
        Ok((Field::new(start, end, 0), mark))
    }

    /// Moves on to `position`, past a `mark` that is written out or stands for the end of the text.
    fn pass(&mut self, position: usize, mark: Mark, written: bool) {
        self.position = position;
        self.line += u64::from(mark == Mark::Record && written);
    }

    /// The fault of a record that the end of the text cuts off: `whole` where the text is whole.
    fn cut_off(&self, field: usize, first_line: u64, whole: Fault) -> Faulty {
        let bytes = self.text.as_bytes();
        match self.end {
            End::Whole => Faulty { fault: whole, line: first_line, field },
            End::Overlong => Faulty { fault: Fault::Overlong, line: first_line, field },
            End::NotUtf8 => {
                let lines = memchr::memchr_iter(b'\n', bytes.get(self.position..).unwrap_or_default()).count() as u64;
                let line_start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
                let fault = Fault::NotUtf8 { byte: bytes.len() - line_start + 1 };
                Faulty { fault, line: self.line + lines, field }
            }
        }
    }
}

/// Positions of two bytes in a text, in order; finds them eight bytes at a time, since fields are too short for memchr
/// to pay.
struct Marks<'a> {
    bytes: &'a [u8],
    /// The position of the next eight bytes.
    next: usize,
    /// The high bit of each byte found among the last eight, and their position.
    found: u64,
    base: usize,
    a: u64,
    b: u64,
}

const LOW: u64 = 0x0101_0101_0101_0101;
const SEVEN: u64 = 0x7F7F_7F7F_7F7F_7F7F;

impl<'a> Marks<'a> {
    fn new(bytes: &'a [u8], start: usize, a: u8, b: u8) -> Self {
        Self { bytes, next: start, found: 0, base: start, a: LOW * u64::from(a), b: LOW * u64::from(b) }
    }

    /// The high bit of each byte that is zero, and of no other.
    #[inline]
    fn zeros(word: u64) -> u64 {
        !(((word & SEVEN) + SEVEN) | word | SEVEN)
    }
}

impl Iterator for Marks<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let rest = self.bytes.get(self.next..)?;
            self.base = self.next;
            let word = match rest.first_chunk::<8>() {
                Some(word) => *word,
                None if rest.is_empty() => return None,
                // What is looked for is ASCII, so that padding of another kind is never found.
                None => {
                    let mut word = [0x80; 8];
                    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                    word
                }
            };
            self.next = (self.next + 8).min(self.bytes.len());
            let word = u64::from_le_bytes(word);
            self.found = Self::zeros(word ^ self.a) | Self::zeros(word ^ self.b);
        }
        let at = self.base + (self.found.trailing_zeros() / 8) as usize;
        self.found &= self.found - 1;
        Some(at)
    }
}
