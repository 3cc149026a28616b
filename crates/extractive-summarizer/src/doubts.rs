//! Claims of an assistant that a later message contradicts, such as a wrong cause or a repair that did not help.

use std::collections::BTreeSet;

use memory_model::Seq;

use crate::item::{ASKED, Forgotten, Item, Kind, TYPED, is_mark};
use crate::later::{BEGIN, Later};
use crate::text::{
    clip, corrects_cause, declines, is_claim, line_sentences, reads_as_code, reports_failure,
    takes_back,
};
use crate::words::is_little;

/// Maximum length of a user's message that can contradict, in bytes.
const MESSAGE: usize = 600;
/// Maximum length of the words that are quoted from the later message, in characters.
const QUOTED: usize = 60;
/// Beginning of the assistant's words that an extract adds to a short message of the user.
const ANSWERS: &str = " (to [";

/// Word of a message that reports a failure, and does not correct the request.
const STILL: &str = " still ";

/// A message that contradicts earlier ones.
struct Contradiction {
    quote: String,
    /// Whether it corrects the user's previous message.
    of_request: bool,
    /// Whether it has no meaning for a request if the assistant asked a question.
    may_answer: bool,
}

/// Adds a note to each sentence that a later message contradicts, and returns the assistant's sentences. The note
/// quotes the later message.
///
/// A user's report of a failure contradicts the assistant's last claim since the user's previous message, and a user's
/// correction also that message. An assistant's correction contradicts its last earlier claim since the user's previous
/// message.
pub(crate) fn mark_contradicted(items: &mut [Item]) -> Vec<Forgotten> {
    let mut claims = Vec::new();
    for at in 0..items.len() {
        let (before, rest) = items.split_at_mut(at);
        let Some((item, found)) = rest
            .first()
            .and_then(|item| Some((item, contradiction(item)?)))
        else {
            continue;
        };
        let since = before.iter().rposition(is_request);
        let turn = before.get_mut(since.unwrap_or(0)..).unwrap_or_default();
        let has_request = since.is_some() && !item.after_gap;
        if (found.of_request && !has_request)
            || (found.may_answer && asks_back(turn))
            || is_noted(turn, item.range.first)
        {
            continue;
        }
        let quote = found.quote.replace(['(', ')'], "");
        let quote = clip(&quote, QUOTED);
        let mut later = Later {
            seq: item.range.first,
            in_part: false,
            value: Some(quote.trim_end_matches(ENDS).to_owned()),
        };
        let mut replies = turn
            .iter_mut()
            .rev()
            .filter(|item| item.kind == Kind::Reply);
        if let Some(reply) = replies.find(|reply| claims_in(reply).next().is_some()) {
            let said: Vec<String> = claims_in(reply).collect();
            if let Some(claim) = about(&said, &quote).or(said.first()) {
                mark(reply, claim, &later, &mut claims);
            }
        }
        if let Some(request) = turn.first_mut().filter(|_| found.of_request) {
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

/// Marks at the end of a sentence, which a quote leaves out.
const ENDS: [char; 7] = ['.', '!', '?', '。', '！', '？', ','];

/// Returns whether an item has a note about the message at `seq`, as items of earlier extracts may have.
fn is_noted(items: &[Item], seq: Seq) -> bool {
    let note = format!("{BEGIN}{seq}]");
    let mut lines = items.iter().flat_map(|item| &item.lines);
    lines.any(|line| line.contains(&note))
}

/// Returns whether the assistant's last reply has a question, so that the user's next message may answer it.
fn asks_back(items: &[Item]) -> bool {
    let mut replies = items.iter().rev().filter(|item| item.kind == Kind::Reply);
    let Some(last) = replies.next() else {
        return false;
    };
    let mut sentences = last.lines.iter().flat_map(|line| line_sentences(line));
    sentences.any(|sentence| sentence.trim_end().ends_with(['?', '？']))
}

/// Returns whether an item is a text that the user typed, and no answer to a question.
fn is_request(item: &Item) -> bool {
    let typed = item.kind == Kind::User && item.weight >= TYPED && item.label != ASKED;
    typed && !is_mark(item)
}

/// Returns whether an item (a candidate line) contradicts an earlier one.
pub(crate) fn contradicts(item: &Item) -> bool {
    contradiction(item).is_some()
}

fn contradiction(item: &Item) -> Option<Contradiction> {
    let of_request = match item.kind {
        Kind::Reply => false,
        _ if is_request(item) && item.bytes() <= MESSAGE => true,
        _ => return None,
    };
    let contradicts = if of_request {
        reports_failure
    } else {
        corrects_cause
    };
    let said = |line: &str| {
        line.split_once(ANSWERS)
            .map_or(line, |(own, _)| own)
            .to_owned()
    };
    let lines = item.lines.iter().map(|line| said(line));
    let mut failures = lines
        .filter(|line| contradicts(line))
        .flat_map(|line| line_sentences(&line));
    if let Some(quote) = failures.find(|sentence| contradicts(sentence)) {
        return Some(Contradiction {
            quote,
            of_request: false,
            may_answer: false,
        });
    }
    let said = item
        .lines
        .first()
        .filter(|_| of_request)
        .map(|line| said(line))?;
    let may_answer = declines(&said);
    (may_answer || takes_back(&said)).then_some(Contradiction {
        // `No, it still flickers` does not change the request.
        of_request: !said.contains(STILL),
        quote: said,
        may_answer,
    })
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
    use memory_model::SeqRange;

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
        let expected = "Fixed the flicker. (later: [3]: It still happens on scroll) The button is fixed as well.";
        assert_eq!(marked(&said), [expected]);
        // The same from an extract, which has the note.
        assert_eq!(
            marked(&[said[0], &format!("A: {expected}"), said[2]]),
            [expected]
        );
        // After a question, too, and the request still applies.
        let asked = "A: Fixed the flicker. Does it work now?";
        for report in ["No, it still fails.", "No! It does not work"] {
            let lines = marked(&[said[0], asked, report]);
            assert_eq!(lines.len(), 1, "{report}");
            assert!(
                lines[0].starts_with("Fixed the flicker. (later: [3]: "),
                "{lines:?}"
            );
        }
        let lines = marked(&["Fix the flicker", "A: Fixed.", "No, it still flickers"]);
        assert_eq!(lines, ["Fixed. (later: [3]: No, it still flickers)"]);
        assert!(marked(&[said[0], said[1], "Thanks, now the header."]).is_empty());
        // Of another request.
        assert!(marked(&[said[0], said[1], "Thanks.", "A: Gladly.", said[2]]).is_empty());
        for content in [
            "直っています。ありがとう",
            "여전히 잘 됩니다",
            "we still can use it",
        ] {
            assert!(marked(&[said[0], said[1], content]).is_empty(), "{content}");
        }
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
                "The root cause is the cache. (later: [3]: I measured it: the actual cause is the index)"
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
        for correction in [
            "No. Keep it (the old one",
            "No, more like 80 px",
            "Actually, use blue",
            "yeah you can undo that, it was the log",
            "いや、赤にして。",
            "いやそれは残したままでいい",
            "Nein, so nicht",
        ] {
            let lines = marked(&[said[0], said[1], correction]);
            assert_eq!(lines.len(), 1, "{correction}");
            let read = line_sentences(&lines[0]);
            assert_eq!(read.len(), 2, "{read:?}");
            assert!(Later::read(&read[1]).is_some(), "{read:?}");
        }
        assert_eq!(
            marked(&["ボタンを青にして", "A: 青にしました。", "いや、赤にして。"]),
            ["ボタンを青にして (later: [3] in part: いや、赤にして)"]
        );
    }

    #[test]
    fn a_message_that_corrects_nothing_leaves_no_mark() {
        let said = ["Make the header blue.", "A: Done! The header is blue."];
        for other in [
            "no problem",
            "no thanks",
            "No, thanks",
            "nah, it's fine",
            "Nein, danke, passt so",
            "No errors now. Next: docs",
            "No comments in the code please",
            "nothing else",
            "note the color",
            "Yes.",
            "Actually that works great, thanks",
            "Actually, also add a dark mode",
            "Wrong directory? I see src twice",
            "違いを教えて",
            "아니면 다른 방법으로 해줘",
            "不对称加密怎么实现",
            "Add an undo item to the edit menu",
            "How would I revert this later?",
            "Never mind the warnings, just fix the build",
            "添加撤销功能",
        ] {
            assert!(marked(&[said[0], said[1], other]).is_empty(), "{other}");
        }
        // Answers to a question.
        let asked = [
            "A: Shall I keep it?",
            "A: Should I also delete the old one? Let me know.",
        ];
        for asked in asked {
            assert!(marked(&[said[0], asked, "No, keep it"]).is_empty());
        }
        // The words after the note are the assistant's.
        let claim = "A: Fixed the parser. Two tests still fail on main.";
        let go_on = "ok go on (to [2] Two tests still fail on main.)";
        assert!(marked(&["Push it.", claim, go_on]).is_empty());
        let thanks = "Thanks (to [2] You can revert that with git checkout.)";
        assert!(marked(&["Push it.", "A: Done.", thanks]).is_empty());
    }
}
