//! The words of a message, as a prompt shows them: who speaks, and the words without those that are no conversation.
//!
//! Notes, reasoning and programs' reminders are no conversation. Of a text that a program put into a user's message, such
//! as the template of a slash command, one line remains.

use std::borrow::Cow;
use std::collections::BTreeMap;

use extractive_summarizer::{Source, TYPED_BYTES};
use memory_model::conventions::{AgentConventions, Rejection, ToolAction, ToolUse};
use memory_model::{EntryKind, LogEntry, Part, Role};

use super::data::{medium, result_text};

/// Maximum number of characters of the line that stands for a program's text.
const LINE_CHARS: usize = 160;
/// First characters of a text in which a program only repeats the command that the user gave.
const COMMAND: &str = "<command-";
/// Maximum number of bytes of a command that is written on one line.
const COMMAND_BYTES: usize = 240;

/// Words of one message, by speaker.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) speaker: &'static str,
    pub(super) lines: Vec<Line<'a>>,
}

/// A text of a message.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Words before the text, such as `result: `.
    pub(super) before: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
    pub(super) kind: LineKind,
}

/// Kind of a text, which decides how much of it a prompt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Words of the user or the assistant.
    Speech,
    /// A document in a message.
    Document,
    /// Arguments of a tool call.
    Arguments,
    /// Result of a tool call, or content of an unknown form.
    Result,
}

/// A tool call of a source.
#[derive(Debug)]
pub(super) struct Call {
    told: ToolUse,
    /// Distinguishes calls that ran at the same time: `Read#2`. `None` for a call that ran alone.
    number: Option<usize>,
    /// Whether the user spoke afterwards, and there is no result.
    is_unanswered: bool,
}

/// Returns the tool calls in a source, by their ids.
pub(super) fn calls<'a>(
    pieces: &[Source<'a>],
    conventions: &dyn AgentConventions,
) -> BTreeMap<&'a str, Call> {
    let mut calls: BTreeMap<&str, Call> = BTreeMap::new();
    // Calls that wait for their results, and the number of calls since none did.
    let (mut open, mut begun): (Vec<(&str, usize)>, usize) = (Vec::new(), 0);
    let messages = pieces.iter().filter_map(|piece| match *piece {
        Source::Message(entry) if entry.kind == EntryKind::Message => Some(entry),
        _ => None,
    });
    for entry in messages {
        for part in &entry.parts {
            match part {
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => {
                    begun = if open.is_empty() { 1 } else { begun + 1 };
                    open.push((id, begun));
                    let call = Call {
                        told: conventions.tool_use(name, arguments.as_str()),
                        number: None,
                        is_unanswered: false,
                    };
                    calls.insert(id, call);
                    for (id, number) in open.iter().filter(|_| open.len() > 1) {
                        if let Some(call) = calls.get_mut(id) {
                            call.number = Some(*number);
                        }
                    }
                }
                Part::ToolResult { call_id, .. } => {
                    open.retain(|(id, _)| id != call_id);
                    if let Some(call) = calls.get_mut(call_id.as_str()) {
                        call.is_unanswered = false;
                    }
                }
                _ => {}
            }
        }
        // A result behind the user's words is still one, and behind the end of the source it may follow.
        if entry.role == Role::User {
            for (id, _) in open.drain(..) {
                if let Some(call) = calls.get_mut(id) {
                    call.is_unanswered = true;
                }
            }
        }
    }
    calls
}

/// Returns the words of a message; `None` for a note, and for a message without words.
pub(super) fn said<'a>(
    entry: &'a LogEntry,
    calls: &BTreeMap<&str, Call>,
    conventions: &dyn AgentConventions,
) -> Option<Said<'a>> {
    if entry.kind == EntryKind::Note {
        return None;
    }
    let mut lines = Vec::new();
    let mut added = Vec::new();
    for part in &entry.parts {
        match part {
            Part::Text { text } if entry.role == Role::User => {
                user(entry, text, conventions, &mut lines, &mut added);
            }
            Part::Text { text } => lines.push(Line {
                before: "".into(),
                text: text.trim().into(),
                kind: match entry.role {
                    Role::System => LineKind::Document,
                    _ => LineKind::Speech,
                },
            }),
            // A model's reasoning is not part of the conversation.
            Part::Reasoning { .. } => {}
            Part::ToolCall {
                id,
                name,
                arguments,
            } => lines.push(Line {
                before: called(name, calls.get(id.as_str())).into(),
                text: arguments.as_str().into(),
                kind: LineKind::Arguments,
            }),
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                let call = calls.get(call_id.as_str());
                let (told, number) = (
                    call.map(|call| &call.told),
                    call.and_then(|call| call.number),
                );
                let text = result_text(content);
                let mut line = result(told, &text, *is_error == Some(true), conventions);
                if let Some(number) = number {
                    line.before = format!("#{number} {}", line.before).into();
                }
                lines.push(line);
            }
            Part::Image(media) => lines.push(word(medium("image", media))),
            Part::File(media) => lines.push(word(medium("file", media))),
            Part::Unknown { raw } => lines.push(Line {
                before: "".into(),
                text: raw.without_bytes(),
                kind: LineKind::Result,
            }),
        }
    }
    lines.retain(|line| !line.before.is_empty() || !line.text.trim().is_empty());
    let speaker = match lines.is_empty() {
        true => "program",
        false => entry.role.as_str(),
    };
    lines.extend(added);
    (!lines.is_empty()).then_some(Said { speaker, lines })
}

/// Returns the words before the arguments of a tool call: its name, its number if others ran at the same time, and whether its
/// result is missing.
fn called(name: &str, call: Option<&Call>) -> String {
    let number = call.and_then(|call| call.number);
    let number = number.map_or_else(String::new, |number| format!("#{number}"));
    match call {
        Some(call) if call.is_unanswered => format!("call {name}{number} (no result) "),
        _ => format!("call {name}{number} "),
    }
}

fn word<'a>(text: String) -> Line<'a> {
    Line {
        before: "".into(),
        text: text.into(),
        kind: LineKind::Speech,
    }
}

/// Adds the words of a user's text to `lines`, and what remains of the texts that programs put into it to `added`.
fn user<'a>(
    entry: &'a LogEntry,
    text: &'a str,
    conventions: &dyn AgentConventions,
    lines: &mut Vec<Line<'a>>,
    added: &mut Vec<Line<'a>>,
) {
    let user = conventions.user_text(text, entry.meta.as_ref());
    let is_long = user.typed.len() > TYPED_BYTES;
    let is_command = user.injected.iter().any(|text| text.starts_with(COMMAND))
        && user.typed.len() <= COMMAND_BYTES;
    let text = match user.typed {
        text if is_command => Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    lines.push(Line {
        before: "".into(),
        text,
        kind: match is_long || user.is_document {
            true => LineKind::Document,
            false => LineKind::Speech,
        },
    });
    for text in &user.injected {
        let text = conventions.without_reminders(text).trim();
        if !text.is_empty() && !text.starts_with(COMMAND) {
            added.push(program(text));
        }
    }
}

/// Returns what remains of a text that a program put into a message. A text in tags, such as the output of the user's
/// own command, is shown like a result. Of another text, such as the template of a slash command, one line is shown.
fn program<'a>(text: &str) -> Line<'a> {
    if text.starts_with('<') {
        return Line {
            before: "added by the program: ".into(),
            text: text.to_owned().into(),
            kind: LineKind::Result,
        };
    }
    let total = text.chars().count();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(LINE_CHARS).collect();
    word(match total <= LINE_CHARS {
        true => format!("added by the program: {line}"),
        false => format!("added by the program, {total} characters: {line} …"),
    })
}

/// Returns the result of a tool call without the words that the agent's program puts around it. The line says whether
/// it is a failure, an answer of the user, or a refusal.
fn result<'a>(
    call: Option<&ToolUse>,
    text: &str,
    is_error: bool,
    conventions: &dyn AgentConventions,
) -> Line<'a> {
    let line = |before: &'static str, text: &str| Line {
        before: before.into(),
        text: text.trim_end().to_owned().into(),
        kind: LineKind::Result,
    };
    let outcome = conventions.tool_result(call, text, is_error);
    if let Some(Rejection { reason, .. }) = outcome.rejection {
        return match reason.trim() {
            "" => line("refused by the user", ""),
            reason => Line {
                kind: LineKind::Speech,
                ..line("refused by the user: ", reason)
            },
        };
    }
    let shown = match conventions.without_reminders(&outcome.text) {
        // A reminder alone is the outcome of the call, such as a read behind the end of a file.
        "" => untagged(outcome.text.trim()),
        text => text,
    };
    let is_answer = call.is_some_and(|call| call.action == ToolAction::AskUser);
    match (outcome.is_interrupted, outcome.is_error) {
        (true, _) => line("result (interrupted): ", shown),
        (_, true) => line("result (error): ", shown),
        _ if is_answer => Line {
            kind: LineKind::Speech,
            ..line("answer of the user: ", shown)
        },
        _ if shown.trim().is_empty() => line("result: (no output)", ""),
        _ => line("result: ", shown),
    }
}

/// Returns a text without the tags around it.
fn untagged(text: &str) -> &str {
    let inside = text.split_once('>').map(|(_, inside)| inside);
    let inside = inside.and_then(|inside| inside.rsplit_once('<'));
    inside.map_or(text, |(inside, _)| inside.trim())
}

#[cfg(test)]
mod tests {
    use memory_model::conventions::{GenericConventions, UserText};
    use memory_model::{Hash, Message, RawJson, Seq};

    use super::*;

    /// Conventions of an invented agent.
    #[derive(Debug)]
    struct Agent;

    impl AgentConventions for Agent {
        fn id(&self) -> &str {
            "agent@1"
        }

        fn without_reminders<'a>(&self, text: &'a str) -> &'a str {
            text.split("<mind>").next().unwrap_or(text)
        }

        fn user_text<'a>(&self, text: &'a str, meta: Option<&RawJson>) -> UserText<'a> {
            let is_program = meta.is_some();
            UserText {
                typed: if is_program { "" } else { text }.into(),
                injected: is_program.then(|| text.to_owned()).into_iter().collect(),
                is_document: false,
            }
        }
    }

    fn entry(message: Message) -> LogEntry {
        LogEntry {
            seq: Seq(3),
            message,
            tokens: 1,
            running: 1,
            hash: Hash::ZERO,
        }
    }

    fn shown(message: Message, conventions: &dyn AgentConventions) -> Option<String> {
        let entry = entry(message);
        let said = said(&entry, &BTreeMap::new(), conventions)?;
        let lines = said.lines.iter();
        let lines = lines.map(|line| format!("{}{}", line.before, line.text));
        let lines: Vec<String> = lines.collect();
        Some(format!("{}: {}", said.speaker, lines.join("\n")))
    }

    fn by_program(text: &str) -> Message {
        Message {
            meta: Some(RawJson::parse("{}").unwrap()),
            ..Message::user(text)
        }
    }

    #[test]
    fn what_is_no_conversation_is_not_shown() {
        let mut reasoning = Message::assistant("x");
        reasoning.parts = vec![Part::Reasoning {
            text: "Hm.".to_owned(),
            signature: None,
        }];
        for nothing in [
            Message::note(Role::System, vec![Part::text("{\"subtype\":\"hook\"}")]),
            Message::note(Role::User, vec![Part::text("label")]),
            Message::user(" \n"),
            Message::assistant(""),
            reasoning,
            by_program("<mind>the rules"),
            by_program("<command-name>/review</command-name>"),
        ] {
            assert_eq!(shown(nothing.clone(), &Agent), None, "{nothing:?}");
        }
    }

    #[test]
    fn calls_at_the_same_time_have_numbers_and_unanswered_ones_say_so() {
        let call = |id: &str| Part::ToolCall {
            id: id.to_owned(),
            name: "Read".to_owned(),
            arguments: RawJson::parse("{}").unwrap(),
        };
        let parts = |parts: Vec<Part>| Message {
            parts,
            ..Message::assistant("")
        };
        let entries = [
            parts(vec![call("a")]),
            Message::tool_result("a", "one"),
            parts(vec![call("b"), call("c")]),
            Message::tool_result("c", "three"),
            Message::tool_result("b", "two"),
            parts(vec![call("d"), call("e")]),
            Message::tool_result("d", "four"),
            parts(vec![call("f")]),
            Message::tool_result("f", "six"),
            Message::user("Stop."),
            parts(vec![call("g")]),
        ]
        .map(entry);
        let source: Vec<Source<'_>> = entries.iter().map(Source::from).collect();
        let calls = calls(&source, &GenericConventions);
        let lines = entries
            .iter()
            .filter_map(|entry| said(entry, &calls, &GenericConventions));
        let lines: Vec<String> = lines
            .flat_map(|said| said.lines)
            .map(|line| format!("{}{}", line.before, line.text))
            .collect();
        assert_eq!(
            lines,
            [
                "call Read {}",
                "result: one",
                "call Read#1 {}",
                "call Read#2 {}",
                "#2 result: three",
                "#1 result: two",
                "call Read#1 {}",
                "call Read#2 (no result) {}",
                "#1 result: four",
                "call Read#3 {}",
                "#3 result: six",
                "Stop.",
                // Its result may follow behind the source.
                "call Read {}",
            ]
        );
    }

    #[test]
    fn a_template_is_one_line_with_its_length() {
        let template = format!("# Review\n\nLook at each file.\n{}", "Mind it. ".repeat(90));
        let line = shown(by_program(&template), &Agent).unwrap();
        assert!(
            line.starts_with(
                "program: added by the program, 838 characters: # Review Look at each file. Mind"
            ),
            "{line}"
        );
        assert!(line.ends_with(" …") && line.chars().count() < 230 && !line.contains('\n'));
        assert_eq!(
            shown(by_program("Go on\nnow."), &Agent).unwrap(),
            "program: added by the program: Go on now."
        );
        let output = "<out>1\n2</out>";
        assert_eq!(
            shown(by_program(output), &Agent).unwrap(),
            format!("program: added by the program: {output}")
        );
    }

    #[test]
    fn results_end_before_reminders() {
        let result = |text: &str| shown(Message::tool_result("c", text), &Agent).unwrap();
        assert_eq!(result("a = 1\n<mind>x</mind>"), "tool: result: a = 1");
        assert_eq!(
            result("<mind>Behind the end.</mind>"),
            "tool: result: Behind the end."
        );
        assert_eq!(result(" \n"), "tool: result: (no output)");
    }

    #[test]
    fn a_long_text_of_the_user_is_a_document() {
        let kinds = |message: Message| {
            let entry = entry(message);
            let said = said(&entry, &BTreeMap::new(), &GenericConventions).unwrap();
            said.lines.iter().map(|line| line.kind).collect::<Vec<_>>()
        };
        let long = "word ".repeat(TYPED_BYTES / 4);
        assert_eq!(kinds(Message::user("Do it.")), [LineKind::Speech]);
        assert_eq!(kinds(Message::user(&*long)), [LineKind::Document]);
        assert_eq!(kinds(Message::assistant(&*long)), [LineKind::Speech]);
        assert_eq!(kinds(Message::system("Be brief.")), [LineKind::Document]);
    }
}
