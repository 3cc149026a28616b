//! Claims of an assistant that a later message contradicts, such as a wrong cause or a repair that did not help.

use std::collections::BTreeSet;

use crate::item::{ASKED, Forgotten, Item, Kind, TYPED, is_mark};
use crate::later::{BEGIN, Later};
use crate::text::{
    clip, corrects_cause, corrects_request, is_claim, line_sentences, reads_as_code,
    reports_failure,
};
use crate::words::is_little;

/// Maximum length of a user's message that can report a failure, in bytes.
const REPORT: usize = 600;
/// Beginning of the note with the question that a short message answers. The quote leaves it out.
const ANSWERS: &str = " (to [";
/// Maximum length of the words that are quoted from the later message, in characters.
const QUOTED: usize = 60;

/// Adds a note to each sentence that a later message contradicts, and returns the assistant's sentences. The note
/// quotes the later message.
///
/// A user's report of a failure contradicts the assistant's last claims since the user's previous message, and a user's
/// correction also that message. An assistant's correction contradicts its last earlier claims since the user's previous
/// message.
pub(crate) fn mark_contradicted(items: &mut [Item]) -> Vec<Forgotten> {
    let mut claims = Vec::new();
    for at in 0..items.len() {
        let (before, rest) = items.split_at_mut(at);
        let Some((item, mut quote)) = rest
            .first()
            .and_then(|item| Some((item, contradiction(item)?)))
        else {
            continue;
        };
        let since = before.iter().rposition(is_request);
        let between = before.get(since.unwrap_or(0)..).unwrap_or_default();
        let corrects = item.kind == Kind::User && corrects_request(&quote);
        if corrects && (since.is_none() || ends_with_question(between)) {
            continue;
        }
        if let Some((own, _)) = quote.split_once(ANSWERS) {
            quote = own.to_owned();
        }
        let mut later = Later {
            seq: item.range.first,
            in_part: false,
            value: Some(clip(&quote, QUOTED)),
        };
        let said_before = before.iter_mut().skip(since.unwrap_or(0)).rev();
        let mut replies = said_before.filter(|item| item.kind == Kind::Reply);
        if let Some(reply) = replies.find(|reply| claims_in(reply).next().is_some()) {
            let said: Vec<String> = claims_in(reply).collect();
            if let Some(claim) = about(&said, &quote).or(said.first()) {
                mark(reply, claim, &later, &mut claims);
            }
        }
        if let Some(request) = since.and_then(|at| before.get_mut(at)).filter(|_| corrects) {
            later.in_part = true;
            let said = request.lines.iter().flat_map(|line| line_sentences(line));
            let said: Vec<String> = said.filter(|one| !reads_as_code(one)).collect();
            if let Some(wish) = about(&said, &quote).or(said.last()) {
                mark(request, wish, &later, &mut Vec::new());
            }
        }
    }
    claims
}

/// Returns whether the assistant's last reply ends with a question, so that the user's next message may answer it.
fn ends_with_question(items: &[Item]) -> bool {
    let mut replies = items.iter().rev().filter(|item| item.kind == Kind::Reply);
    let last = replies.next().and_then(|reply| reply.lines.last());
    last.is_some_and(|line| line.trim_end().ends_with(['?', '？']))
}

/// Returns whether an item is a text that the user typed, and no answer to a question.
fn is_request(item: &Item) -> bool {
    let typed = item.kind == Kind::User && item.weight >= TYPED && item.label != ASKED;
    typed && !is_mark(item)
}

/// Returns the sentence of an item that contradicts earlier sentences.
fn contradiction(item: &Item) -> Option<String> {
    let contradicts: fn(&str) -> bool = match item.kind {
        Kind::Reply => corrects_cause,
        Kind::User if item.bytes() <= REPORT && is_request(item) => {
            let begin = item.lines.first().filter(|line| corrects_request(line));
            let sentence = begin.and_then(|line| {
                line_sentences(line)
                    .into_iter()
                    .find(|one| corrects_request(one))
            });
            if sentence.is_some() {
                return sentence;
            }
            reports_failure
        }
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

/// Returns the last sentence that shares a word with `quote`.
fn about<'a>(sentences: &'a [String], quote: &str) -> Option<&'a String> {
    let words = telling_words(quote);
    let mut latest = sentences.iter().rev();
    latest.find(|one| !telling_words(one).is_disjoint(&words))
}

/// Adds a note to the last occurrence of a sentence in an item, and adds the sentence to `marked`. A sentence that has a
/// note is left as it is.
fn mark(item: &mut Item, wrong: &str, later: &Later, marked: &mut Vec<Forgotten>) {
    let mut lines = item.lines.iter_mut().rev();
    let place = lines.find_map(|line| Some((line.rfind(wrong)? + wrong.len(), line)));
    let Some((at, line)) = place.filter(|_| !wrong.contains(BEGIN)) else {
        return;
    };
    line.insert_str(at, &later.to_string());
    marked.push(Forgotten {
        range: item.range,
        sentence: wrong.to_owned(),
        later: later.clone(),
    });
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
    fn a_request_that_the_user_corrects_is_marked() {
        let said = [
            "Which color have code blocks? They should be 8abeb7.",
            "A: Done! Now code blocks use `8abeb7`.",
            "no, the block should stay as is",
        ];
        assert_eq!(
            marked(&said),
            [
                "Which color have code blocks? They should be 8abeb7. (later: [3] in part: no, the block should stay as is)"
            ]
        );
        for other in ["no problem", "nothing else", "note the color", "Yes."] {
            assert!(marked(&[said[0], said[1], other]).is_empty(), "{other}");
        }
        // An answer to a question.
        assert!(marked(&[said[0], "A: Shall I keep it?", "no, drop it"]).is_empty());
        let said = [
            "Push the update to the next tick.",
            "A: Done.",
            "yeah you can undo that, it was the log",
        ];
        assert_eq!(marked(&said).len(), 1);
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
