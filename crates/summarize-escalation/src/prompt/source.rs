//! The source as a prompt shows it: data between tags that the data cannot close.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use extractive_summarizer::SummarySource;
use extractive_summarizer::source::{Source, minute, range, times};
use memory_model::LogEntry;
use memory_model::conventions::AgentConventions;

use super::clip::{Clip, shorten};
use super::data::{MESSAGES_TAG, SUMMARIES_TAG, attribute, fence};
use super::said::{Line, LineKind, Said, calls, said};

/// Messages and summaries of a source, read once, so that they can be shown under several limits.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pieces: &'a [Source<'a>],
    shown: Vec<Shown<'a>>,
}

#[derive(Debug)]
enum Shown<'a> {
    Message(&'a LogEntry, Said<'a>),
    Summary(SummarySource<'a>),
    /// A message without words.
    Nothing,
}

impl<'a> Reading<'a> {
    pub(super) fn new(pieces: &'a [Source<'a>], conventions: &dyn AgentConventions) -> Self {
        let calls = calls(pieces, conventions);
        let shown = pieces.iter().map(|piece| match piece {
            Source::Summary(summary) => Shown::Summary(*summary),
            Source::Message(entry) => match said(entry, &calls, conventions) {
                Some(said) => Shown::Message(entry, said),
                None => Shown::Nothing,
            },
        });
        Self {
            shown: shown.collect(),
            pieces,
        }
    }

    /// Returns the number of characters of the longest text of a tool, which may be shortened for lack of room.
    pub(super) fn longest(&self) -> usize {
        let lines = self.shown.iter().flat_map(|shown| match shown {
            Shown::Message(_, said) => said.lines.as_slice(),
            _ => &[],
        });
        let is_tool =
            |line: &&Line<'_>| matches!(line.kind, LineKind::Arguments | LineKind::Result);
        let chars = lines.filter(is_tool).map(|line| line.text.chars().count());
        chars.max().unwrap_or(0)
    }

    /// Returns the source between tags. The opening tag counts the messages that are not shown.
    pub(super) fn text(&self, clip: Clip) -> String {
        let mut out = String::new();
        let is_summary = |shown: &Shown<'_>| matches!(shown, Shown::Summary(_));
        let tag = match self.shown.iter().any(is_summary) {
            false => MESSAGES_TAG,
            true => SUMMARIES_TAG,
        };
        let _ = write!(out, "<{tag}");
        if let Some(range) = range(self.pieces) {
            let _ = write!(out, " messages=\"{range}\"");
        }
        if let Some((earliest, latest)) = times(self.pieces) {
            let (from, to) = (minute(earliest), minute(latest));
            let _ = write!(out, " from=\"{from}\" to=\"{to}\"");
        }
        let nothing = self.shown.iter();
        let nothing = nothing.filter(|shown| matches!(shown, Shown::Nothing));
        match nothing.count() {
            0 => {}
            count => {
                let _ = write!(out, " not_shown=\"{count}\"");
            }
        }
        out.push_str(">\n");
        for one in &self.shown {
            piece(&mut out, one, clip);
        }
        let _ = writeln!(out, "</{tag}>");
        out
    }
}

/// Returns each message and summary of a source between its tags. The text of a message without words is empty.
pub(crate) fn piece_texts(
    pieces: &[Source<'_>],
    clip: Clip,
    conventions: &dyn AgentConventions,
) -> Vec<String> {
    let reading = Reading::new(pieces, conventions);
    let texts = reading.shown.iter().map(|one| {
        let mut out = String::new();
        piece(&mut out, one, clip);
        out
    });
    texts.collect()
}

fn piece(out: &mut String, one: &Shown<'_>, clip: Clip) {
    match one {
        Shown::Nothing => {}
        Shown::Message(entry, said) => {
            let _ = write!(
                out,
                "<message seq=\"{}\" role=\"{}\"",
                entry.seq, said.speaker
            );
            if let Some(name) = &entry.name {
                let _ = write!(out, " name=\"{}\"", attribute(name));
            }
            if let Some(at) = entry.created_at.known() {
                let _ = write!(out, " at=\"{}\"", minute(at));
            }
            out.push_str(">\n");
            out.push_str(&fence(&words(entry, said, clip)));
            out.push_str("\n</message>\n");
        }
        Shown::Summary(summary) => {
            let _ = write!(out, "<summary messages=\"{}\"", summary.range);
            for (name, time) in [("from", summary.earliest_at), ("to", summary.latest_at)] {
                if let Some(time) = time.known() {
                    let _ = write!(out, " {name}=\"{}\"", minute(time));
                }
            }
            if summary.provisional {
                out.push_str(" written=\"without a model\"");
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
pub(crate) fn plain(source: &[Source<'_>], conventions: &dyn AgentConventions) -> String {
    let mut out = String::new();
    for piece in source {
        match piece {
            Source::Message(entry) => {
                if let Some(said) = said(entry, &BTreeMap::new(), conventions) {
                    let words = words(entry, &said, Clip::NONE);
                    let _ = writeln!(out, "[{}] {words}", said.speaker);
                }
            }
            Source::Summary(summary) => {
                out.push_str(summary.text.trim());
                out.push('\n');
            }
        }
    }
    out
}

fn words(entry: &LogEntry, said: &Said<'_>, clip: Clip) -> String {
    let text = |line: &Line<'_>| {
        let limit = match line.kind {
            LineKind::Speech => clip.text,
            LineKind::Document => clip.documents,
            LineKind::Arguments => clip.arguments,
            LineKind::Result => clip.results,
        };
        let text = match limit {
            Some(chars) => Cow::Owned(shorten(
                &line.text,
                chars,
                &format!("message {}", entry.seq),
            )),
            None => Cow::Borrowed(&*line.text),
        };
        format!("{}{text}", line.before)
    };
    let lines: Vec<String> = said.lines.iter().map(text).collect();
    lines.join("\n")
}
