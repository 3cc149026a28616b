//! The source as a prompt shows it: data between tags that the data cannot close.

use std::fmt::Write;

use extractive_summarizer::source::{Source, minute};
use memory_model::{LogEntry, Part};

use super::clip::{Clip, shorten};
use super::data::{MESSAGES_TAG, SUMMARIES_TAG, attribute, fence, medium, result_text};
use crate::request::SummaryRequest;

/// Returns the source between tags.
pub(super) fn source(request: &SummaryRequest<'_>, pieces: &[Source<'_>], clip: Clip) -> String {
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
        piece(&mut user, one, clip);
    }
    let _ = writeln!(user, "</{tag}>");
    user
}

/// Returns one message or summary of the source between its tags.
pub(crate) fn piece_text(one: &Source<'_>, clip: Clip) -> String {
    let mut out = String::new();
    piece(&mut out, one, clip);
    out
}

fn piece(out: &mut String, piece: &Source<'_>, clip: Clip) {
    match piece {
        Source::Message(entry) => {
            let _ = write!(
                out,
                "<message seq=\"{}\" role=\"{}\"",
                entry.seq, entry.role
            );
            if let Some(name) = &entry.name {
                let _ = write!(out, " name=\"{}\"", attribute(name));
            }
            if let Some(at) = entry.created_at.known() {
                let _ = write!(out, " at=\"{}\"", minute(at));
            }
            out.push_str(">\n");
            out.push_str(&fence(&message_text(entry, clip)));
            out.push_str("\n</message>\n");
        }
        Source::Summary(summary) => {
            let _ = write!(out, "<summary messages=\"{}\"", summary.range);
            for (name, time) in [("from", summary.earliest_at), ("to", summary.latest_at)] {
                if let Some(time) = time.known() {
                    let _ = write!(out, " {name}=\"{}\"", minute(time));
                }
            }
            out.push_str(">\n");
            let text = summary.text.trim();
            out.push_str(&fence(&match clip.summaries {
                Some(chars) => {
                    let whole = format!("messages {}", summary.range);
                    shorten(text, chars, &whole)
                }
                None => text.to_owned(),
            }));
            out.push_str("\n</summary>\n");
        }
    }
}

/// Returns the source as plain lines, `[role] content`, without a limit. The tier `cut` shortens them if no other tier
/// wrote a text.
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
        Some(chars) => shorten(text, chars, &format!("message {}", entry.seq)),
        None => text.to_owned(),
    };
    let mut lines = Vec::new();
    for part in &entry.parts {
        match part {
            Part::Text { text } => lines.push(clip(text.trim(), limits.text)),
            // A model's reasoning is not part of the conversation.
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
            Part::Unknown { raw } => lines.push(clip(&raw.without_bytes(), limits.results)),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}
