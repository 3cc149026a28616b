//! Selection of sentences of users' texts, if not all of them fit.

use std::collections::BTreeSet;

use token_estimate::TokenEstimator;

use crate::force::is_small_talk;
use crate::item::{Item, Kind, PASTED, RULE, TYPED, VALUED};
use crate::names::has_name;
use crate::news::News;
use crate::print::{MORE, add_note, beginning};
use crate::text::{is_directive, is_fence, line_sentences, reads_as_code};

/// Factor by which the value of a line of code is below that of a sentence.
pub(crate) const CODE: u64 = 4;

/// Number of letters below which the first sentence of a message may be a greeting.
const GREETING: usize = 16;

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// Returns the most informative sentence of a text: one with a name or a number, otherwise one that asks for something,
/// otherwise the first.
pub(crate) fn telling_sentence(text: &str) -> Option<String> {
    let sentences: Vec<String> = text.lines().flat_map(line_sentences).collect();
    let named = sentences.iter().find(|sentence| has_name(sentence));
    let asks = || sentences.iter().find(|sentence| is_directive(sentence));
    named.or_else(asks).or(sentences.first()).cloned()
}

/// A sentence of an item (a candidate line) that comes from a user's message.
struct Sentence {
    at: usize,
    line: usize,
    text: String,
    cost: u64,
    value: u64,
}

/// Sentences of the items (candidate lines) that come from users' messages.
pub(crate) struct Sentences<'a> {
    items: &'a [&'a Item],
    estimator: &'a dyn TokenEstimator,
    sentences: Vec<Sentence>,
    beside: u64,
}

impl<'a> Sentences<'a> {
    /// Reads the sentences of the items (candidate lines) at these indices.
    pub(crate) fn of(
        items: &'a [&'a Item],
        users: &[usize],
        estimator: &'a dyn TokenEstimator,
    ) -> Self {
        let mut sentences: Vec<Sentence> = Vec::new();
        // If only users speak, as in a mail or a note, the shortest sentences are not the most informative ones.
        let prose = items.iter().all(|item| item.kind.users());
        for (age, at) in users.iter().rev().enumerate() {
            let Some(item) = items.get(*at) else { continue };
            let ends = age == 0 || age + 1 == users.len();
            let mut code = false;
            for (line, text) in item.lines.iter().enumerate() {
                if is_fence(text) {
                    code = !code;
                    continue;
                }
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
                    // A greeting at the start of a message is not informative.
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
                    if code || reads_as_code(&text) {
                        value /= CODE;
                    }
                    // Later sentences are worth up to a third more.
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
        Self {
            items,
            estimator,
            sentences,
            beside: if prose { 16 } else { 4 },
        }
    }

    /// Chooses sentences that together cost at most `room` tokens. Returns the printed texts of their items (candidate
    /// lines), by the index of the item. Typed sentences come before pasted and injected ones. Then sentences with
    /// something new come before others, and later sentences before earlier ones.
    pub(crate) fn within(&self, room: u64) -> Vec<(usize, String)> {
        let chosen = self.chosen(room);
        self.printed(&chosen)
    }

    /// Returns for each sentence whether it is chosen.
    fn chosen(&self, room: u64) -> Vec<bool> {
        let sentences = &self.sentences;
        let worth = |n: usize| {
            let sentence = sentences.get(n);
            sentence.map_or(0, |s| s.value * 1000 / (s.cost + self.beside))
        };
        let mut news = News::of(sentences.iter().map(|s| s.text.as_str()), 1, &worth);
        let mut left = room;
        let mut opened = BTreeSet::new();
        let mut chosen = vec![false; sentences.len()];
        let mut told = BTreeSet::new();
        while let Some(n) = news.next(&worth) {
            let Some(sentence) = sentences.get(n) else {
                continue;
            };
            if told.contains(&sentence.text) {
                continue;
            }
            let head = match opened.contains(&sentence.at) {
                true => 0,
                false => self
                    .items
                    .get(sentence.at)
                    .map_or(0, |item| self.estimator.text(&beginning(item)) + 2),
            };
            // The cost includes the mark of a gap, unless a neighbouring sentence is printed.
            let printed = |n: Option<usize>| n.and_then(|n| chosen.get(n)) == Some(&true);
            let gap = !printed(n.checked_sub(1)) && !printed(n.checked_add(1));
            let cost = head + sentence.cost + u64::from(gap);
            if cost <= left {
                left -= cost;
                opened.insert(sentence.at);
                told.insert(&sentence.text);
                news.tell(n);
                if let Some(chosen) = chosen.get_mut(n) {
                    *chosen = true;
                }
            }
        }
        chosen
    }

    /// Returns the printed texts of the items (candidate lines) with at least one chosen sentence, by the index of the
    /// item.
    fn printed(&self, chosen: &[bool]) -> Vec<(usize, String)> {
        let opened: BTreeSet<usize> = self
            .sentences
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| **chosen)
            .map(|(sentence, _)| sentence.at)
            .collect();
        let mut out: Vec<(usize, String)> = Vec::new();
        let mut gap = false;
        let mut last_line = 0;
        for (n, (sentence, chosen)) in self.sentences.iter().zip(chosen).enumerate() {
            let first = n == 0
                || self
                    .sentences
                    .get(n - 1)
                    .is_some_and(|before| before.at != sentence.at);
            if first {
                if gap && let Some((_, text)) = out.last_mut() {
                    text.push_str(" …");
                }
                gap = false;
            }
            if !chosen {
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
                    let mut text = self
                        .items
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
            if let Some(item) = self.items.get(*at) {
                add_note(item, text);
            }
        }
        out
    }
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
        let told = Sentences::of(&items, &[0, 1], &HeuristicEstimator::Bytes4).within(200);
        let text: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            text.join("\n"),
            "[2] User: Run the template.\n  Keep the order.\n  Never skip a step.\n  \
             End with zebras.\n[1] User: … Begin with ants."
        );
    }

    #[test]
    fn sentences_come_before_lines_of_code() {
        let lines = [
            "The report shows wrong totals since we moved the archive to Lisbon.",
            "```python",
            "rows_12 = load_7(1984)",
            "rows_13 = load_8(2011)",
            "```",
            "Where does it read the rows of a month twice, and would anybody notice?",
        ];
        let lines = lines.map(str::to_owned).to_vec();
        let item = Item::new(SeqRange::single(Seq(1)), Kind::User, "User", TYPED).with_lines(lines);
        let reply = Item::new(SeqRange::single(Seq(2)), Kind::Reply, "Assistant", TYPED);
        let items = [&item, &reply];
        let sentences = Sentences::of(&items, &[0], &HeuristicEstimator::Bytes4);
        let within = |room| {
            let told = sentences.within(room).into_iter().map(|(_, text)| text);
            told.collect::<String>()
        };
        let said = "[1] User: The report shows wrong totals since we moved the archive to Lisbon. …\n  \
                    Where does it read the rows of a month twice, and would anybody notice?";
        assert_eq!(within(44), said);
        assert!(within(60).contains("rows_12 = load_7"), "{}", within(60));
    }
}
