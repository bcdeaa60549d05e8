//! Reads the events: CSV, plain or gzipped, with errors that say where, what and what to do.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use csv::ByteRecord;
use flate2::read::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One line of the input.
#[derive(Debug)]
pub struct Event {
    /// Index into [`Input::keys`].
    pub key: usize,
    /// Value of the sequence column, if one was named.
    pub seq: Option<i64>,
    /// Line of the file it begins on, from 1.
    pub line: u64,
    /// The line as it stands in the file.
    pub row: Box<[u8]>,
}

/// A whole file of events, in the order of the file.
#[derive(Debug)]
pub struct Input {
    /// Distinct keys in order of first appearance.
    pub keys: Vec<Box<str>>,
    pub events: Vec<Event>,
}

/// What is wrong with the input. Displays as one line.
#[derive(Debug)]
pub struct InputError {
    source: String,
    line: Option<u64>,
    column: Option<String>,
    what: String,
    advice: String,
}

impl InputError {
    fn new(source: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        let (line, column) = (None, None);
        Self { source: source.to_owned(), line, column, what: what.into(), advice: advice.into() }
    }

    fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    fn in_column(mut self, column: &str) -> Self {
        self.column = Some(column.to_owned());
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column:?}")?;
        }
        write!(f, ": {}. {}.", self.what, self.advice)
    }
}
impl std::error::Error for InputError {}

impl Input {
    /// Reads a file. `key` names the key column, `seq` the sequence column.
    pub fn from_file(path: &Path, key: &str, seq: Option<&str>) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            let advice = "Give the path of a readable CSV file, plain or gzipped";
            InputError::new(&name, format!("cannot be read: {error}"), advice)
        })?;
        Self::from_bytes(&name, bytes, key, seq)
    }

    /// As [`from_file`](Self::from_file), of bytes at hand; `name` stands for them in errors.
    pub fn from_bytes(
        name: &str,
        bytes: Vec<u8>,
        key: &str,
        seq: Option<&str>,
    ) -> Result<Self, InputError> {
        let text = unpack(name, bytes)?;
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_slice());
        let header = read_header(name, &mut reader)?;
        let key_index = find_column(name, &header, key, "--key")?;
        let seq_index = seq.map(|seq| find_column(name, &header, seq, "--seq")).transpose()?;
        let mut rows = Rows { name, text: &text, header: &header, interned: HashMap::new() };
        let mut input = Self { keys: Vec::new(), events: Vec::new() };
        let mut record = ByteRecord::new();
        while read_record(name, &mut reader, &mut record)? {
            let end = usize_of(reader.position().byte());
            let event = rows.event(&record, end, key_index, seq_index, &mut input.keys)?;
            input.events.push(event);
        }
        Ok(input)
    }
}

fn unpack(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, InputError> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).map_err(|error| {
        let intact = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let what = format!("the gzip data is damaged or cut short ({error})");
        InputError::new(name, what, "Check it with gzip -t, or fetch it again").at(intact + 1)
    })?;
    Ok(text)
}

fn read_record<R: io::Read>(
    name: &str,
    reader: &mut csv::Reader<R>,
    record: &mut ByteRecord,
) -> Result<bool, InputError> {
    // Of bytes in memory, flexible and undecoded, the csv crate has nothing to complain about.
    let advice = "Check that the file is CSV";
    reader
        .read_byte_record(record)
        .map_err(|error| InputError::new(name, error.to_string(), advice))
}

fn read_header<R: io::Read>(
    name: &str,
    reader: &mut csv::Reader<R>,
) -> Result<Vec<String>, InputError> {
    let advice = "The first line must name the columns, separated by commas";
    let fields = reader
        .byte_headers()
        .map_err(|error| InputError::new(name, error.to_string(), advice).at(1))?;
    if fields.is_empty() {
        return Err(InputError::new(name, "the file is empty: it has no header", advice).at(1));
    }
    let decode = |(index, field): (usize, &[u8])| {
        String::from_utf8(field.to_vec()).map_err(|error| {
            not_utf8(name, 1, &(index + 1).to_string(), field, &error.utf8_error())
        })
    };
    fields.iter().enumerate().map(decode).collect()
}

fn find_column(
    name: &str,
    header: &[String],
    wanted: &str,
    option: &str,
) -> Result<usize, InputError> {
    let mut found = header.iter().enumerate().filter(|(_, column)| *column == wanted);
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (Some(_), Some(_)) => {
            let advice = format!("Give each column a name of its own, then name one with {option}");
            Err(InputError::new(name, "two columns have this name", advice).at(1).in_column(wanted))
        }
        (None, _) => {
            let advice = format!("Name one of these with {option}: {}", header.join(", "));
            Err(InputError::new(name, "there is no such column", advice).at(1).in_column(wanted))
        }
    }
}

fn not_utf8(
    name: &str,
    line: u64,
    column: &str,
    value: &[u8],
    error: &std::str::Utf8Error,
) -> InputError {
    let at = error.valid_up_to();
    let what = format!(
        "the value \"{}\" is not UTF-8: byte 0x{:02x} at its position {}",
        value.escape_ascii(),
        value[at],
        at + 1
    );
    let advice = "Convert the file, for example with iconv -f latin1 -t utf-8";
    InputError::new(name, what, advice).at(line).in_column(column)
}

fn usize_of(position: u64) -> usize {
    usize::try_from(position).expect("a position in bytes that are in memory")
}

struct Rows<'a> {
    name: &'a str,
    text: &'a [u8],
    header: &'a [String],
    interned: HashMap<Box<str>, usize>,
}

impl Rows<'_> {
    fn event(
        &mut self,
        record: &ByteRecord,
        end: usize,
        key_index: usize,
        seq_index: Option<usize>,
        keys: &mut Vec<Box<str>>,
    ) -> Result<Event, InputError> {
        let (begin, line) = self.first_byte(record);
        let row = self.text[begin..end].trim_ascii_end();
        self.check_shape(record, &self.text[begin..end], line)?;
        for (index, field) in record.iter().enumerate() {
            self.text_of(index, field, line)?;
        }
        let key = self.text_of(key_index, &record[key_index], line)?;
        let seq = seq_index.map(|index| self.seq(index, &record[index], line)).transpose()?;
        let key = match self.interned.get(key) {
            Some(known) => *known,
            None => {
                let fresh = keys.len();
                keys.push(key.into());
                self.interned.insert(key.into(), fresh);
                fresh
            }
        };
        Ok(Event { key, seq, line, row: row.into() })
    }

    /// Where the record really begins: the csv crate's position is before any blank lines it skips.
    fn first_byte(&self, record: &ByteRecord) -> (usize, u64) {
        let position = record.position().expect("a record that was read has a position");
        let (mut begin, mut line) = (usize_of(position.byte()), position.line());
        while let Some(b'\r' | b'\n') = self.text.get(begin) {
            line += u64::from(self.text[begin] == b'\n');
            begin += 1;
        }
        (begin, line)
    }

    fn check_shape(&self, record: &ByteRecord, raw: &[u8], line: u64) -> Result<(), InputError> {
        if quote_left_open(raw) {
            let what = "a quoted value that begins in this record is never closed";
            let advice = "Close the quote; a quote inside a quoted value is written twice";
            let column = self.header.get(record.len() - 1).map_or("after the last", String::as_str);
            return Err(InputError::new(self.name, what, advice).at(line).in_column(column));
        }
        let (has, wants) = (record.len(), self.header.len());
        if has == wants {
            return Ok(());
        }
        let what = format!("the line has {has} fields, the header names {wants}");
        let error = if has < wants {
            let advice = "Complete the line; this is the first column without a value";
            InputError::new(self.name, what, advice).in_column(&self.header[has])
        } else {
            let extra = record[wants].escape_ascii();
            let advice = format!(
                "Remove what is too much, from \"{extra}\" on, or quote a value that holds a comma"
            );
            InputError::new(self.name, what, advice).in_column(&(wants + 1).to_string())
        };
        Err(error.at(line))
    }

    fn text_of<'v>(&self, index: usize, value: &'v [u8], line: u64) -> Result<&'v str, InputError> {
        std::str::from_utf8(value)
            .map_err(|error| not_utf8(self.name, line, &self.header[index], value, &error))
    }

    fn seq(&self, index: usize, value: &[u8], line: u64) -> Result<i64, InputError> {
        let text = self.text_of(index, value, line)?;
        text.trim().parse().map_err(|_| {
            let what = format!("{text:?} is not a whole number of 64 bits");
            let advice = "Correct the value, or name another column with --seq";
            InputError::new(self.name, what, advice).at(line).in_column(&self.header[index])
        })
    }
}

/// Whether a record, cut from the file, ends inside quotes. Then it has swallowed the rest of the
/// file, which the csv crate accepts without a word.
fn quote_left_open(raw: &[u8]) -> bool {
    let (mut quoted, mut at_field_start) = (false, true);
    let mut bytes = raw.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.peek() == Some(&&b'"') => _ = bytes.next(),
            b'"' if quoted => quoted = false,
            b'"' if at_field_start => quoted = true,
            _ => {}
        }
        at_field_start = !quoted && matches!(byte, b',' | b'\n' | b'\r');
    }
    quoted
}
