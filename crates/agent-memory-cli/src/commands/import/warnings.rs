//! Warnings about the lines of a transcript that did not become messages.

use agent_memory::model::EntryKind;
use agent_memory::transcripts::{ReadOptions, SessionLog, Transcript};
use agent_memory::{Message, Role};

use crate::hook::answer::WORD_FOR_WORD;
use crate::output::{count, number};

/// Maximum number of skipped files in text output, and of warnings about one file's lines in any output.
pub(super) const NAMED: usize = 20;

/// Returns warnings about the lines of a file that did not become messages.
pub(super) fn warnings(file: &str, transcript: &Transcript) -> Vec<String> {
    let warnings = transcript.report.warnings.iter();
    let mut lines: Vec<String> = warnings
        .take(NAMED)
        .map(|warning| {
            let fate = match warning.kind.as_str() {
                "too_long" => {
                    let limit = ReadOptions::default().max_line_bytes >> 20;
                    format!("is longer than {limit} MiB and was skipped")
                }
                "incomplete" => {
                    "is incomplete and was skipped: import the file again when it is complete".to_owned()
                }
                "unknown_role" => "has none of the roles system, developer, user, assistant and \
                                   tool: it is stored as a note, which is never sent to a model"
                    .to_owned(),
                "queued" => {
                    "has text that was typed while the agent was busy, and no line sends it yet: it is skipped until one does"
                        .to_owned()
                }
                "missing_base" => {
                    "goes on from another rollout, whose file was not found: only its own part is read. Import it from \
                     Codex' home, or with the other file next to it"
                        .to_owned()
                }
                kind => format!("was skipped: {kind}"),
            };
            format!("warning: line {} of {file} {fate}", number(warning.line))
        })
        .collect();
    if let Some(more @ 1..) = transcript.report.warnings.len().checked_sub(NAMED) {
        lines.push(format!("warning: {more} more lines of {file}"));
    }
    let hidden: u64 = transcript.sessions.iter().map(hidden).sum();
    if hidden > 0 {
        lines.push(format!(
            "warning: {file} has {} of the user between the markers of agent-memory, which agent-memory may not have \
             written: no search and no context has them",
            count(hidden, "message", "messages"),
        ));
    }
    lines
}

/// Returns the number of the user's messages that are notes because they are between the markers of agent-memory, in a
/// session in which none has the sentence that begins each of its texts about a session.
fn hidden(log: &SessionLog) -> u64 {
    let is_marked = |message: &&Message| {
        let is_note = message.kind == EntryKind::Note && message.role == Role::User;
        is_note && message.text().trim_start().starts_with("<agent-memory>")
    };
    let marked: Vec<&Message> = log.messages.iter().filter(is_marked).collect();
    match marked
        .iter()
        .any(|message| message.text().contains(WORD_FOR_WORD))
    {
        true => 0,
        false => marked.len() as u64,
    }
}
