//! Reads formats of whole JSON documents. Most sources have one document.
//!
//! A document is an object or a list, on any number of lines. Each document is held in memory whole, up to
//! [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes), and its messages are read from there one by
//! one. White space between the values of a document of several lines is not kept.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use memory_model::{Role, SessionKey, short_hash};
use serde_json::value::RawValue;

use crate::chat::{self, Calls};
use crate::json_lines::Line;
use crate::lines::BOM;
use crate::outline::{Ends, Outline};
use crate::raw::{MetaBuilder, RawObject, list};
use crate::session::{SessionBuilder, note, other_keys};
use crate::{
    Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, SessionLog, Sink,
};

/// A format of whole JSON documents.
pub(crate) trait Documents: fmt::Debug + Send + Sync {
    const NAME: &'static str;
    /// How certain the format is of a document that matches [`is`](Self::is).
    const CONFIDENCE: Confidence = Confidence::Certain;
    /// Whether a document's name for its conversation is unique among all conversations.
    const NAMES_SESSIONS: bool = true;

    /// Returns whether the outline is of a document in this format.
    fn is(outline: &Outline<'_>) -> bool;

    /// Reads the conversations of a document.
    fn document(document: &RawValue, source: &mut Source<'_>);
}

/// State of reading the documents of a source.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) options: &'a ReadOptions,
    pub(crate) path: Option<&'a Path>,
    pub(crate) report: Report,
    logs: Vec<SessionLog>,
    /// Indexes of the conversations that asked for a key.
    places: HashMap<SessionKey, Vec<usize>>,
}

impl<T: Documents> Format for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        match head.outline() {
            Some(outline) if T::is(outline) => T::CONFIDENCE,
            Some(outline) if !outline.is_settled() => Confidence::Undecided,
            _ => Confidence::No,
        }
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut source = Source {
            options,
            path: input.path(),
            report: Report::new(),
            logs: Vec::new(),
            places: HashMap::new(),
        };
        let mut buffer = Vec::new();
        for number in 1.. {
            let problem = match next(&mut input, options, &mut buffer)? {
                Found::End => break,
                Found::Cut => "incomplete",
                Found::TooLong => "too_long",
                Found::Document => match serde_json::from_slice(&buffer) {
                    Ok(document) => {
                        T::document(document, &mut source);
                        continue;
                    }
                    Err(_) => "invalid_json",
                },
            };
            if number == 1 {
                let advice = match problem {
                    "incomplete" => {
                        "it ends in the middle of its JSON: read it once it is written".to_owned()
                    }
                    "too_long" => {
                        let longest = options.max_line_bytes;
                        format!(
                            "its JSON has more than {longest} bytes: raise the limit or split it"
                        )
                    }
                    _ => "it is no JSON: export it again".to_owned(),
                };
                return Err(Error::invalid(&options.name, advice));
            }
            source.report.lines += 1;
            source.report.warn(problem, number);
            if problem == "too_long" {
                break;
            }
        }
        let mut logs = source.logs.into_iter();
        logs.try_for_each(|log| sink.session(log))?;
        Ok(source.report)
    }
}

/// Result of a search for a document.
pub(crate) enum Found {
    /// The buffer has the document's bytes.
    Document,
    Cut,
    TooLong,
    End,
}

/// Reads the next document into the buffer.
pub(crate) fn next(
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
            // Only objects and lists have a certain end.
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

/// Removes the white space from a document of several lines, because its kept values are exported in lines.
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

impl Source<'_> {
    /// Counts a record without a conversation.
    pub(crate) fn lose(&mut self, kind: &str) {
        self.report.lines += 1;
        self.report.warn(kind, self.report.lines);
    }

    /// Adds a conversation, or counts it if it has no messages.
    ///
    /// The key is the caller's name, or else the document's name, or else made from the first message.
    pub(crate) fn finish<T: Documents>(
        &mut self,
        conversation: Conversation,
        name: Option<String>,
    ) {
        let Some((_, begin)) = conversation.begin else {
            return self.lose("no_messages");
        };
        let hash = short_hash(&begin);
        let given = self.options.session.clone();
        let named = given.is_some() || T::NAMES_SESSIONS && name.is_some();
        let key = given.or(name);
        let is_made = key.is_none();
        let key = key.unwrap_or_else(|| format!("{}-{hash}", T::NAME));
        let mut log = conversation.log.finish(SessionKey::new(key));
        log.named = named;
        if is_made {
            log.other_keys = other_keys(T::NAME, &begin);
        }
        self.add(log);
    }

    /// Adds a conversation under a unique key. If it continues an earlier conversation with the same key, it replaces
    /// that conversation.
    pub(crate) fn add(&mut self, mut log: SessionLog) {
        let places = self.places.entry(log.key.clone()).or_default();
        for place in places.iter() {
            if let Some(known) = self.logs.get_mut(*place)
                && log.messages.starts_with(&known.messages)
            {
                log.key = known.key.clone();
                *known = log;
                return;
            }
        }
        places.push(self.logs.len());
        if places.len() > 1 {
            log.key = SessionKey::new(format!("{}-{}", log.key, places.len()));
        }
        self.logs.push(log);
    }
}

/// A conversation that is read from a list of messages.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) log: SessionBuilder,
    calls: Calls,
    /// Whether the first message is the system's, and the text of the first message. Messages of others take
    /// precedence.
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
            report.warn("not_an_object", number);
            return self.note(text, report);
        };
        chat::push(&line, &mut self.calls, &mut self.log, report);
        let role = line.string("role");
        self.begin(
            role.is_some_and(|role| role == "system" || role == "developer"),
            text,
        );
    }

    /// Adds an item without a message as a note.
    pub(crate) fn note(&mut self, text: &str, report: &mut Report) {
        report.lines += 1;
        self.begin(true, text);
        self.log.push(note(Role::System, text), None, text);
    }

    /// Names the conversation by its first message that is not the system's, or else by its first message.
    pub(crate) fn begin(&mut self, is_system: bool, text: &str) {
        if self
            .begin
            .as_ref()
            .is_none_or(|(system, _)| *system && !is_system)
        {
            self.begin = Some((is_system, text.to_owned()));
        }
    }

    /// Adds the messages of a list.
    pub(crate) fn messages(&mut self, messages: &RawValue, report: &mut Report) {
        for message in list(messages).unwrap_or_default() {
            self.message(message.get(), report);
        }
    }

    /// Adds a note with the other members of a finished run. `read` are the members that are not added.
    pub(crate) fn rest(&mut self, object: &RawObject<'_>, read: &[&str]) {
        let mut rest = MetaBuilder::default();
        rest.extend(object.others(read));
        if let Some(rest) = rest.into_text() {
            self.log.push(note(Role::System, &rest), None, &rest);
        }
    }
}
