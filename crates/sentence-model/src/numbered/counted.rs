//! Reads the unit of a number, the things that it counts, or its label.

use std::ops::Range;

use super::item::{Form, plain, point, value};
use super::lexicon::{Beginnings, LEXICON, cue, is_han};
use super::reader::Reader;
use super::sentence::{HOUR, PLAIN};
use super::spelling::{amount_of, stem, written};
use super::token::{Kind, Token, is_number_word};

/// Number of Han characters that name a kind of thing.
pub(super) const HAN_KEY: usize = 2;

impl Reader<'_> {
    /// Reads a number with its unit, with the things that it counts, or with its label. `end` is the token after the number.
    pub(super) fn counted(
        &self,
        n: usize,
        end: usize,
        number: &str,
        unit: Option<&str>,
    ) -> Option<(Range<usize>, Form, String)> {
        if let Some(found) = self.day(n, number).filter(|_| unit.is_none()) {
            return Some(found);
        }
        let before = self.before(n, 1);
        let amount = amount_of(number);
        let next = self.at(end);
        let quantity = |dimension: &str, size: f64, end: usize| {
            let amount = amount.map_or_else(|| number.to_owned(), |amount| written(amount * size));
            let dimension = dimension.to_owned();
            Some((n..end, Form::Value { dimension, amount }, number.to_owned()))
        };
        let money = matches!(before, "$" | "€" | "£" | "¥" | "￥");
        // The unit, and the size of the words before it, such as `万` in `80万元`.
        let (mut scale, mut end_of_unit) = (1.0, end);
        let mut rest = unit.map_or_else(|| next.to_owned(), str::to_owned);
        let is_number_of_unit = unit.is_some();
        let is_han_next = rest.starts_with(is_han) && self.kind(end) != Some(Kind::Number);
        if is_han_next {
            if let Some((word, size)) = LEXICON.han_scales.longest(&rest) {
                scale = size;
                rest = rest.get(word.len()..).unwrap_or("").to_owned();
            }
            if let Some((unit, (dimension, size))) = LEXICON.han_units.longest(&rest) {
                let is_year = unit == "年" && number.len() == 4;
                if is_year {
                    let key = "year".to_owned();
                    return Some((n..end, Form::Name { key }, number.to_owned()));
                }
                return quantity(dimension, size * scale, end);
            }
            if scale > 1.0 && !money {
                let counter = LEXICON
                    .counters
                    .longest(&rest)
                    .map(|(word, _)| word)
                    .unwrap_or("");
                return quantity(counter, scale, end);
            }
            if rest.starts_with("分之") {
                return quantity("share", 1.0, end);
            }
        } else if let Some(size) = LEXICON.scales.get(rest.as_str()) {
            scale = *size;
            if !is_number_of_unit {
                end_of_unit = end + 1;
            }
            rest = self.at(end_of_unit).to_owned();
        }
        let known_unit = LEXICON.units.get(rest.as_str()).filter(|_| {
            rest.chars().count() > 1
                || is_number_of_unit
                || matches!(rest.as_str(), "%" | "€" | "$" | "°" | "m" | "h" | "g" | "s")
        });
        if let Some((dimension, size)) = known_unit {
            let end = match is_number_of_unit && scale <= 1.0 {
                true => end,
                false => end_of_unit + 1,
            };
            return quantity(dimension, size * scale, end);
        }
        if money {
            let end = end_of_unit.max(end);
            return quantity("money", scale, end)
                .map(|(tokens, form, number)| (tokens.start - 1..tokens.end, form, number));
        }
        // Years.
        let is_year = number.len() == 4
            && (number.starts_with("19") || number.starts_with("20"))
            && amount.is_some();
        let start = n == 0 || self.kind(n - 1) == Some(Kind::Mark);
        let is_model =
            LEXICON.has("article", before) && self.is_content(end) && !next.ends_with('s');
        if is_year && scale <= 1.0 && (start || is_model || LEXICON.has("dated", before)) {
            let key = "year".to_owned();
            let form = match before {
                "in" | "for" | "of" | "during" | "im" | "für" => Form::Name { key },
                _ => Form::Label { key },
            };
            return Some((n..end, form, number.to_owned()));
        }
        if next.starts_with(is_han) {
            // The next word may be counted or named.
            let label = self.before_label(n);
            if next.starts_with('号') {
                let after: String = next.chars().skip(1).collect();
                let is_day = after
                    .chars()
                    .next()
                    .is_none_or(|c| LEXICON.day_chars.contains(&c));
                if is_day && amount.is_some_and(|day| day < 32.0) {
                    let form = point("day", format!("{:02}", amount.unwrap_or_default()));
                    return Some((n..end, form, number.to_owned()));
                }
                let first: String = after
                    .chars()
                    .take_while(|c| !LEXICON.empty_chars.contains(c))
                    .take(HAN_KEY)
                    .collect();
                let namer = LEXICON.namers.longest(&after).map(|(word, _)| word);
                let key = match namer {
                    Some(namer) => namer.to_owned(),
                    None if first.is_empty() => "号".to_owned(),
                    None => first,
                };
                return Some((n..end, Form::Label { key }, number.to_owned()));
            }
            if label.is_none() || LEXICON.namers.longest(next).map(|(word, _)| word).is_some() {
                let longest =
                    |words: &Beginnings<()>| words.longest(next).map_or("", |(word, ())| word);
                let (namer, counter) = (longest(&LEXICON.namers), longest(&LEXICON.counters));
                if counter.len() < namer.len() {
                    let key = namer.to_owned();
                    return Some((n..end, Form::Label { key }, number.to_owned()));
                }
                if let Some(counter) = LEXICON.counters.longest(next).map(|(word, _)| word) {
                    let people = ["个人", "名", "位"]
                        .iter()
                        .any(|word| next.starts_with(word));
                    return quantity(if people { "人" } else { counter }, scale, end);
                }
                let is_noun = next.chars().next().is_some_and(|c| {
                    !LEXICON.empty_chars.contains(&c) && !"，。有没不也还再最已现分".contains(c)
                });
                if is_noun
                    && LEXICON
                        .han_phrase(next)
                        .is_none_or(|(_, cue)| cue & cue::MOVES == 0)
                    && label.is_none()
                    && self.kind(n.wrapping_sub(1)) != Some(Kind::Han)
                {
                    let key = self.han_key(end);
                    return Some((n..end, Form::Label { key }, number.to_owned()));
                }
            } else if let Some(counter) = LEXICON.counters.longest(next).map(|(word, _)| word) {
                // `保留5份` has a verb before the number, and `等级2份额` is rare.
                return quantity(counter, scale, end);
            }
        }
        let is_number = self.tokens.get(end).is_some_and(is_number_word);
        let is_noun = !self.is_cue(end) && !self.has_cue(end, cue::ASSIGNS) && !is_number;
        // `The 40 leaves`: the 40 is a bus.
        let articles = before == "a" || LEXICON.has("article", before);
        let is_noun = is_noun && !(articles && LEXICON.opposite.contains_key(next));
        let follows = self.is_content(end) && is_noun && scale <= 1.0;
        let count = || {
            let key = stem(self.at(end_of_unit));
            quantity(&format!("count {key}"), scale, end_of_unit)
        };
        if let Some(key) = self.before_label(n)
            && scale <= 1.0
            && self.is_label(n, end, follows)
        {
            return Some((n..end, Form::Label { key }, number.to_owned()));
        }
        // `The 3.12 job` is one of several.
        let is_one = LEXICON.has("article", before) && number.contains('.');
        if follows && is_one && !next.ends_with('s') {
            let key = stem(next);
            return Some((n..end + 1, Form::Name { key }, number.to_owned()));
        }
        if follows || (scale > 1.0 && self.is_content(end_of_unit) && !self.is_cue(end_of_unit)) {
            return count();
        }
        if scale > 1.0 {
            return quantity(PLAIN, scale, end_of_unit);
        }
        let is_hour = LEXICON.has("until", before) && amount.is_some_and(|hour| hour < 25.0);
        let form = match number.matches('.').count() {
            0 if is_hour => value(HOUR, number),
            0 | 1 => plain(number),
            _ => value(PLAIN, number),
        };
        Some((n..end, form, number.to_owned()))
    }

    /// Returns the kind of thing that the word before a number names: `tier` in `tier 2`.
    pub(super) fn before_label(&self, n: usize) -> Option<String> {
        let mut at = n.checked_sub(1)?;
        let mut is_number = false;
        while matches!(
            self.at(at),
            "." | "nr" | "no" | "number" | "nummer" | "num" | "id" | "号" | "-"
        ) {
            // `Flight number 12` is a flight.
            is_number = true;
            let Some(before) = at.checked_sub(1) else {
                return Some("number".to_owned());
            };
            at = before;
        }
        match self.kind(at)? {
            Kind::Word | Kind::Mark if is_number && !self.is_content(at) => {
                Some("number".to_owned())
            }
            Kind::Word
                if self.is_content(at)
                    && !self.is_cue(at)
                    && !LEXICON.ordinals.contains_key(self.at(at)) =>
            {
                Some(stem(self.at(at)))
            }
            Kind::Han if at + 1 == n => {
                let text = self.at(at);
                let last = text.chars().next_back()?;
                if LEXICON.empty_chars.contains(&last)
                    || "有是为成到至于装，过超达共少多高低花卖涨降要付收存留限坐容第每约近满在"
                        .contains(last)
                {
                    return None;
                }
                let end = self.tokens.get(at).map_or(0, |token| token.range.end);
                if self.han_cues.iter().any(|range| range.end == end) || text.ends_with("限制") {
                    return None;
                }
                let key: Vec<char> = text
                    .chars()
                    .rev()
                    .take_while(|c| !LEXICON.empty_chars.contains(c))
                    .take(HAN_KEY)
                    .collect();
                let key: String = key.into_iter().rev().collect();
                Some(LEXICON.alias.get(key.as_str()).map_or(key, |key| stem(key)))
            }
            _ => None,
        }
    }

    /// Returns whether the word before a number is its label, and not a verb of which the number counts the object.
    fn is_label(&self, n: usize, end: usize, follows: bool) -> bool {
        let Some(before) = n.checked_sub(1).and_then(|n| self.tokens.get(n)) else {
            return false;
        };
        if before.kind != Kind::Word {
            return true;
        }
        let word = before.text.as_str();
        // `Two dashboards` counts, and so does an action.
        let is_word = !self.at(n).starts_with(|c: char| c.is_ascii_digit());
        if is_word && follows && !LEXICON.has("numbered", word)
            || LEXICON.has("subject", self.before(n, 2))
            || follows && self.at(end).ends_with('s') && LEXICON.has("be", self.before(n, 2))
        {
            return false;
        }
        if self.is_german {
            let noun = |token: Option<&Token>| {
                token.is_some_and(|token| token.is_capital && token.kind == Kind::Word)
            };
            return before.is_capital && !noun(self.tokens.get(end));
        }
        if LEXICON.has("ambiguous", word) {
            let long = self.at(n).len() > 2;
            // One counts `pages`, and not a `page`.
            return long
                || !follows
                || !self.at(end).ends_with('s')
                || n == 1 && self.has_number_after(end);
        }
        let verb = word.len() > 3 && word.ends_with("ed") && !word.ends_with("eed")
            || word.ends_with("ing")
            || (word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us"));
        !verb && !LEXICON.has("amount", word)
    }

    pub(super) fn has_number_before(&self, part: &Range<usize>, end: usize) -> bool {
        (part.start..end).any(|n| self.kind(n) == Some(Kind::Number))
    }

    fn has_number_after(&self, n: usize) -> bool {
        (n..self.tokens.len()).any(|n| self.kind(n) == Some(Kind::Number))
    }
}
