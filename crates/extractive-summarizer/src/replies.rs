//! Removal of sentences from an assistant's replies if a later message replaces them.

use std::borrow::Cow;

use crate::item::{Forgotten, Item};
use crate::later::Later;
use crate::text::line_sentences;

/// Removes sentences from a reply and adds them to `forgotten`. `later` returns the message that replaces a sentence;
/// `None` keeps the sentence.
pub(crate) fn take_out(
    item: &mut Item,
    forgotten: &mut Vec<Forgotten>,
    mut later: impl FnMut(&str) -> Option<Later>,
) {
    for line in &mut item.lines {
        let sentences = line_sentences(line).into_iter();
        let fates: Vec<(String, Option<Later>)> = sentences
            .map(|one| {
                let later = later(&one);
                (one, later)
            })
            .collect();
        if fates.iter().all(|(_, later)| later.is_none()) {
            continue;
        }
        *line = joined(
            fates
                .iter()
                .map(|(one, later)| (Cow::Borrowed(one.as_str()), later.is_none())),
        );
        forgotten.extend(fates.into_iter().filter_map(|(sentence, later)| {
            Some(Forgotten {
                range: item.range,
                sentence,
                later: later?,
            })
        }));
    }
    item.lines
        .retain(|line| line.chars().any(char::is_alphanumeric));
    if item.lines.is_empty() {
        item.weight = 0;
    }
}

/// Returns the kept sentences on one line, with `…` in place of removed ones.
pub(crate) fn joined<'a>(sentences: impl Iterator<Item = (Cow<'a, str>, bool)>) -> String {
    let mut out = String::new();
    for (text, kept) in sentences {
        let text = if kept { &*text } else { "…" };
        if !kept && out.ends_with('…') {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(text);
    }
    out
}
