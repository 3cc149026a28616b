//! Separates a user's words from the text that programs add to them.

use std::borrow::Cow;

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
/// First words of the messages in which Codex shows a project's rules, a skill, or a command that the user ran.
const MESSAGES: [&str; 3] = [
    "# AGENTS.md instructions for ",
    "<skill>\n<name>",
    "<user_shell_command>",
];
/// Member of a message's metadata that names the writer, and its values for a user.
const PROVENANCE: &str = "\"provenance\":";
const BY_USER: [&str; 2] = ["{\"type\":\"user\"", "\"real_user\""];

/// Returns whether a program wrote a whole message, by its first words or its metadata.
pub(super) fn is_by_program(text: &str, meta: &str) -> bool {
    if MESSAGES.iter().any(|words| text.starts_with(words)) {
        return true;
    }
    let mut stated = meta.split(PROVENANCE).skip(1).peekable();
    let by_user = |stated: &str| BY_USER.iter().any(|user| stated.starts_with(user));
    stated.peek().is_some() && !stated.any(by_user)
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
    use crate::conventions::squeeze;

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
}
