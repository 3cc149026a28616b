//! From spans to messages. Text from messages is data: it is escaped wherever it is put into a
//! form of ours.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use memory_model::{
    EntryKind, LogEntry, Part, ResultContent, Role, Seq, SeqRange, Summary, Timestamp,
};
use turn_map::{Atom, LateResult};

use crate::context::{ContextMessage, Source};

/// What to give the expand tool to read the message at `seq` whole.
pub fn message_pointer(seq: Seq) -> String {
    format!("message:{seq}")
}

/// A summary as it stands in a context: anna's XML as a user's message, or the messages that the
/// summary brings along.
///
/// The `<parents>` of anna's form are the summaries that a condensed one was made from.
/// `descendant_count` is the older engine's figure of that name, where the summary's maker gave it:
/// see [`SummaryFigures`](memory_model::SummaryFigures).
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
        "<summary id=\"{}\" kind=\"{}\" depth=\"{}\"",
        escape(summary.id.as_str()),
        summary.kind(),
        summary.depth,
    );
    // Messages without a time have time 0.
    let unknown = Timestamp::default();
    if (summary.earliest_at, summary.latest_at) != (unknown, unknown) {
        let (earliest, latest) = (summary.earliest_at, summary.latest_at);
        let _ = write!(xml, " earliest_at=\"{earliest}\" latest_at=\"{latest}\"");
    }
    if let Some(figures) = summary.figures().filter(|_| !summary.is_leaf()) {
        let _ = write!(xml, " descendant_count=\"{}\"", figures.descendant_count);
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
    let mut out: Vec<ContextMessage> = Vec::with_capacity(entries.len());
    // Calls without a result, by the message that is to hold their stubs' calls.
    let mut stubs: Vec<Vec<Part>> = Vec::with_capacity(entries.len());
    // An atom holds the lines of at most one response: where their message stands.
    let mut response: Option<(&str, usize)> = None;
    let (mut unanswered, mut late) = (atom.unanswered(), atom.late());
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
    {
        let here = entry.seq.0 as usize;
        let calls = take_while(&mut unanswered, |call| call.message <= here);
        let results = take_while(&mut late, |late| late.message <= here);
        let mut parts = entry.parts.clone();
        place_late(&mut parts, results);
        let stub = calls.iter().map(|call| Part::ToolResult {
            call_id: call.id.to_string(),
            content: ResultContent::Text("[no result]".to_owned()),
            is_error: None,
        });
        stubbed.extend(calls.iter().map(|call| call.id.to_string()));
        let joined = match (entry.response.as_deref(), response) {
            (Some(id), Some((open, index))) if entry.role == Role::Assistant && open == id => {
                Some(index)
            }
            _ => None,
        };
        let lines = joined.and_then(|index| Some((out.get_mut(index)?, stubs.get_mut(index)?)));
        if let Some((message, stubs)) = lines {
            message.parts.extend(parts);
            stubs.extend(stub);
            if let Source::Message { last, .. } = &mut message.source {
                *last = entry.seq;
            }
            continue;
        }
        if let (Some(id), Role::Assistant) = (entry.response.as_deref(), entry.role) {
            response = Some((id, out.len()));
        }
        let result = |part: &Part| matches!(part, Part::ToolResult { .. });
        // A tool's message is one of results; without any left it is a text like others.
        let role = match entry.role {
            Role::Tool if !results.is_empty() && !parts.iter().any(result) => Role::User,
            role => role,
        };
        out.push(ContextMessage {
            role,
            name: entry.name.clone(),
            tokens: 0,
            source: Source::Message {
                first: entry.seq,
                last: entry.seq,
            },
            parts,
        });
        stubs.push(stub.collect());
    }
    if atom.unanswered().is_empty() {
        return out;
    }
    // Each stub right after the message that calls.
    out.into_iter()
        .zip(stubs)
        .flat_map(|(message, stubs)| {
            let stub = (!stubs.is_empty()).then(|| ContextMessage {
                role: Role::Tool,
                name: None,
                tokens: 0,
                source: message.source.clone(),
                parts: stubs,
            });
            std::iter::once(message).chain(stub)
        })
        .collect()
}

/// Takes the beginning of a slice, as far as `belongs` says.
fn take_while<'a, T>(rest: &mut &'a [T], belongs: impl FnMut(&T) -> bool) -> &'a [T] {
    let (taken, left) = rest.split_at(rest.partition_point(belongs));
    *rest = left;
    taken
}

/// Makes text of the results among a message's parts that are `late`. Where several results of a
/// message name the same call, the first may answer it; the late ones are the last.
fn place_late(parts: &mut Vec<Part>, late: &[LateResult]) {
    if late.is_empty() {
        return;
    }
    let mut left: HashMap<&str, Vec<&LateResult>> = HashMap::new();
    for result in late {
        left.entry(&result.id).or_default().push(result);
    }
    let mut newest_first = Vec::with_capacity(parts.len());
    for part in std::mem::take(parts).into_iter().rev() {
        match part {
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => match left.get_mut(call_id.as_str()).and_then(Vec::pop) {
                Some(late) => {
                    newest_first.extend(late_parts(late, content, is_error).into_iter().rev());
                }
                None => newest_first.push(Part::ToolResult {
                    call_id,
                    content,
                    is_error,
                }),
            },
            part => newest_first.push(part),
        }
    }
    newest_first.reverse();
    *parts = newest_first;
}

/// A late result as parts that are no result: a heading that points to its call, then its content.
fn late_parts(late: &LateResult, content: ResultContent, is_error: Option<bool>) -> Vec<Part> {
    let id = late.id.escape_debug();
    let failed = if is_error == Some(true) {
        ", failed"
    } else {
        ""
    };
    let heading = match late.call {
        Some(call) => format!("[late result of the call {id} in message {call}{failed}]"),
        None => format!("[result of the call {id}, which is not in this context{failed}]"),
    };
    match content {
        ResultContent::Text(text) => vec![Part::text(format!("{heading}\n{text}"))],
        ResultContent::Parts(parts) => {
            // Calls and results inside of a result are data, not calls.
            let inner = parts.into_iter().map(|part| match part {
                Part::ToolCall { .. } | Part::ToolResult { .. } => {
                    let mut text = String::new();
                    part_text(&part, &mut text);
                    Part::text(text)
                }
                part => part,
            });
            std::iter::once(Part::text(heading)).chain(inner).collect()
        }
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

/// Each line of `text`, indented. Whatever a terminal may take for the end of a line ends one, and
/// other control characters are written as escapes, so that no text can move the cursor.
fn indent(text: &str, out: &mut String) {
    const ENDS: [char; 6] = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    for line in text.lines().flat_map(|line| line.split(ENDS)) {
        out.push_str("    ");
        for c in line.chars() {
            if c.is_control() && c != '\t' {
                out.extend(c.escape_debug());
            } else {
                out.push(c);
            }
        }
        out.push('\n');
    }
}
