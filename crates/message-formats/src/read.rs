//! The loop over a source's lines that all formats share.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use serde_json::value::RawValue;

use crate::detect::{BOM, classify};
use crate::lines::{Found, Limits, next_line};
use crate::raw::RawObject;
use crate::{
    Error, ErrorKind, Format, ReadOptions, SessionLog, Transcript, Warning, claude, jsonl, pi,
};

/// Lines before the first that shows the format are held back; more than this many of them, or
/// more bytes of any lines than one line may have, and the format counts as unknown.
const MAX_UNDECIDED: usize = 1000;

/// A line that is this many times as long as one may be has no end: reading stops in it.
const MAX_OVERLONG: usize = 4;

/// How many warnings are kept.
const MAX_WARNINGS: usize = 100;

/// One line that is a JSON object.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The line's number, counted from 1.
    pub(crate) number: u64,
    /// The line without white space around it.
    pub(crate) text: &'a str,
    pub(crate) object: RawObject<'a>,
}

/// Counts what is not taken over as a message.
#[derive(Debug, Default)]
pub(crate) struct Report {
    skipped: BTreeMap<String, u64>,
    warnings: Vec<Warning>,
}

impl Report {
    /// A line that is known to be no part of a conversation.
    pub(crate) fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// A line that may have been part of the conversation.
    pub(crate) fn warn(&mut self, kind: &str, line: u64) {
        self.skip(kind);
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning {
                line,
                kind: kind.to_owned(),
            });
        }
    }
}

/// Reads the lines of one format.
pub(crate) trait LineReader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report);
    fn finish(self: Box<Self>, report: &mut Report) -> Vec<SessionLog>;
}

/// Reads a transcript from a file.
///
/// # Errors
/// Each [`ErrorKind`]; the text names the path.
pub fn read_file(path: &Path, options: &ReadOptions) -> Result<Transcript, Error> {
    let options = options.clone().with_name(path.display().to_string());
    let file = std::fs::File::open(path).map_err(|error| Error::io(&options.name, error))?;
    read(std::io::BufReader::with_capacity(1 << 16, file), &options)
}

/// Reads a transcript. Its format is found by its content.
///
/// The source may grow meanwhile, and need not have a size: a pipe will do. Reading stops at the
/// first line that no newline ends. When that line is a whole JSON object, it is read; what comes
/// behind it waits for the next reading, so that nothing is ever read out of order.
///
/// # Errors
/// [`ErrorKind::Io`] when the reader fails, [`ErrorKind::Empty`], [`ErrorKind::NotText`] and
/// [`ErrorKind::UnknownFormat`] when there is no transcript in it, or none begins in its first
/// [`ReadOptions::max_line_bytes`] bytes. A line that cannot be read is no error: see
/// [`Transcript::skipped`].
pub fn read(mut reader: impl BufRead, options: &ReadOptions) -> Result<Transcript, Error> {
    let mut report = Report::default();
    let mut found: Option<(Format, Box<dyn LineReader>)> = None;
    let mut undecided: Vec<(u64, String)> = Vec::new();
    let mut undecided_bytes = 0usize;
    let mut buffer = Vec::new();
    let (mut number, mut lines, mut binary) = (0u64, 0u64, false);
    let longest = options.max_line_bytes;
    let mut open = true;
    while open {
        let give_up = match found {
            Some(_) => longest.saturating_mul(MAX_OVERLONG),
            None => longest.saturating_sub(undecided_bytes),
        };
        let limits = Limits {
            line: longest,
            give_up,
        };
        let line = next_line(&mut reader, &mut buffer, limits)
            .map_err(|error| Error::io(&options.name, error))?;
        let ended = match line {
            Found::End => break,
            Found::Line { ended } | Found::TooLong { ended } => ended,
        };
        open = ended;
        number += 1;
        let too_long = matches!(line, Found::TooLong { .. });
        if found.is_none() {
            undecided_bytes = undecided_bytes.saturating_add(buffer.len() + 1);
            if too_long || undecided_bytes > longest.saturating_add(1) {
                lines += u64::from(!buffer.trim_ascii().is_empty());
                binary |= buffer.contains(&0);
                break;
            }
        }
        if too_long {
            lines += 1;
            report.warn("too_long", number);
            continue;
        }
        let mut bytes = buffer.as_slice();
        if number == 1 {
            bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        }
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            continue;
        }
        lines += 1;
        let text = match json_line(bytes) {
            Ok(text) => text,
            Err(kind) => {
                binary |= kind == "invalid_utf8" || bytes.contains(&0);
                report.warn(if ended { kind } else { "incomplete" }, number);
                continue;
            }
        };
        let Some(object) = RawObject::parse(text) else {
            report.warn(if ended { "not_an_object" } else { "incomplete" }, number);
            continue;
        };
        let line = Line {
            number,
            text,
            object,
        };
        if found.is_none() {
            let Some(format) = classify(&line.object) else {
                undecided.push((number, text.to_owned()));
                if undecided.len() > MAX_UNDECIDED {
                    break;
                }
                continue;
            };
            let mut reader: Box<dyn LineReader> = match format {
                Format::ClaudeCode => Box::new(claude::Reader::default()),
                Format::Pi => Box::new(pi::Reader::default()),
                Format::Jsonl => Box::new(jsonl::Reader::new(options.session.clone())),
            };
            for (number, text) in undecided.drain(..) {
                if let Some(object) = RawObject::parse(&text) {
                    let text = text.as_str();
                    let line = Line {
                        number,
                        text,
                        object,
                    };
                    reader.line(&line, &mut report);
                }
            }
            found = Some((format, reader));
        }
        if let Some((_, reader)) = &mut found {
            reader.line(&line, &mut report);
        }
    }
    let Some((format, reader)) = found else {
        let kind = match (lines, binary && undecided.is_empty()) {
            (0, _) => ErrorKind::Empty,
            (_, true) => ErrorKind::NotText,
            (_, false) => ErrorKind::UnknownFormat,
        };
        return Err(Error::new(kind, &options.name));
    };
    let sessions = reader.finish(&mut report);
    Ok(Transcript {
        format,
        sessions,
        skipped: report.skipped,
        warnings: report.warnings,
        lines,
    })
}

/// The line as text, if it is one JSON value; else the kind to count it under.
fn json_line(bytes: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "invalid_utf8")?;
    serde_json::from_str::<&RawValue>(text).map_err(|_| "invalid_json")?;
    Ok(text)
}
