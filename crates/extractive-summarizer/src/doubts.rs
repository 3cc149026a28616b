//! Claims of an assistant that a later message contradicts, such as a wrong cause or a repair that did not help.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::item::{ASKED, Forgotten, Item, Kind, TYPED, is_mark};
use crate::later::{BEGIN, Later};
use crate::replies::joined;
use crate::text::{clip, corrects_cause, is_claim, line_sentences, reports_failure};
use crate::words::is_little;

/// Maximum length of a user's message that can report a failure, in bytes.
const REPORT: usize = 600;
/// Maximum length of the words that are quoted from the later message, in characters.
const QUOTED: usize = 60;

/// Adds a note to each of the assistant's claims that a later message contradicts, and returns these claims. The note
/// quotes the later message.
///
/// A user's report contradicts the last claims since the user's previous message. An assistant's correction contradicts
/// its last earlier claims since the user's previous message.
pub(crate) fn mark_contradicted(items: &mut [Item]) -> Vec<Forgotten> {
    let mut claims = Vec::new();
    for at in 0..items.len() {
        let (before, rest) = items.split_at_mut(at);
        let Some((item, quote)) = rest
            .first()
            .and_then(|item| Some((item, contradiction(item)?)))
        else {
            continue;
        };
        let since = before.iter().rposition(is_request).map_or(0, |at| at + 1);
        let said_before = before.iter_mut().skip(since).rev();
        let mut replies = said_before.filter(|item| item.kind == Kind::Reply);
        if let Some(claimed) = replies.find(|reply| claims_in(reply).next().is_some()) {
            let later = Later {
                seq: item.range.first,
                in_part: false,
                value: Some(clip(&quote, QUOTED)),
            };
            mark(claimed, &quote, &later, &mut claims);
        }
    }
    claims
}

/// Returns whether an item is a text that the user typed, and no answer to a question.
fn is_request(item: &Item) -> bool {
    let typed = item.kind == Kind::User && item.weight >= TYPED && item.label != ASKED;
    typed && !is_mark(item)
}

/// Returns the sentence of an item that contradicts earlier claims.
fn contradiction(item: &Item) -> Option<String> {
    let contradicts: fn(&str) -> bool = match item.kind {
        Kind::Reply => corrects_cause,
        Kind::User if item.bytes() <= REPORT && is_request(item) => reports_failure,
        _ => return None,
    };
    let mut lines = item.lines.iter();
    let line = lines.find(|line| contradicts(line))?;
    let mut sentences = line_sentences(line).into_iter();
    sentences.find(|sentence| contradicts(sentence))
}

fn claims_in(item: &Item) -> impl Iterator<Item = String> {
    let lines = item.lines.iter().filter(|line| is_claim(line));
    let sentences = lines.flat_map(|line| line_sentences(line));
    sentences.filter(|one| is_claim(one) && !one.contains(BEGIN))
}

/// Marks the claims in `item` that share a word with the quoted sentence, or the first claim if none does.
fn mark(item: &mut Item, quote: &str, later: &Later, marked: &mut Vec<Forgotten>) {
    let claims: Vec<String> = claims_in(item).collect();
    let about = telling_words(quote);
    let mut wrong: Vec<&String> = claims
        .iter()
        .filter(|claim| !telling_words(claim).is_disjoint(&about))
        .collect();
    if wrong.is_empty() {
        wrong.extend(claims.first());
    }
    for line in &mut item.lines {
        let sentences = line_sentences(line);
        if !sentences.iter().any(|one| wrong.contains(&one)) {
            continue;
        }
        *line = joined(sentences.into_iter().map(|one| {
            let is_wrong = wrong.contains(&&one);
            let printed = if is_wrong {
                format!("{one}{later}")
            } else {
                one.clone()
            };
            if is_wrong {
                marked.push(Forgotten {
                    range: item.range,
                    sentence: one,
                    later: later.clone(),
                });
            }
            (Cow::Owned(printed), true)
        }));
    }
}

/// Returns the words of a sentence that describe a subject: words of at least four letters, and words in scripts
/// without spaces.
fn telling_words(sentence: &str) -> BTreeSet<String> {
    let words = sentence.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.len() > 3).map(str::to_lowercase);
    long.filter(|word| !is_little(word) && !is_claim(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use memory_model::{Seq, SeqRange};

    use super::*;

    fn lines(said: &[&str]) -> Vec<String> {
        let items = said.iter().zip(1..).map(|(text, seq)| {
            let (kind, text) = match text.strip_prefix("A: ") {
                Some(text) => (Kind::Reply, text),
                None => (Kind::User, *text),
            };
            let range = SeqRange::single(Seq(seq));
            Item::new(range, kind, "x", TYPED).with_lines(vec![text.to_owned()])
        });
        let mut items: Vec<Item> = items.collect();
        mark_contradicted(&mut items);
        items.into_iter().flat_map(|item| item.lines).collect()
    }

    fn marked(said: &[&str]) -> Vec<String> {
        let lines = lines(said).into_iter();
        lines.filter(|line| line.contains(BEGIN)).collect()
    }

    #[test]
    fn a_repair_that_did_not_help_is_marked() {
        let said = [
            "The list flickers.",
            "A: Fixed the flicker. The button is fixed as well.",
            "The flicker is still there? It still happens on scroll.",
        ];
        assert_eq!(
            marked(&said),
            [
                "Fixed the flicker. (later: [3]: It still happens on scroll.) The button is fixed as well."
            ]
        );
        assert!(marked(&[said[0], said[1], "Thanks, now the header."]).is_empty());
        // Of another request.
        assert!(marked(&[said[0], said[1], "Thanks.", "A: Gladly.", said[2]]).is_empty());
    }

    #[test]
    fn a_cause_that_was_not_the_real_one_is_marked() {
        let said = [
            "Why is it slow?",
            "A: The root cause is the cache.",
            "A: I measured it: the actual cause is the index.",
        ];
        assert_eq!(
            marked(&said),
            [
                "The root cause is the cache. (later: [3]: I measured it: the actual cause is the index.)"
            ]
        );
    }

    #[test]
    fn a_claim_is_marked_once() {
        let said = [
            "Why?",
            "A: Fixed. (later: [3]: It still fails.)",
            "It still fails.",
        ];
        assert_eq!(lines(&said)[1], "Fixed. (later: [3]: It still fails.)");
    }
}
