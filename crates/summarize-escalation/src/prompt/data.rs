//! Text of a conversation as data of a prompt: escaped so that it cannot open or close a block, and with names in place
//! of media.

use std::borrow::Cow;
use std::fmt::Write;

use memory_model::{Media, MediaSource, Part};

/// Maximum length of a speaker's name in a prompt, in characters.
const NAME_CHARS: usize = 64;

pub(super) const MESSAGES_TAG: &str = "conversation_segment";
pub(super) const SUMMARIES_TAG: &str = "summaries";
pub(super) const PREVIOUS_TAG: &str = "previous_context";
pub(super) const INSTRUCTIONS_TAG: &str = "instructions";
pub(super) const UPDATE_TAG: &str = "previous_summary";
/// All tags that the prompts use. None of them can be opened or closed by the text of a conversation.
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

/// Returns the tags in a text that open or close a block of a prompt, each up to the end of its name.
pub(crate) fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('<').filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let name = rest.get(1..)?;
        let name = name.strip_prefix('/').unwrap_or(name);
        let tag = TAGS.iter().take(5).find(|tag| name.starts_with(**tag))?;
        rest.get(..rest.len() - name.len() + tag.len())
    })
}

/// Returns at most [`NAME_CHARS`] characters of a text as the value of an attribute: escaped and on one line.
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

/// Escapes the prompts' own tags in the text of a conversation. Other tags stay unchanged, so that code stays readable.
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

/// Appends a text between tags to `out`.
pub(super) fn block(out: &mut String, tag: &str, text: &str) {
    enclose(out, tag, &fence(text.trim()));
}

/// Appends an escaped text between tags to `out`.
pub(super) fn enclose(out: &mut String, tag: &str, escaped: &str) {
    let _ = writeln!(out, "<{tag}>\n{}\n</{tag}>\n", escaped.trim());
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
            Part::Unknown { raw } => lines.push(raw.without_bytes()),
            _ => {}
        }
    }
    Cow::Owned(lines.join("\n"))
}

/// Returns a short name of an image or file, without its data.
pub(super) fn medium(what: &str, media: &Media) -> String {
    match &media.source {
        MediaSource::Data(_) => format!("[{what} {}]", media.media_type),
        MediaSource::Url(url) => format!("[{what} {} {url}]", media.media_type),
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{Part, RawJson, ResultContent};

    use super::*;

    #[test]
    fn a_result_is_its_words_without_bytes() {
        let json = format!(r#"{{"name":"chart","data":"{}"}}"#, "aB3/".repeat(40));
        let raw = RawJson::parse(json).unwrap();
        let content = ResultContent::Parts(vec![Part::text("Read."), Part::Unknown { raw }]);
        assert_eq!(
            result_text(&content),
            "Read.\n{\"name\":\"chart\",\"data\":\"[about 120 bytes]\"}"
        );
    }
}
