//! The source as a prompt shows it: data between tags that it cannot close.

use std::borrow::Cow;
use std::fmt::Write;

use extractive_summarizer::source::{Source, minute};
use memory_model::{LogEntry, Media, MediaSource, Part};
use serde::{Deserialize, Serialize};

use super::clip::{Clip, shorten};
use super::labels;
use crate::request::SummaryRequest;

/// Maximum length of a speaker's name in a prompt, in characters.
const NAME_CHARS: usize = 64;

pub(super) const MESSAGES_TAG: &str = "conversation_segment";
pub(super) const SUMMARIES_TAG: &str = "summaries";
pub(super) const PREVIOUS_TAG: &str = "previous_context";
pub(super) const INSTRUCTIONS_TAG: &str = "instructions";
pub(super) const UPDATE_TAG: &str = "previous_summary";
/// Every tag that the prompts use; in data, none of them can begin or end.
const TAGS: [&str; 8] = [
    MESSAGES_TAG,
    SUMMARIES_TAG,
    PREVIOUS_TAG,
    INSTRUCTIONS_TAG,
    UPDATE_TAG,
    "message",
    "summary",
    "analysis",
];

/// The tags of a text that open or close one of the blocks of a prompt, each up to its name's end.
pub(crate) fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('<').filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let name = rest.get(1..)?;
        let name = name.strip_prefix('/').unwrap_or(name);
        let tag = TAGS.iter().take(5).find(|tag| name.starts_with(**tag))?;
        rest.get(..rest.len() - name.len() + tag.len())
    })
}

/// How the messages of a source are written in a prompt. Summaries stand between tags in every form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceForm {
    /// Between tags that name position, role and time. The default.
    #[default]
    Xml,
    /// Behind labels, as pi writes them: `[User]:`, `[Assistant thinking]:`, `[Assistant]:`, `[Assistant tool calls]:`,
    /// `[Tool result]:`. A line of a message that begins as a label does is escaped by a backslash.
    Labels,
}

impl SourceForm {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The source between its tags.
pub(super) fn source(
    request: &SummaryRequest<'_>,
    pieces: &[Source<'_>],
    clip: Clip,
    form: SourceForm,
) -> String {
    let mut user = String::new();
    let tag = match pieces
        .iter()
        .any(|piece| matches!(piece, Source::Summary(_)))
    {
        false => MESSAGES_TAG,
        true => SUMMARIES_TAG,
    };
    let _ = write!(user, "<{tag}");
    let part = request.with_source(pieces);
    if let Some(range) = part.range() {
        let _ = write!(user, " messages=\"{range}\"");
    }
    if let Some((earliest, latest)) = part.times() {
        let (from, to) = (minute(earliest), minute(latest));
        let _ = write!(user, " from=\"{from}\" to=\"{to}\"");
    }
    user.push_str(">\n");
    for one in pieces {
        piece(&mut user, one, clip, form);
    }
    let _ = writeln!(user, "</{tag}>");
    user
}

/// One piece of the source between its tags.
pub(crate) fn piece_text(one: &Source<'_>, clip: Clip, form: SourceForm) -> String {
    let mut out = String::new();
    piece(&mut out, one, clip, form);
    out
}

fn piece(out: &mut String, piece: &Source<'_>, clip: Clip, form: SourceForm) {
    match piece {
        Source::Message(entry) if form == SourceForm::Labels => labels::message(out, entry, clip),
        Source::Message(entry) => {
            let _ = write!(
                out,
                "<message seq=\"{}\" role=\"{}\"",
                entry.seq, entry.role
            );
            if let Some(name) = &entry.name {
                let _ = write!(out, " name=\"{}\"", attribute(name));
            }
            let _ = writeln!(out, " at=\"{}\">", minute(entry.created_at));
            out.push_str(&fence(&message_text(entry, clip)));
            out.push_str("\n</message>\n");
        }
        Source::Summary(summary) => {
            let _ = writeln!(
                out,
                "<summary messages=\"{}\" from=\"{}\" to=\"{}\">",
                summary.range,
                minute(summary.earliest_at),
                minute(summary.latest_at)
            );
            let text = summary.text.trim();
            out.push_str(&fence(&match clip.summaries {
                Some(chars) => {
                    let whole = format!("messages {}", summary.range);
                    shorten(text, (chars, clip.shown), &whole)
                }
                None => text.to_owned(),
            }));
            out.push_str("\n</summary>\n");
        }
    }
}

/// Escapes a value of an attribute: on one line, and at most [`NAME_CHARS`] characters.
pub(super) fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(NAME_CHARS) {
        match c {
            '"' => out.push_str("&quot;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() || c.is_whitespace() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A text between tags.
pub(super) fn block(out: &mut String, tag: &str, text: &str) {
    let _ = writeln!(out, "<{tag}>\n{}\n</{tag}>\n", fence(text.trim()));
}

/// Escapes tags of the prompts in data. Other tags stay, so that code stays code.
pub(super) fn fence(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let after = tail.get(1..).unwrap_or("");
        let name = after.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
        let ours = TAGS.iter().any(|tag| {
            name.get(..tag.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(tag))
        });
        out.push_str(if ours { "&lt;" } else { "<" });
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The source as plain lines, `[role] content`, without a limit: the last tier cuts it when no other wrote
/// a text.
pub(crate) fn plain(source: &[Source<'_>]) -> String {
    let mut out = String::new();
    for piece in source {
        match piece {
            Source::Message(entry) => {
                let _ = writeln!(out, "[{}] {}", entry.role, message_text(entry, Clip::NONE));
            }
            Source::Summary(summary) => {
                out.push_str(summary.text.trim());
                out.push('\n');
            }
        }
    }
    out
}

fn message_text(entry: &LogEntry, limits: Clip) -> String {
    let clip = |text: &str, limit: Option<usize>| match limit {
        Some(chars) => shorten(
            text,
            (chars, limits.shown),
            &format!("message {}", entry.seq),
        ),
        None => text.to_owned(),
    };
    let mut lines = Vec::new();
    for part in &entry.parts {
        match part {
            Part::Text { text } => lines.push(clip(text.trim(), limits.text)),
            // A model's reasoning is not part of what was said.
            Part::Reasoning { .. } => {}
            Part::ToolCall {
                name, arguments, ..
            } => lines.push(format!(
                "call {name} {}",
                clip(arguments.as_str(), limits.arguments)
            )),
            Part::ToolResult {
                content, is_error, ..
            } => {
                let failed = if *is_error == Some(true) {
                    " (error)"
                } else {
                    ""
                };
                lines.push(format!(
                    "result{failed}: {}",
                    clip(&result_text(content), limits.results)
                ));
            }
            Part::Image(media) => lines.push(medium("image", media)),
            Part::File(media) => lines.push(medium("file", media)),
            Part::Unknown { raw } => lines.push(clip(raw.as_str(), limits.results)),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

pub(super) fn result_text(content: &memory_model::ResultContent) -> Cow<'_, str> {
    let memory_model::ResultContent::Parts(parts) = content else {
        return content.text();
    };
    let mut lines = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => lines.push(Cow::Borrowed(text.as_str())),
            Part::Image(media) => lines.push(Cow::Owned(medium("image", media))),
            Part::File(media) => lines.push(Cow::Owned(medium("file", media))),
            Part::Unknown { raw } => lines.push(Cow::Borrowed(raw.as_str())),
            _ => {}
        }
    }
    Cow::Owned(lines.join("\n"))
}

/// Names an image or file without its data.
pub(super) fn medium(what: &str, media: &Media) -> String {
    match &media.source {
        MediaSource::Data(_) => format!("[{what} {}]", media.media_type),
        MediaSource::Url(url) => format!("[{what} {} {url}]", media.media_type),
    }
}
