//! Reads formats with one JSON object on each line.
//!
//! Reading stops at the first line without a newline. If that line is a whole JSON object, it is read. The bytes behind
//! it wait for the next reading, so that lines are always read in order. The report counts each line that is too long,
//! no text or no JSON object.
//!
//! A line that is not one JSON object can hold whole records, such as the next one behind half a record that a killed
//! program left. They are read in their order, and the report counts the rest of the line.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::lines::BOM;
use crate::lines::{Found, Limits, next_line};
use crate::raw::RawObject;
use crate::torn::{self, Beginning, Piece};
use crate::{Error, Input, ReadOptions, Report};

/// Factor of the longest line at which reading stops in the middle of a line.
const MAX_OVERLONG: usize = 4;

/// Number of beginnings of records that are remembered.
const MOST_BEGINNINGS: usize = 64;

/// One line that is a JSON object.
#[derive(Debug)]
pub struct Line<'a> {
    pub(crate) number: u64,
    pub(crate) text: &'a str,
    pub(crate) object: RawObject<'a>,
}

impl<'a> Line<'a> {
    /// Reads a line, or returns `None` if it is not one JSON object.
    pub fn parse(number: u64, text: &'a str) -> Option<Self> {
        let object = RawObject::parse(text)?;
        Some(Self {
            number,
            text,
            object,
        })
    }

    /// Returns the line's number, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the line as it came, without the white space around it.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the value of a key as it came. If the key comes twice, the last value counts.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.object.get(key)
    }

    /// Returns the value of a key, if it is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        self.object.string(key)
    }
}

/// Receives the lines of a source in order.
pub trait LineReader {
    /// Takes one line.
    fn line(&mut self, line: &Line<'_>, report: &mut Report);
}

/// The sessions of a source. Each has a reader.
#[derive(Debug)]
pub(crate) struct Sessions<R> {
    readers: Vec<R>,
    /// Index of the reader of the last line.
    current: usize,
    /// Index of a session's reader, by the session's id.
    ids: HashMap<String, usize>,
}

impl<R> Sessions<R> {
    pub(crate) fn new(first: R) -> Self {
        Self {
            readers: vec![first],
            current: 0,
            ids: HashMap::new(),
        }
    }

    /// Returns the reader of a line that names a session, or no session. A session that no line named before has a new
    /// reader if the line follows no other line, and is otherwise another name of the current session.
    pub(crate) fn of(
        &mut self,
        id: Option<String>,
        is_first: bool,
        new: impl FnOnce() -> R,
    ) -> Option<&mut R> {
        let is_new = is_first && !self.ids.is_empty();
        match id {
            Some(id) if is_new && !self.ids.contains_key(&id) => {
                self.current = self.readers.len();
                self.readers.push(new());
                self.ids.insert(id, self.current);
            }
            Some(id) => self.current = *self.ids.entry(id).or_insert(self.current),
            None => {}
        }
        self.readers.get_mut(self.current)
    }

    /// Returns whether a line named a session before.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    pub(crate) fn into_readers(self) -> Vec<R> {
        self.readers
    }
}

/// Passes the lines of a source to a reader, and counts the lines that are no JSON objects.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the source cannot be read.
pub fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    lines: &mut dyn LineReader,
) -> Result<Report, Error> {
    let mut source = Source {
        lines,
        report: Report::new(),
        beginnings: Vec::new(),
    };
    let limits = Limits {
        line: options.max_line_bytes,
        give_up: options.max_line_bytes.saturating_mul(MAX_OVERLONG),
    };
    let reader = input.reader();
    let mut buffer = Vec::new();
    let mut number = 0u64;
    loop {
        let found = next_line(reader, &mut buffer, limits)
            .map_err(|error| Error::io(&options.name, error))?;
        number += 1;
        let ended = match found {
            Found::End => return Ok(source.report),
            Found::Line { ended } => {
                let bytes = match number {
                    1 => buffer.strip_prefix(BOM).unwrap_or(&buffer),
                    _ => &buffer,
                };
                source.line(bytes.trim_ascii(), number, ended);
                ended
            }
            Found::TooLong { ended } => {
                source.report.lines += 1;
                source.report.warn("too_long", number);
                ended
            }
        };
        if !ended {
            return Ok(source.report);
        }
    }
}

/// A source that is being read.
struct Source<'a> {
    lines: &'a mut dyn LineReader,
    report: Report,
    /// Beginnings of the records so far.
    beginnings: Vec<Beginning>,
}

impl Source<'_> {
    /// Passes one line, or the whole records in it, to the reader, and counts the rest. `ended` means that a newline
    /// ended the line.
    fn line(&mut self, bytes: &[u8], number: u64, ended: bool) {
        if bytes.is_empty() {
            return;
        }
        let pieces = match parse(number, bytes) {
            Ok(line) => {
                self.report.lines += 1;
                let is_known = |known: &Beginning| torn::begins_with(&line.object, known);
                if self.beginnings.len() < MOST_BEGINNINGS && !self.beginnings.iter().any(is_known)
                {
                    self.beginnings.push(torn::beginning(&line.object));
                }
                return self.lines.line(&line, &mut self.report);
            }
            Err("not_an_object") => vec![Piece::Torn(0..bytes.len())],
            Err(_) => torn::pieces(bytes, ended, |keys| self.beginnings.contains(keys)),
        };
        for piece in pieces {
            self.report.lines += 1;
            let (Piece::Record(range) | Piece::Torn(range)) = piece;
            let is_last = range.end == bytes.len();
            match parse(number, bytes.get(range).unwrap_or_default()) {
                Ok(line) => self.lines.line(&line, &mut self.report),
                Err(_) if is_last && !ended => self.report.warn("incomplete", number),
                Err(kind) => self.report.warn(kind, number),
            }
        }
    }
}

/// Returns the line if it is one JSON object, and otherwise the kind under which the report counts it.
fn parse(number: u64, bytes: &[u8]) -> Result<Line<'_>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "invalid_utf8")?;
    serde_json::from_str::<&RawValue>(text).map_err(|_| "invalid_json")?;
    Line::parse(number, text).ok_or("not_an_object")
}

/// Returns whether a line is a JSON object.
pub(crate) fn is_object(bytes: &[u8]) -> bool {
    parse(0, bytes.trim_ascii()).is_ok()
}

/// Returns whether a line is a JSON object, or holds whole records in another way.
pub(crate) fn has_record(line: &[u8]) -> bool {
    let ended = line.ends_with(b"\n");
    is_object(line) || torn::records(line, ended).next().is_some()
}
