//! Renders summaries and omissions as messages, and messages as text. Escapes text from messages.

use std::borrow::Cow;
use std::fmt::Write as _;

use memory_model::{Part, ResultContent, Role, Seq, SeqRange, Summary};
use turn_map::left_out;

use crate::context::{ContextMessage, MessageOrigin};
use crate::fit::{Line, Placed, fit};
use crate::marks::{escape_marks, escape_part, escape_summary, quoted, remark};

/// Name and version of the format in which [`render_summary`] renders summaries. Every change of the format gets a new
/// version. Costs under different versions must not be compared.
pub const SUMMARY_RENDERING: &str = "summary-xml@3";

/// Text of the assistant's message after a summary.
const ACKNOWLEDGEMENT: &str = "Understood. I will continue from this summary.";

/// Returns the argument with which the expand tool shows the whole message at `seq`, such as `message:7`.
pub fn message_pointer(seq: Seq) -> String {
    format!("message:{seq}")
}

/// Returns the argument with which the expand tool shows a range of messages.
pub(crate) fn range_pointer(range: SeqRange) -> String {
    if range.first == range.last {
        message_pointer(range.first)
    } else {
        format!("messages:{range}")
    }
}

/// Renders a summary as XML in a message of the user, or as the messages that the summary contains.
///
/// `<parents>` lists the ids of the summaries among the sources of the summary. `descendant_count` is included if the
/// summary has [`SummaryFigures`](memory_model::SummaryFigures).
pub fn render_summary(summary: &Summary) -> Vec<ContextMessage> {
    let source = origin(summary);
    if let Some(messages) = &summary.messages
        && let Some(rendered) = own_messages(messages.as_str(), &source)
    {
        return rendered;
    }
    let parts = vec![Part::text(summary_xml(summary))];
    vec![ContextMessage::new(Role::User, source, parts)]
}

/// Returns the assistant's acknowledgement of a summary.
pub(crate) fn acknowledgement(summary: &Summary) -> ContextMessage {
    let parts = vec![Part::text(ACKNOWLEDGEMENT)];
    ContextMessage::new(Role::Assistant, origin(summary), parts)
}

/// Returns whether a message acknowledges a summary.
pub(crate) fn is_acknowledgement(message: &ContextMessage) -> bool {
    matches!(message.source, MessageOrigin::Summary { .. })
        && message.role == Role::Assistant
        && matches!(&*message.parts, [Part::Text { text }] if text == ACKNOWLEDGEMENT)
}

fn origin(summary: &Summary) -> MessageOrigin {
    MessageOrigin::Summary {
        first: summary.range.first,
        last: summary.range.last,
        summary_id: summary.id.clone(),
    }
}

/// Renders a short form of a summary with the text `text`. `lines` are the number of shown lines and the number of all
/// lines. A remark follows the text if `omitted` is not 0: the number of tokens that are left out.
pub(crate) fn render_summary_form(
    summary: &Summary,
    text: &str,
    lines: (usize, usize),
    omitted: u64,
) -> ContextMessage {
    let (lines, of_lines) = lines;
    let id = escape(summary.id.as_str());
    let mut body = escape_summary(text).into_owned();
    if omitted > 0 {
        if !body.is_empty() {
            body.push('\n');
        }
        body.push_str(&left_out(omitted, &id));
    }
    let xml = format!(
        "<summary id=\"{id}\" messages=\"{}\" lines=\"{lines} of {of_lines}\">\n{body}\n</summary>",
        summary.range,
    );
    ContextMessage::new(Role::User, origin(summary), vec![Part::text(xml)])
}

/// Returns the messages of a summary that contains messages as JSON: `[{"role": …, "parts": […]}, …]`. `None` for other
/// text.
fn own_messages(json: &str, source: &MessageOrigin) -> Option<Vec<ContextMessage>> {
    #[derive(serde::Deserialize)]
    struct Own {
        role: Role,
        name: Option<String>,
        parts: Vec<Part>,
    }
    let own: Vec<Own> = serde_json::from_str(json).ok()?;
    let lines = own.into_iter().map(|message| Line {
        role: message.role,
        name: message.name,
        source: source.clone(),
        parts: message
            .parts
            .into_iter()
            .map(|mut part| {
                escape_part(&mut part);
                Placed {
                    part,
                    seq: None,
                    phase: None,
                }
            })
            .collect(),
        inserted: false,
    });
    Some(fit(lines.collect()).messages)
}

fn summary_xml(summary: &Summary) -> String {
    let text = summary.text();
    let mut xml = String::with_capacity(text.len() + 256);
    // Writing to a string cannot fail.
    let _ = write!(
        xml,
        "<summary id=\"{}\" kind=\"{}\" depth=\"{}\"",
        escape(summary.id.as_str()),
        summary.kind(),
        summary.depth,
    );
    if let (Some(earliest), Some(latest)) = (summary.earliest_at.known(), summary.latest_at.known())
    {
        let _ = write!(xml, " earliest_at=\"{earliest}\" latest_at=\"{latest}\"");
    }
    if let Some(figures) = summary.figures().filter(|_| !summary.is_leaf()) {
        let _ = write!(xml, " descendant_count=\"{}\"", figures.descendant_count);
    }
    xml.push_str(">\n");
    let mut sources = summary.source_summaries().peekable();
    if sources.peek().is_some() {
        xml.push_str("<parents>\n");
        for id in sources {
            let _ = writeln!(xml, "<summary_ref id=\"{}\" />", escape(id.as_str()));
        }
        xml.push_str("</parents>\n");
    }
    xml.push_str("<content>\n");
    xml.push_str(&escape_summary(text));
    if !text.ends_with('\n') {
        xml.push('\n');
    }
    xml.push_str("</content>\n</summary>");
    xml
}

/// Escapes text for XML content and attribute values.
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

/// Renders a remark that the view omits messages.
pub(crate) fn render_omitted(range: SeqRange) -> ContextMessage {
    let text = remark(format!(
        "{} messages left out: {}–{}",
        range.len(),
        range.first,
        range.last
    ));
    let source = MessageOrigin::Omitted {
        first: range.first,
        last: range.last,
    };
    ContextMessage::new(Role::User, source, vec![Part::text(text)])
}

/// Renders messages as plain text, one block for each message, with the costs in the headings. Each line of content is
/// indented, so that content never looks like a heading.
pub fn render_text(messages: &[ContextMessage]) -> String {
    render(messages, true)
}

/// Renders messages like [`render_text`], but without their costs, for snapshots that do not depend on the estimator.
pub fn render_text_without_tokens(messages: &[ContextMessage]) -> String {
    render(messages, false)
}

fn render(messages: &[ContextMessage], with_tokens: bool) -> String {
    let mut out = String::new();
    for message in messages {
        let place = match &message.source {
            MessageOrigin::Identity => "identity".to_owned(),
            MessageOrigin::System => "system prompt".to_owned(),
            MessageOrigin::State { .. } => "state".to_owned(),
            MessageOrigin::Summary {
                summary_id,
                first,
                last,
            } => format!("{summary_id} {first}-{last}"),
            MessageOrigin::Message { first, last } if first == last => format!("{first}"),
            MessageOrigin::Message { first, last } => format!("{first}-{last}"),
            MessageOrigin::Trimmed { first, last } => format!("{first}-{last} shortened"),
            MessageOrigin::Omitted { first, last } => format!("{first}-{last} left out"),
            MessageOrigin::Quoted { first, last } if first == last => format!("{first} again"),
            MessageOrigin::Quoted { first, last } => format!("{first}-{last} again"),
        };
        let _ = write!(out, "[{place}] {}", message.role);
        if let Some(name) = &message.name {
            let _ = write!(out, " ({})", quoted(name));
        }
        if with_tokens {
            let _ = write!(out, ", {} tokens", message.tokens);
        }
        out.push('\n');
        for part in &message.parts {
            part_text(part, &mut out);
        }
    }
    out
}

/// Appends a part as text. Does not escape it, because the texts in a context are already escaped.
pub(crate) fn part_text(part: &Part, out: &mut String) {
    match part {
        Part::Text { text } => indent(text, out),
        Part::Reasoning { text, .. } => {
            out.push_str("  (reasoning)\n");
            indent(&escape_marks(text), out);
        }
        Part::ToolCall {
            id,
            name,
            arguments,
        } => {
            let _ = writeln!(out, "  -> {} {}", quoted(name), quoted(id));
            indent(&escape_marks(arguments.as_str()), out);
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
            let _ = writeln!(out, "  <- {}{failed}", quoted(call_id));
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
        Part::Unknown { raw } => indent(&escape_marks(&raw.without_bytes()), out),
    }
}

/// Appends each line of `text`, indented. Every character that a terminal may treat as the end of a line ends a line.
/// Other control characters are escaped, so that no text can move the cursor.
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
