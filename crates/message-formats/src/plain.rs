//! Plain JSON lines: the export format, and lines as short as `{"role":"user","content":"…"}`.

use memory_model::{SessionKey, short_hash};

use crate::chat::{Calls, Writer, has_no_role, message, whole};
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::session::{SessionBuilder, other_keys};
use crate::{Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink};

/// Plain JSON lines: the export format, and lines as short as `{"role":"user","content":"…"}`.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct PlainLines {}

impl PlainLines {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for PlainLines {
    fn name(&self) -> &str {
        "jsonl"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::Plain)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader {
            options: options.clone(),
            made: None,
            other_keys: Vec::new(),
            sessions: Vec::new(),
        };
        let report = json_lines::read(input, options, &mut reader)?;
        for ((key, named), session) in reader.sessions {
            let mut log = session.log.finish(SessionKey::new(key));
            log.named = named;
            if !named {
                log.other_keys.clone_from(&reader.other_keys);
            }
            sink.session(log)?;
        }
        Ok(report)
    }
}

/// Reads lines in file order. Each line is added to the session that it names.
#[derive(Debug)]
struct Reader {
    options: ReadOptions,
    /// Key for lines without a session, made from the first line. It is used if the caller gave no session.
    made: Option<String>,
    /// Keys that are made from other writings of the first line.
    other_keys: Vec<SessionKey>,
    /// Sessions by key. The flag is false if the key was made from a line.
    sessions: Vec<((String, bool), Session)>,
}

/// A session, and its calls without an id.
#[derive(Debug)]
struct Session {
    log: SessionBuilder,
    calls: Calls,
}

impl Reader {
    fn session(&mut self, key: (String, bool)) -> Option<&mut Session> {
        let at = match self.sessions.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let session = Session {
                    log: SessionBuilder::with_options(Origin::Root, &self.options),
                    calls: Calls::default(),
                };
                self.sessions.push((key, session));
                self.sessions.len() - 1
            }
        };
        self.sessions.get_mut(at).map(|(_, session)| session)
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        if self.made.is_none() {
            self.other_keys = other_keys("jsonl", line.text);
        }
        let made = self
            .made
            .get_or_insert_with(|| format!("jsonl-{}", short_hash(line.text)));
        let named = line
            .object
            .id("session")
            .or_else(|| self.options.session.clone());
        let key = named.map_or_else(|| (made.clone(), false), |key| (key, true));
        let id = line.object.id("external_id");
        let Some(session) = self.session(key) else {
            return;
        };
        let found = message(line, &mut session.calls, Writer::Export);
        let read = found.unwrap_or_else(|| {
            if has_no_role(line) {
                report.warn("unknown_role", line.number);
            }
            whole(line)
        });
        session.log.push(read, id, line.text);
    }
}
