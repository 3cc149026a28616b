//! From spans to messages. Text from messages is data: it is escaped wherever it is put into a
//! form of ours.

use std::borrow::Cow;
use std::fmt::Write as _;

use memory_model::{EntryKind, LogEntry, Part, ResultContent, Role, Seq, SeqRange, Summary};
use turn_map::Atom;

use crate::context::{ContextMessage, Source};

/// What to give the expand tool to read the message at `seq` whole.
pub fn message_pointer(seq: Seq) -> String {
    format!("message:{seq}")
}

/// A summary as it stands in a context: anna's XML as a user's message, or the messages that the
/// summary brings along.
///
/// The `<parents>` of anna's form are the summaries that a condensed one was made from.
/// `descendant_count` is how many messages it stands for.
pub fn render_summary(summary: &Summary) -> Vec<ContextMessage> {
    render_summary_text(summary, &summary.text)
}

/// As [`render_summary`], with another text in the summary's place.
pub(crate) fn render_summary_text(summary: &Summary, text: &str) -> Vec<ContextMessage> {
    let source = Source::Summary {
        first: summary.range.first,
        last: summary.range.last,
        summary_id: summary.id.clone(),
    };
    if let Some(messages) = &summary.messages
        && let Some(rendered) = own_messages(messages.as_str(), &source)
    {
        return rendered;
    }
    vec![ContextMessage {
        role: Role::User,
        name: None,
        tokens: 0,
        source,
        parts: vec![Part::text(summary_xml(summary, text))],
    }]
}

/// The messages of a summary that brings its own: `[{"role": …, "parts": […]}, …]`.
fn own_messages(json: &str, source: &Source) -> Option<Vec<ContextMessage>> {
    #[derive(serde::Deserialize)]
    struct Own {
        role: Role,
        name: Option<String>,
        parts: Vec<Part>,
    }
    let own: Vec<Own> = serde_json::from_str(json).ok()?;
    Some(
        own.into_iter()
            .map(|message| ContextMessage {
                role: message.role,
                name: message.name,
                tokens: 0,
                source: source.clone(),
                parts: message.parts,
            })
            .collect(),
    )
}

fn summary_xml(summary: &Summary, text: &str) -> String {
    let mut xml = String::with_capacity(text.len() + 256);
    // Writing to a string cannot fail.
    let _ = write!(
        xml,
        "<summary id=\"{}\" kind=\"{}\" depth=\"{}\" earliest_at=\"{}\" latest_at=\"{}\"",
        escape(summary.id.as_str()),
        summary.kind(),
        summary.depth,
        summary.earliest_at,
        summary.latest_at,
    );
    if !summary.is_leaf() {
        let _ = write!(xml, " descendant_count=\"{}\"", summary.range.len());
    }
    xml.push_str(">\n");
    let mut constituents = summary
        .children
        .iter()
        .filter_map(|child| child.summary())
        .peekable();
    if constituents.peek().is_some() {
        xml.push_str("<parents>\n");
        for id in constituents {
            let _ = writeln!(xml, "<summary_ref id=\"{}\" />", escape(id.as_str()));
        }
        xml.push_str("</parents>\n");
    }
    xml.push_str("<content>\n");
    xml.push_str(&escape(text));
    if !text.ends_with('\n') {
        xml.push('\n');
    }
    xml.push_str("</content>\n</summary>");
    xml
}

/// Text as XML content or attribute value.
fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The remark for messages that a view leaves out.
pub(crate) fn render_omitted(range: SeqRange) -> ContextMessage {
    let text = format!(
        "[{} messages left out: {}–{}]",
        range.len(),
        range.first,
        range.last
    );
    ContextMessage {
        role: Role::User,
        name: None,
        tokens: 0,
        source: Source::Omitted {
            first: range.first,
            last: range.last,
        },
        parts: vec![Part::text(text)],
    }
}

/// An atom's entries as messages: lines of one response are joined, calls without a result get a
/// stub, and results that came too late or answer nothing become text.
///
/// `entries` are the atom's, whose positions are sequence numbers. Adds the stubbed calls' ids to
/// `stubbed`.
pub(crate) fn render_atom(
    atom: &Atom,
    entries: &[LogEntry],
    stubbed: &mut Vec<String>,
) -> Vec<ContextMessage> {
    let mut out: Vec<ContextMessage> = Vec::new();
    // Where the message of each response begun in this atom stands.
    let mut open: Vec<(&str, usize)> = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
    {
        let mut parts = Vec::with_capacity(entry.parts.len());
        for part in &entry.parts {
            parts.push(place_result(part, entry.seq, atom));
        }
        let joined = match entry.response.as_deref() {
            Some(id) if entry.role == Role::Assistant => {
                let found = open
                    .iter()
                    .find(|(open, _)| *open == id)
                    .map(|(_, index)| *index);
                if found.is_none() {
                    open.push((id, out.len()));
                }
                found
            }
            _ => None,
        };
        if let Some(message) = joined.and_then(|index| out.get_mut(index)) {
            message.parts.extend(parts);
            if let Source::Message { last, .. } = &mut message.source {
                *last = entry.seq;
            }
            continue;
        }
        out.push(ContextMessage {
            role: entry.role,
            name: entry.name.clone(),
            tokens: 0,
            source: Source::Message {
                first: entry.seq,
                last: entry.seq,
            },
            parts,
        });
    }
    add_stubs(atom, &mut out, stubbed);
    out
}

/// A result as it may stand: as it is when its call is in the same atom, else as text.
fn place_result(part: &Part, seq: Seq, atom: &Atom) -> Part {
    let Part::ToolResult {
        call_id, content, ..
    } = part
    else {
        return part.clone();
    };
    let late = atom
        .late()
        .iter()
        .find(|late| late.message == seq.0 as usize && *late.id == **call_id);
    let Some(late) = late else {
        return part.clone();
    };
    let heading = match late.call {
        Some(call) => format!("[late result of the call {call_id} in message {call}]"),
        None => format!("[result of the call {call_id}, which is not in this context]"),
    };
    Part::text(format!("{heading}\n{}", content.text()))
}

/// Gives every call that has no result in its atom a stub, right after the message that calls.
fn add_stubs(atom: &Atom, out: &mut Vec<ContextMessage>, stubbed: &mut Vec<String>) {
    if atom.unanswered().is_empty() {
        return;
    }
    let mut index = 0;
    while index < out.len() {
        let Some(message) = out.get(index) else { break };
        let (source, mut stubs) = (message.source.clone(), Vec::new());
        if message.role == Role::Assistant {
            for part in &message.parts {
                let Part::ToolCall { id, .. } = part else {
                    continue;
                };
                let unanswered = atom.unanswered().iter().any(|call| {
                    *call.id == **id
                        && source
                            .range()
                            .is_some_and(|range| range.contains(Seq(call.message as u32)))
                });
                if unanswered && !stubs.iter().any(|(stub, _)| stub == id) {
                    let content = ResultContent::Text("[no result]".to_owned());
                    let result = Part::ToolResult {
                        call_id: id.clone(),
                        content,
                        is_error: None,
                    };
                    stubs.push((id.clone(), result));
                }
            }
        }
        index += 1;
        if stubs.is_empty() {
            continue;
        }
        let mut parts = Vec::with_capacity(stubs.len());
        for (id, part) in stubs {
            stubbed.push(id);
            parts.push(part);
        }
        let stub = ContextMessage {
            role: Role::Tool,
            name: None,
            tokens: 0,
            source,
            parts,
        };
        out.insert(index, stub);
        index += 1;
    }
}

/// Messages as plain text, for a person, a summarizer or a last resort: one block a message, each
/// line of content indented, so that content never looks like a heading.
pub fn render_text(messages: &[ContextMessage]) -> String {
    let mut out = String::new();
    for message in messages {
        let place = match &message.source {
            Source::Identity => "identity".to_owned(),
            Source::Summary {
                summary_id,
                first,
                last,
            } => format!("{summary_id} {first}-{last}"),
            Source::Message { first, last } if first == last => format!("{first}"),
            Source::Message { first, last } => format!("{first}-{last}"),
            Source::Trimmed { first, last } => format!("{first}-{last} shortened"),
            Source::Omitted { first, last } => format!("{first}-{last} left out"),
        };
        let _ = write!(out, "[{place}] {}", message.role);
        if let Some(name) = &message.name {
            let _ = write!(out, " ({})", name.escape_debug());
        }
        let _ = writeln!(out, ", {} tokens", message.tokens);
        for part in &message.parts {
            part_text(part, &mut out);
        }
    }
    out
}

fn part_text(part: &Part, out: &mut String) {
    match part {
        Part::Text { text } => indent(text, out),
        Part::Reasoning { text, .. } => {
            out.push_str("  (reasoning)\n");
            indent(text, out);
        }
        Part::ToolCall {
            id,
            name,
            arguments,
        } => {
            let _ = writeln!(out, "  -> {} {}", name.escape_debug(), id.escape_debug());
            indent(arguments.as_str(), out);
        }
        Part::ToolResult {
            call_id,
            content,
            is_error,
        } => {
            let failed = if *is_error == Some(true) {
                ", failed"
            } else {
                ""
            };
            let _ = writeln!(out, "  <- {}{failed}", call_id.escape_debug());
            match content {
                ResultContent::Text(text) => indent(text, out),
                ResultContent::Parts(parts) => {
                    for part in parts {
                        part_text(part, out);
                    }
                }
            }
        }
        Part::Image(media) => {
            let _ = writeln!(out, "  (image, {})", media.media_type.escape_debug());
        }
        Part::File(media) => {
            let _ = writeln!(out, "  (file, {})", media.media_type.escape_debug());
        }
        Part::Unknown { raw } => indent(raw.as_str(), out),
    }
}

fn indent(text: &str, out: &mut String) {
    for line in text.lines() {
        out.push_str("    ");
        out.push_str(line);
        out.push('\n');
    }
}
