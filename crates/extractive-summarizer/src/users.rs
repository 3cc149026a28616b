//! Chooses sentences of users' texts when not all of them fit.

use std::collections::BTreeSet;

use token_estimate::TokenEstimator;

use crate::item::{Item, Kind, PASTED, RULE, TYPED, VALUED};
use crate::print::{MORE, add_note, beginning};
use crate::rules::is_small_talk;
use crate::text::{has_name, is_directive, line_sentences};

/// Number of letters below which a first sentence may be a greeting.
const GREETING: usize = 16;

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// The sentence of a text that tells most: one with a name or a number, else one that asks for something, else the
/// first.
pub(crate) fn telling_sentence(text: &str) -> Option<String> {
    let sentences: Vec<String> = text.lines().flat_map(line_sentences).collect();
    let named = sentences.iter().find(|sentence| has_name(sentence));
    let asks = || sentences.iter().find(|sentence| is_directive(sentence));
    named.or_else(asks).or(sentences.first()).cloned()
}

/// A sentence of an item.
struct Sentence {
    at: usize,
    line: usize,
    text: String,
    cost: u64,
    value: u64,
}

/// Shortens the items at these indices sentence by sentence until they cost at most `room` tokens
/// together, and returns their printed texts by index. Typed sentences come before pasted and injected
/// ones, short and newer ones before long and older ones.
pub(crate) fn shortened(
    items: &[&Item],
    users: &[usize],
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Vec<(usize, String)> {
    let mut sentences: Vec<Sentence> = Vec::new();
    // Where nobody but users speaks, as in a mail or a note, short sentences are not the ones that tell most.
    let prose = items.iter().all(|item| item.kind.users());
    let beside = if prose { 16 } else { 4 };
    for (age, at) in users.iter().rev().enumerate() {
        let Some(item) = items.get(*at) else { continue };
        let ends = age == 0 || age + 1 == users.len();
        for (line, text) in item.lines.iter().enumerate() {
            let telling = |text: &String| text.chars().any(char::is_alphanumeric);
            let told = line_sentences(text).into_iter().filter(telling);
            for (n, text) in told.enumerate() {
                let cost = estimator.text(&text) + 1;
                let mut value = match item.kind {
                    Kind::User if item.weight >= VALUED => 6_000,
                    Kind::User if item.weight >= RULE => 3_000,
                    Kind::User if item.weight >= TYPED => 600,
                    Kind::User if item.weight > PASTED => 110,
                    Kind::User => 100,
                    _ => 70,
                };
                let named = has_name(&text);
                // A greeting begins a message and says nothing.
                if line == 0 && n == 0 && (named || letters(&text) >= GREETING) {
                    value *= if ends && !prose { 4 } else { 2 };
                }
                if named && prose {
                    value *= 4;
                }
                if is_directive(&text) {
                    value = value * 3 / 2;
                }
                if is_small_talk(&text) {
                    value /= 6;
                }
                // What is newer is worth up to a third more.
                value += value * (users.len() - age) as u64 / (3 * users.len() as u64);
                sentences.push(Sentence {
                    at: *at,
                    line,
                    text,
                    cost,
                    value,
                });
            }
        }
    }
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by_key(|n| {
        let worth = sentences
            .get(*n)
            .map_or(0, |s| s.value * 1000 / (s.cost + beside));
        (std::cmp::Reverse(worth), *n)
    });
    let mut left = room;
    let mut opened = BTreeSet::new();
    let mut chosen = BTreeSet::new();
    let mut told = BTreeSet::new();
    for n in order {
        let Some(sentence) = sentences.get(n) else {
            continue;
        };
        if told.contains(&sentence.text) {
            continue;
        }
        let head = match opened.contains(&sentence.at) {
            true => 0,
            false => items
                .get(sentence.at)
                .map_or(0, |item| estimator.text(&beginning(item)) + 2),
        };
        // A gap may have to be marked, unless the sentence stands beside a printed one.
        let printed = |n: Option<usize>| n.is_some_and(|n| chosen.contains(&n));
        let gap = !printed(n.checked_sub(1)) && !printed(n.checked_add(1));
        let cost = head + sentence.cost + u64::from(gap);
        if cost <= left {
            left -= cost;
            opened.insert(sentence.at);
            chosen.insert(n);
            told.insert(&sentence.text);
        }
    }
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut gap = false;
    let mut last_line = 0;
    for (n, sentence) in sentences.iter().enumerate() {
        let first = n == 0
            || sentences
                .get(n - 1)
                .is_some_and(|before| before.at != sentence.at);
        if first {
            if gap && let Some((_, text)) = out.last_mut() {
                text.push_str(" …");
            }
            gap = false;
        }
        if !chosen.contains(&n) {
            gap = opened.contains(&sentence.at);
            continue;
        }
        match out.last_mut() {
            Some((at, text)) if *at == sentence.at => {
                if gap {
                    text.push_str(" …");
                }
                text.push_str(match sentence.line == last_line {
                    true => " ",
                    false => "\n",
                });
                if sentence.line != last_line {
                    text.push_str(MORE);
                }
                text.push_str(&sentence.text);
            }
            _ => {
                let mut text = items
                    .get(sentence.at)
                    .map_or_else(String::new, |i| beginning(i));
                if gap {
                    text.push_str("… ");
                }
                text.push_str(&sentence.text);
                out.push((sentence.at, text));
            }
        }
        gap = false;
        last_line = sentence.line;
    }
    if gap && let Some((_, text)) = out.last_mut() {
        text.push_str(" …");
    }
    for (at, text) in &mut out {
        if let Some(item) = items.get(*at) {
            add_note(item, text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use memory_model::{Seq, SeqRange};
    use token_estimate::HeuristicEstimator;

    use super::*;

    #[test]
    fn what_is_said_twice_is_quoted_once() {
        let item = |n: u32, last: &str| {
            let lines = [
                "Run the template.",
                "Keep the order.",
                "Never skip a step.",
                last,
            ];
            let lines = lines.map(str::to_owned).to_vec();
            Item::new(SeqRange::single(Seq(n)), Kind::User, "User", TYPED).with_lines(lines)
        };
        let items = [item(1, "Begin with ants."), item(2, "End with zebras.")];
        let items: Vec<&Item> = items.iter().collect();
        let told = shortened(&items, &[0, 1], 200, &HeuristicEstimator::Bytes4);
        let text: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            text.join("\n"),
            "[2] User: Run the template.\n  Keep the order.\n  Never skip a step.\n  \
             End with zebras.\n[1] User: … Begin with ants."
        );
    }
}
