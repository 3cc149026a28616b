//! Separates a user's words from the text that programs add to them.

use std::borrow::Cow;

use memory_model::RawJson;
use serde_json::value::RawValue;

use memory_model::raw::{RawObject, string};

/// Names of the tags around a program's text in a user's message, except for names with a dash.
const PROGRAM_BLOCKS: [&str; 8] = [
    "environment_context",
    "environment_details",
    "hook_context",
    "session_context",
    "subagent_notification",
    "system_instruction",
    "turn_aborted",
    "user_instructions",
];
/// Names of the tags around a program's words that only tell the model how to read or to behave.
const REMINDERS: [&str; 2] = ["system-reminder", "local-command-caveat"];
/// First words of the line that Claude Code wrote behind a notification of a task that ended.
const BEHIND_NOTIFICATION: &str = "Read the output file to retrieve the result: ";
/// First words of the message in which Codex shows the instructions of a project.
const AGENTS_FILE: &str = "# AGENTS.md instructions for ";
/// First words of the messages in which Codex shows a project's rules, a skill, or a command that the user ran.
const MESSAGES: [&str; 3] = [AGENTS_FILE, "<skill>\n<name>", "<user_shell_command>"];
/// Members of a message's metadata that say who wrote it.
const MARKS: [&str; 5] = [
    "isMeta",
    "synthetic",
    "isCompactSummary",
    "provenance",
    "cwd",
];

/// First words of texts in which Codex shows the instructions of a project, and of a user.
const INSTRUCTIONS: [&str; 2] = [AGENTS_FILE, "<user_instructions>"];

/// Returns whether an added text has instructions that a person wrote down for the agent.
pub(super) fn is_instructions(text: &str) -> bool {
    INSTRUCTIONS.iter().any(|words| text.starts_with(words))
}

/// Returns whether a program wrote a whole message, by its first words.
pub(super) fn is_by_program(text: &str) -> bool {
    MESSAGES.iter().any(|words| text.starts_with(words))
}

/// Facts in the metadata of a message about its writer, at any depth.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Whether the message is marked as one of the program.
    is_marked: bool,
    /// Whether writers are named, and whether one of them is the user.
    writers: (bool, bool),
    /// Whether the message is a document, such as a summary.
    pub(super) is_document: bool,
    /// Folder in which the agent worked.
    pub(super) folder: Option<String>,
}

impl Marks {
    pub(super) fn of(meta: Option<&RawJson>) -> Self {
        let mut marks = Self::default();
        let text = meta.map_or("", RawJson::as_str);
        // Few messages have a mark, and a key with an escape may be one.
        if text.contains('\\') || MARKS.iter().any(|mark| text.contains(mark)) {
            marks.read(text);
        }
        marks
    }

    /// Returns whether a program wrote the whole message.
    pub(super) fn is_by_program(&self) -> bool {
        self.is_marked || self.writers == (true, false)
    }

    fn read(&mut self, json: &str) {
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
            return items.iter().for_each(|item| self.read(item.get()));
        }
        let Some(object) = RawObject::parse(json) else {
            return;
        };
        for member in &object.members {
            let is_true = member.value.get() == "true";
            match member.name.as_ref() {
                "isMeta" | "synthetic" => self.is_marked |= is_true,
                "isCompactSummary" => self.is_document |= is_true,
                "provenance" => {
                    let kind = RawObject::parse(member.value.get());
                    let kind = kind.and_then(|writer| writer.string("type"));
                    let is_user = kind.as_deref() == Some("user")
                        || string(member.value).as_deref() == Some("real_user");
                    self.writers = (true, self.writers.1 | is_user);
                }
                "cwd" if self.folder.is_none() => self.folder = string(member.value),
                _ => self.read(member.value.get()),
            }
        }
    }
}

/// Divides a user's text into the typed text and the blocks that programs added. The blocks are returned unchanged.
///
/// A block in tags with a dash in their name, such as `<system-reminder>`, is a program's, because people do not type
/// such markup. A command that a user gave to a program counts as typed.
pub(super) fn typed_and_injected(text: &str) -> (Cow<'_, str>, Vec<String>) {
    let mut injected: Vec<String> = Vec::new();
    if !text.contains('<') {
        return (Cow::Borrowed(text), injected);
    }
    let mut typed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tail) = rest.split_at(at);
        typed.push_str(before);
        let Some(name) = program_tag(tail) else {
            typed.push('<');
            rest = tail.get(1..).unwrap_or("");
            continue;
        };
        let close = format!("</{name}>");
        let (content, end) = match tail.find(&close) {
            Some(end) => (
                tail.get(name.len() + 2..end).unwrap_or(""),
                end + close.len(),
            ),
            None => ("", tail.len()),
        };
        let content = content.trim();
        let end = end + behind(tail.get(end..).unwrap_or(""));
        match name {
            "command-name" | "command-args" if !content.is_empty() => {
                typed.push_str(content);
                typed.push(' ');
            }
            "bash-input" => {
                typed.push_str("! ");
                typed.push_str(content);
            }
            _ => typed.push('\n'),
        }
        let block = tail.get(..end).unwrap_or(tail);
        match injected.last_mut() {
            // Blocks with only white space between them are joined.
            Some(last) if before.trim().is_empty() => {
                last.push_str(before);
                last.push_str(block);
            }
            _ => injected.push(block.to_owned()),
        }
        rest = tail.get(end..).unwrap_or("");
    }
    typed.push_str(rest);
    (Cow::Owned(typed), injected)
}

/// Returns the length of the line at the start of a text that belongs to the block before it.
fn behind(text: &str) -> usize {
    let line = text.trim_start();
    if !line.starts_with(BEHIND_NOTIFICATION) {
        return 0;
    }
    text.len() - line.len() + line.find('\n').unwrap_or(line.len())
}

/// Returns a text without the reminders before and behind it.
pub(super) fn without_reminders(text: &str) -> &str {
    let mut rest = text;
    loop {
        let shorter = REMINDERS.iter().find_map(|name| without_one(rest, name));
        match shorter {
            Some(shorter) => rest = shorter,
            None => return rest,
        }
    }
}

/// Returns a text without one block in tags of this name before or behind it; `None` if there is no such block.
fn without_one<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    if let Some(inside) = text.trim_start().strip_prefix(&open) {
        let (_, rest) = inside.split_once(&close)?;
        return Some(rest.trim_start_matches(['\r', '\n']));
    }
    let inside = text.trim_end().strip_suffix(&close)?;
    Some(inside.rsplit_once(&open)?.0.trim_end())
}

/// Returns the name of the tag at the beginning of a text, if programs write such a tag.
fn program_tag(text: &str) -> Option<&str> {
    let name = text.get(1..text.find('>').filter(|end| *end < 40)?)?;
    let dashed = name.contains('-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    (dashed || PROGRAM_BLOCKS.contains(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_agents::tasks::squeeze;

    #[test]
    fn programs_words_are_not_the_users() {
        let (typed, injected) = typed_and_injected("<system-reminder>x\ny</system-reminder>do it");
        assert_eq!(typed.trim(), "do it");
        assert_eq!(injected, ["<system-reminder>x\ny</system-reminder>"]);
        let (typed, injected) = typed_and_injected(
            "<command-name>/review</command-name>\n<command-args>all</command-args> <b>it</b>",
        );
        assert_eq!(squeeze(&typed), "/review all <b>it</b>");
        assert_eq!(
            injected,
            ["<command-name>/review</command-name>\n<command-args>all</command-args>"]
        );
        let (typed, injected) = typed_and_injected("a <system-reminder> open");
        assert_eq!((&*typed, &*injected[0]), ("a \n", "<system-reminder> open"));
        assert_eq!(typed_and_injected("1 < 2").0, "1 < 2");
    }

    #[test]
    fn the_line_behind_a_notification_is_a_programs() {
        let block = "<task-notification>\n<task-id>b6</task-id>\n</task-notification>\n\
                     Read the output file to retrieve the result: /tmp/b6.output";
        let text = format!("{block}\nGo on.");
        let (typed, injected) = typed_and_injected(&text);
        assert_eq!((typed.trim(), injected), ("Go on.", vec![block.to_owned()]));
    }

    #[test]
    fn files_of_instructions_are_told_from_other_texts_of_programs() {
        assert!(is_instructions(
            "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\n- Use tabs."
        ));
        assert!(is_instructions(
            "<user_instructions>\nUse tabs.\n</user_instructions>"
        ));
        assert!(!is_instructions(
            "<environment_context>x</environment_context>"
        ));
    }

    #[test]
    fn reminders_go_from_both_ends_and_stay_within_a_text() {
        let reminder = "<system-reminder>\nMind the files.\n</system-reminder>";
        for (text, rest) in [
            (
                format!("     1\tlet a = 1;\n\n{reminder}\n"),
                "     1\tlet a = 1;",
            ),
            (format!("{reminder}\n{reminder}\n  built"), "  built"),
            (format!("built{reminder}\n{reminder}"), "built"),
            (format!("{reminder}{reminder}"), ""),
            (
                "<local-command-caveat>Mind.</local-command-caveat>".to_owned(),
                "",
            ),
        ] {
            assert_eq!(without_reminders(&text), rest, "{text:?}");
        }
        for whole in [
            format!("a\n{reminder}\nb"),
            "<system-reminder> never closed".to_owned(),
            "never opened </system-reminder>".to_owned(),
            "<environment_context>x</environment_context>".to_owned(),
        ] {
            assert_eq!(without_reminders(&whole), whole);
        }
    }
}
