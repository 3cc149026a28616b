//! Kimi Code's sessions: `context.jsonl` in a folder with the session's name.
//!
//! - Messages are in OpenAI's chat shape. Parts of reasoning have the type `think`.
//! - Marks of checkpoints and counts of tokens are skipped. The system prompt is a note.
//! - After a compaction, or when the user goes back, the program starts a new file. It keeps the old one as
//!   `context_1.jsonl`, `context_2.jsonl` and so on. Each old file is a session with the names of the session and the
//!   file.

use std::path::Path;

use memory_model::{Role, SessionKey, short_hash};

use crate::chat::{Calls, Writer, has_no_role, message, whole};
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::session::{SessionBuilder, note};
use crate::{AgentHome, Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink};

/// Kimi Code's sessions.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct KimiCode {}

impl KimiCode {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for KimiCode {
    fn name(&self) -> &str {
        "kimi-code"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::KimiCode)
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".kimi", &["sessions"]).with_variable("KIMI_SHARE_DIR"))
    }

    fn is_companion(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == "wire.jsonl")
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let named = options
            .session
            .clone()
            .or_else(|| session_of(input.path()?));
        let mut reader = Reader {
            log: SessionBuilder::with_options(Origin::Root, options),
            calls: Calls::default(),
            made: None,
        };
        let mut report = json_lines::read(input, options, &mut reader)?;
        let is_named = named.is_some();
        match named.or(reader.made) {
            Some(key) => {
                let mut log = reader.log.finish(SessionKey::new(key));
                log.named = is_named;
                sink.session(log)?;
            }
            None => (0..reader.log.len()).for_each(|_| report.lose("no_session")),
        }
        Ok(report)
    }
}

/// Returns the session that the path of a file names: its folder, with the suffix of an old file's name.
fn session_of(path: &Path) -> Option<String> {
    let file = path.file_stem()?.to_str()?;
    let folder = path.parent()?.file_name()?.to_str()?;
    let old = file.strip_prefix("context")?;
    Some(format!("{folder}{old}"))
}

struct Reader {
    log: SessionBuilder,
    calls: Calls,
    /// Key made from the first message.
    made: Option<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let role = line.object.string("role").unwrap_or_default();
        if role == "_system_prompt" {
            self.log
                .push(note(Role::System, line.text), None, line.text);
            return;
        }
        if detect::KIMI_RECORDS.contains(&role.as_str()) {
            report.skip(&role);
            return;
        }
        let made = || format!("kimi-{}", short_hash(line.text));
        self.made.get_or_insert_with(made);
        let found = message(line, &mut self.calls, Writer::Other);
        let message = found.unwrap_or_else(|| {
            if has_no_role(line) {
                report.warn("unknown_role", line.number);
            }
            whole(line)
        });
        self.log.push(message, None, line.text);
    }
}
