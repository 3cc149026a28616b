//! Formats of one JSON object a line: the loop over a source's lines.
//!
//! Reading stops at the first line that no newline ends. When that line is a whole JSON object, it
//! is read; what comes behind it waits for the next reading, so that nothing is ever read out of
//! order. A line that is too long, no text or no JSON object is counted in the report.

use serde_json::value::RawValue;

use crate::lines::BOM;
use crate::lines::{Found, Limits, next_line};
use crate::raw::RawObject;
use crate::{Error, Input, ReadOptions, Report};

/// Reading stops in a line that is this many times as long as the longest that is read.
const MAX_OVERLONG: usize = 4;

/// One line that is a JSON object.
#[derive(Debug)]
pub struct Line<'a> {
    pub(crate) number: u64,
    pub(crate) text: &'a str,
    pub(crate) object: RawObject<'a>,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` when it is not one JSON object.
    pub fn parse(number: u64, text: &'a str) -> Option<Self> {
        let object = RawObject::parse(text)?;
        Some(Self {
            number,
            text,
            object,
        })
    }

    /// The line's number, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The line as it came, without white space around it.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The value of a key as it came; the last one where the key comes twice.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.object.get(key)
    }

    /// The value of a key that is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        self.object.string(key)
    }
}

/// Takes the lines of a source in order.
pub trait LineReader {
    /// Takes one line.
    fn line(&mut self, line: &Line<'_>, report: &mut Report);
}

/// Feeds the lines of a source to a reader, and counts those that are no JSON objects.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) when the source cannot be read.
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

/// Feeds one line, or counts it. `ended` says whether a newline ended it.
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

/// The line, if it is one JSON object; else the kind to count it under.
fn parse(number: u64, bytes: &[u8]) -> Result<Line<'_>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "invalid_utf8")?;
    serde_json::from_str::<&RawValue>(text).map_err(|_| "invalid_json")?;
    Line::parse(number, text).ok_or("not_an_object")
}

/// Returns whether a line is a JSON object.
pub(crate) fn is_object(bytes: &[u8]) -> bool {
    parse(0, bytes.trim_ascii()).is_ok()
}
