//! Claude Code's session files.

mod appended;
mod attachment;
mod contents;
mod line;
mod outputs;
mod queue;
mod reader;
mod rewriting;
mod tree;

use std::path::Path;

use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader, Sessions};
use crate::{AgentHome, Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink};
use line::{NOISE, session_of};
use reader::Reader;

/// Claude Code's session files.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ClaudeCode {}

impl ClaudeCode {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for ClaudeCode {
    fn name(&self) -> &str {
        "claude-code"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::ClaudeCode)
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".claude", &["projects"]).with_variable("CLAUDE_CONFIG_DIR"))
    }

    fn is_companion(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_output = path
            .parent()
            .is_some_and(|folder| folder.ends_with("tool-results"));
        is_output || name.starts_with("agent-") && name.ends_with(".meta.json")
    }

    fn continues(&self, records: &[u8], last: &str) -> bool {
        appended::continues(records, last)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let path = input.path();
        let mut file = File {
            options,
            path,
            sessions: Sessions::new(Reader::new(options, path)),
        };
        let mut report = json_lines::read(input, options, &mut file)?;
        let readers = file.sessions.into_readers();
        let is_one = readers.len() == 1;
        for reader in readers {
            for mut session in reader.finish(&mut report) {
                // Lines at the end may be another session's.
                session.last = session.last.filter(|_| is_one);
                sink.session(session)?;
            }
        }
        Ok(report)
    }
}

/// A file. A line without a parent begins the session that it names. A session that is named further on, such as by a
/// resume, is the same conversation.
#[derive(Debug)]
struct File<'a> {
    options: &'a ReadOptions,
    path: Option<&'a Path>,
    sessions: Sessions<Reader>,
}

impl LineReader for File<'_> {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let parent = object.get("parentUuid").filter(|_| {
            let is_aside = NOISE.contains(&tag.as_str()) || object.is_true("isSidechain");
            !is_aside && object.present("logicalParentUuid").is_none()
        });
        let id = session_of(object);
        let id = id.filter(|id| parent.is_some() || self.sessions.knows(id));
        let is_first = parent.is_some_and(|parent| parent.get() == "null");
        let new = || Reader::new(self.options, self.path);
        if let Some(reader) = self.sessions.of(id, is_first, new) {
            reader.line(line, report);
        }
    }
}
