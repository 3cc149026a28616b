//! Values of the lines of an item (a candidate line of an extract, which may continue on further lines), compared with
//! lines of the same topic.

use crate::force::is_small_talk;
use crate::item::{ASKED, Item, Kind, PASTED, RULE, TYPED, VALUED, is_mark};
use crate::ledger::LISTED_ERROR;
use crate::names::has_name;
use crate::print::{ARROW, DETAIL, said};
use crate::rank::Topic;
use crate::results::REFUSAL;
use crate::shell::is_look;
use crate::text::{is_decision, is_directive, is_fence, is_step};
use sentence_model::is_unspaced;

/// Number of letters and digits from which a user's message has its full value. A shorter message, such as `thanks` or
/// `please continue`, is less informative.
const SAYS_MUCH: u64 = 32;
/// Number of letters and digits from which a line of an assistant has its full value.
const TELLS: u64 = 80;

/// Data about an item (a candidate line of an extract) and its place in the conversation, on which its value depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Value of the whole item: its weight, plus up to 30 for a later position in the conversation. The value of each
    /// line is a multiple of this number.
    pub(crate) score: u64,
    /// Whether the item is the first or the last one from a user's message.
    pub(crate) end: bool,
    /// Position of the item in the list of all items, in per cent. 100 is the latest.
    pub(crate) newness: u64,
    /// Whether another line of the extract already gives the content of the item: a later item says the same, or an
    /// earlier error names this item.
    pub(crate) told: bool,
}

/// Minimum weight of a call that changed something lasting, or that has a text as its subject.
const LASTING: u32 = 40;

/// Number of first lines of a pasted document that count as the user's own words.
const SAID_LINES: usize = 4;

/// Returns the topic of line `n` of an item (a candidate line of an extract).
pub(crate) fn topic(item: &Item, line: &str, n: usize, place: Place) -> Topic {
    match item.kind {
        _ if line.starts_with(DETAIL) && !item.kind.users() => Topic::Details,
        _ if is_fence(line) && !item.kind.users() => Topic::Details,
        _ if !is_fence(line) && !line.chars().any(char::is_alphanumeric) => Topic::Details,
        Kind::User | Kind::Error | Kind::Act if place.told => Topic::Details,
        Kind::Error if item.weight < LISTED_ERROR => Topic::Details,
        Kind::User if is_mark(item) => Topic::Details,
        // A call that only looks at something is less informative than the list of changed files.
        Kind::Act if item.weight < LASTING && n == 0 => match item.runs() && !looks(item) {
            true => Topic::Commands,
            false => Topic::Details,
        },
        Kind::Injected => Topic::Documents,
        Kind::User if item.weight >= RULE => Topic::Rules,
        Kind::User if item.weight <= PASTED && n >= SAID_LINES => Topic::Documents,
        Kind::User => Topic::Users,
        Kind::Reply if (n > 0 || item.lines.len() == 1) && is_step(said(line)) => Topic::Details,
        Kind::Reply | Kind::Note => Topic::Replies,
        Kind::Error => Topic::Errors,
        Kind::Act => Topic::Acts,
    }
}

/// Returns whether a continuation line of a user's item is not the user's own text: the rest of a refused call, or a
/// program's text between the answers to its questions. `first` says whether the line continues the item's first line.
pub(crate) fn is_quoted(item: &Item, line: &str, first: bool) -> bool {
    if item.kind != Kind::User {
        return false;
    }
    match first {
        true => is_refusal(item),
        false => item.label == ASKED && !line.contains(ARROW),
    }
}

/// Returns whether a line is a heading, which is not informative alone.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('#') || line.trim_end_matches('*').ends_with([':', '：'])
}

fn looks(item: &Item) -> bool {
    item.lines.first().is_some_and(|line| is_look(line))
}

/// Returns whether a user's words are about a call that the user refused.
fn is_refusal(item: &Item) -> bool {
    item.lines
        .first()
        .is_some_and(|line| line.starts_with(REFUSAL))
}

/// Returns the value of line `n` of an item (a candidate line of an extract). `cost` is the cost of the line, in
/// tokens.
pub(crate) fn of_line(item: &Item, line: &str, n: usize, cost: u64, place: Place) -> u64 {
    let value = of_new_line(item, line, n, cost, place);
    if place.told { value / 6 } else { value }
}

fn of_new_line(item: &Item, line: &str, n: usize, cost: u64, place: Place) -> u64 {
    let depth = n as u64;
    match item.kind {
        // Later rules come first.
        Kind::User if item.weight >= RULE => {
            let value = if item.weight >= VALUED {
                400_000
            } else {
                150_000
            };
            let value = value * (100 + place.newness) / (cost + 12);
            if is_small_talk(line) {
                value / 8
            } else {
                value
            }
        }
        Kind::User | Kind::Injected => {
            let mut value = 1_000 * base(item);
            if is_refusal(item) {
                // The user's reason in the lines below is more informative than the refused call.
                value = if n > 0 { value } else { value / 2 };
            } else if n > 0 {
                value = value * (8 + letters(line, SAYS_MUCH)) / (8 + SAYS_MUCH);
            } else {
                value *= if place.end { 4 } else { 2 };
            }
            if is_directive(line) {
                value = value * 3 / 2;
            }
            if is_small_talk(said(line)) {
                value /= 6;
            }
            if has_name(said(line)) {
                value = value * 5 / 4;
            }
            value += value * place.newness / 300;
            value / (cost + 4) / (1 + depth / 8)
        }
        Kind::Reply | Kind::Note => {
            // Causes and decisions may be below the first line, so the value falls slowly.
            let mut value = 8_000 * place.score / (8 + depth);
            if is_step(said(line)) {
                value /= 4;
            }
            if is_heading(line) {
                value /= 4;
            }
            if is_decision(line) {
                value *= 2;
            }
            if has_name(said(line)) {
                value = value * 3 / 2;
            }
            // Short lines are less informative.
            value * letters(said(line), TELLS) / TELLS / (cost + 20)
        }
        Kind::Error => {
            let value = match n {
                0 => 1_000 * place.score,
                // The error message.
                1 => 900 * place.score,
                _ => 300 * place.score / depth,
            };
            value / (cost + 12)
        }
        Kind::Act => {
            let mut value = match n {
                0 => 1_000 * place.score,
                _ if line.starts_with(DETAIL) => 60 * place.score / depth,
                _ => 300 * place.score / depth,
            };
            // Files are in a separate list, and other actions of tools rarely matter.
            if !item.runs() {
                value = value * 2 / 5;
            }
            value / (cost + 12)
        }
    }
}

/// Returns the number of letters and digits of a text, at most `most`. In scripts with short words, a character counts
/// as four.
fn letters(text: &str, most: u64) -> u64 {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let letters = letters.map(|c| if is_unspaced(c) { 4 } else { 1 });
    let mut sum = 0;
    for count in letters {
        sum += count;
        if sum >= most {
            return most;
        }
    }
    sum
}

/// Returns the value of a user's words before the effects of place and cost.
fn base(item: &Item) -> u64 {
    let letters = letters(&item.lines.join(" "), SAYS_MUCH);
    match item.kind {
        Kind::User if item.weight >= TYPED => 60 + 540 * letters / SAYS_MUCH,
        Kind::User if item.weight > PASTED => 400,
        Kind::User => 100,
        _ => 70,
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{Seq, SeqRange};

    use super::*;

    const PLACE: Place = Place {
        score: 60,
        end: false,
        newness: 50,
        told: false,
    };

    fn item(kind: Kind, label: &str, weight: u32, line: &str) -> Item {
        let range = SeqRange::single(Seq(1));
        Item::new(range, kind, label, weight).with_lines(vec![line.to_owned()])
    }

    #[test]
    fn of_a_reply_the_cause_is_worth_more_than_the_announcement_above_it() {
        let cause = "  The cache is stale because the key leaves out the region.";
        let item = item(Kind::Reply, "Assistant", 75, "Here is what I found:");
        let worth = |line: &str, n| of_line(&item, line, n, 14, PLACE);
        assert!(
            worth(cause, 3)
                > worth(
                    "[1] Assistant: Here is what I found in all of the files:",
                    0
                )
        );
        assert!(worth(cause, 3) > worth("[1] Assistant: Done.", 0));
    }

    #[test]
    fn short_words_of_a_script_with_few_characters_a_word_count() {
        let worth = |text: &str| {
            let line = format!("[1] User: {text}");
            of_line(&item(Kind::User, "User", TYPED, text), &line, 0, 10, PLACE)
        };
        assert!(worth("英語にしてください") > 2 * worth("go on then"));
    }

    #[test]
    fn a_bracket_below_what_a_user_said_is_worth_less_than_a_sentence() {
        let item = item(
            Kind::User,
            "User",
            TYPED,
            "Here is what I want of the importer:",
        );
        let worth = |line: &str, cost| of_line(&item, line, 2, cost, PLACE);
        assert!(
            worth("  Write the tests first, and only then the code.", 12) > worth("  x = {", 4)
        );
    }

    #[test]
    fn what_is_told_elsewhere_and_marks_are_details() {
        let topic = |item: &Item, told| topic(item, "[1] x", 0, Place { told, ..PLACE });
        let run = item(Kind::Act, "$", 24, "make");
        assert_eq!(topic(&run, false), Topic::Commands);
        assert_eq!(topic(&run, true), Topic::Details);
        assert_eq!(
            topic(&item(Kind::Act, "$", 42, "git push"), false),
            Topic::Acts
        );
        let said = item(Kind::User, "User", TYPED, "Keep the order.");
        assert_eq!(topic(&said, false), Topic::Users);
        let mark = item(Kind::User, "User", TYPED, "[Request interrupted by user]");
        assert_eq!(topic(&mark, false), Topic::Details);
    }
}
