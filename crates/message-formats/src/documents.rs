//! Formats of whole JSON documents: the loop over the documents of a source, most often one.
//!
//! A document is an object or a list, on any number of lines. Each is held in memory whole, up to
//! [`ReadOptions::max_line_bytes`], and its messages are read from there one by one. The white space between the values of a
//! document of several lines is not kept.

use std::collections::HashMap;

use memory_model::SessionKey;
use serde_json::value::RawValue;

use crate::chat::{self, Calls};
use crate::format::BOM;
use crate::json_lines::Line;
use crate::outline::Ends;
use crate::raw::{RawObject, list};
use crate::session::{SessionBuilder, note, short_hash};
use crate::{Error, Input, Origin, ReadOptions, Report, SessionLog, Sink};

/// Feeds the documents of a source to `read`, and counts those that are no JSON.
///
/// # Errors
/// When the source cannot be read, or its first document is cut, too long or no JSON.
pub(crate) fn read(
    mut input: Input<'_>,
    options: &ReadOptions,
    mut read: impl FnMut(&RawValue, &mut Report),
) -> Result<Report, Error> {
    let mut report = Report::new();
    let mut number = 0;
    let mut buffer = Vec::new();
    loop {
        let found = next(&mut input, options, &mut buffer)?;
        number += 1;
        let problem = match found {
            Found::End => return Ok(report),
            Found::Cut => "incomplete",
            Found::TooLong => "too_long",
            Found::Document => match serde_json::from_slice::<&RawValue>(&buffer) {
                Ok(document) => {
                    read(document, &mut report);
                    continue;
                }
                Err(_) => "invalid_json",
            },
        };
        if number == 1 {
            let longest = options.max_line_bytes;
            return Err(Error::invalid(
                &options.name,
                match problem {
                    "incomplete" => {
                        "it ends in the middle of its JSON: read it once it is written".to_owned()
                    }
                    "too_long" => format!(
                        "its JSON has more than {longest} bytes: raise the limit or split it"
                    ),
                    _ => "it is no JSON: export it again".to_owned(),
                },
            ));
        }
        report.lines += 1;
        report.warn(problem, number);
        if problem == "too_long" {
            return Ok(report);
        }
    }
}

/// Result of looking for a document.
enum Found {
    /// Its bytes are in the buffer.
    Document,
    Cut,
    TooLong,
    End,
}

/// Reads the next document into the buffer.
fn next(
    input: &mut Input<'_>,
    options: &ReadOptions,
    buffer: &mut Vec<u8>,
) -> Result<Found, Error> {
    buffer.clear();
    let mut ends = Ends::default();
    loop {
        let reader = input.reader();
        let piece = match reader.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io(&options.name, error)),
        };
        if piece.is_empty() {
            return Ok(match buffer.is_empty() {
                true => Found::End,
                false => Found::Cut,
            });
        }
        let mut start = 0;
        if buffer.is_empty() {
            let is_start = |byte: &u8| !byte.is_ascii_whitespace() && !BOM.contains(byte);
            start = piece.iter().position(is_start).unwrap_or(piece.len());
        }
        let text = piece.get(start..).unwrap_or_default();
        let end = match text.first() {
            // Nothing but objects and lists has an end that is sure.
            Some(first) if buffer.is_empty() && !matches!(first, b'{' | b'[') => {
                let line = memchr::memchr(b'\n', text);
                Some(line.unwrap_or(text.len()))
            }
            _ => ends.of(text),
        };
        let taken = end.unwrap_or(text.len());
        buffer.extend_from_slice(text.get(..taken).unwrap_or_default());
        reader.consume(start + taken);
        if buffer.len() > options.max_line_bytes {
            return Ok(Found::TooLong);
        }
        if end.is_some() {
            on_one_line(buffer);
            return Ok(Found::Document);
        }
    }
}

/// Takes the white space out of a document of several lines, for what is kept of it is exported in lines.
fn on_one_line(document: &mut Vec<u8>) {
    if memchr::memchr(b'\n', document).is_none() {
        return;
    }
    let (mut in_string, mut is_escaped) = (false, false);
    document.retain(|byte| {
        let is_quote = *byte == b'"' && !is_escaped;
        is_escaped = in_string && *byte == b'\\' && !is_escaped;
        in_string ^= is_quote;
        in_string || !byte.is_ascii_whitespace()
    });
}

/// The conversations of a source, each under a key of its own.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    logs: Vec<SessionLog>,
    used: HashMap<SessionKey, u64>,
}

impl Logs {
    /// Adds a conversation. One that repeats an earlier unnamed one of the source and goes on takes its place.
    pub(crate) fn add(&mut self, mut log: SessionLog) {
        let is_start =
            |known: &&mut SessionLog| !known.named && log.messages.starts_with(&known.messages);
        if !log.named
            && let Some(known) = self.logs.iter_mut().find(is_start)
        {
            log.key = known.key.clone();
            *known = log;
            return;
        }
        let count = self.used.entry(log.key.clone()).or_default();
        *count += 1;
        if *count > 1 {
            log.key = SessionKey::new(format!("{}-{count}", log.key));
        }
        self.logs.push(log);
    }

    pub(crate) fn hand_over(self, sink: &mut dyn Sink) -> Result<(), Error> {
        self.logs.into_iter().try_for_each(|log| sink.session(log))
    }
}

/// A conversation that is read from a list of messages.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) log: SessionBuilder,
    calls: Calls,
    /// Hash of the first message that is not the system's, or else of the first.
    begin: Option<(bool, String)>,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        Self {
            log: SessionBuilder::new(Origin::Root),
            calls: Calls::default(),
            begin: None,
        }
    }

    /// Adds one message in the shape of a provider.
    pub(crate) fn message(&mut self, text: &str, report: &mut Report) {
        let number = report.lines + 1;
        let Some(line) = Line::parse(number, text) else {
            report.lines = number;
            report.warn("not_an_object", number);
            self.log
                .push(note(memory_model::Role::System, text), None, text);
            return;
        };
        chat::push(&line, &mut self.calls, &mut self.log, report);
        let role = line.string("role");
        self.begin(
            role.is_some_and(|role| role == "system" || role == "developer"),
            text,
        );
    }

    /// Names the conversation by its first message that is not the system's.
    pub(crate) fn begin(&mut self, is_system: bool, text: &str) {
        if self
            .begin
            .as_ref()
            .is_none_or(|(system, _)| *system && !is_system)
        {
            self.begin = Some((is_system, short_hash(text)));
        }
    }

    /// Adds the messages of a list.
    pub(crate) fn messages(&mut self, messages: &RawValue, report: &mut Report) {
        for message in list(messages).unwrap_or_default() {
            self.message(message.get(), report);
        }
    }

    /// Keeps what a finished run holds beside its messages as a note at the end.
    pub(crate) fn rest(&mut self, object: &RawObject<'_>, read: &[&str]) {
        let mut rest = crate::raw::MetaBuilder::default();
        rest.extend(object.others(read));
        if let Some(rest) = rest.into_text() {
            self.log
                .push(note(memory_model::Role::System, &rest), None, &rest);
        }
    }

    /// Returns the conversation under the name that the caller gave or the source has; else its key is made from its
    /// first message.
    pub(crate) fn finish(
        self,
        options: &ReadOptions,
        format: &str,
        name: Option<String>,
    ) -> SessionLog {
        let begin = self.begin.map_or_else(String::new, |(_, hash)| hash);
        let named = options.session.is_some() || name.is_some();
        let key = options.session.clone().or(name);
        let key = key.unwrap_or_else(|| format!("{format}-{begin}"));
        let mut log = self.log.finish(SessionKey::new(key));
        log.named = named;
        log
    }
}
