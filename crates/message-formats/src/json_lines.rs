//! Reads formats with one JSON object on each line.
//!
//! Reading stops at the first line without a newline. If that line is a whole JSON object, it is read. The bytes behind
//! it wait for the next reading, so that lines are always read in order. The report counts each line that is too long,
//! no text or no JSON object.

use serde_json::value::RawValue;

use crate::lines::BOM;
use crate::lines::{Found, Limits, next_line};
use crate::raw::RawObject;
use crate::{Error, Input, ReadOptions, Report};

/// Factor of the longest line at which reading stops in the middle of a line.
const MAX_OVERLONG: usize = 4;

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

/// Passes the lines of a source to a reader, and counts the lines that are no JSON objects.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the source cannot be read.
pub fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    lines: &mut dyn LineReader,
) -> Result<Report, Error> {
    let mut report = Report::new();
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
            Found::End => return Ok(report),
            Found::Line { ended } => {
                let bytes = match number {
                    1 => buffer.strip_prefix(BOM).unwrap_or(&buffer),
                    _ => &buffer,
                };
                one(bytes.trim_ascii(), (number, ended), lines, &mut report);
                ended
            }
            Found::TooLong { ended } => {
                report.lines += 1;
                report.warn("too_long", number);
                ended
            }
        };
        if !ended {
            return Ok(report);
        }
    }
}

/// Passes one line to the reader, or counts it. `ended` means that a newline ended the line.
fn one(
    bytes: &[u8],
    (number, ended): (u64, bool),
    lines: &mut dyn LineReader,
    report: &mut Report,
) {
    if bytes.is_empty() {
        return;
    }
    report.lines += 1;
    match parse(number, bytes) {
        Ok(line) => lines.line(&line, report),
        Err(kind) => report.warn(if ended { kind } else { "incomplete" }, number),
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
