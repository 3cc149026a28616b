//! Splits a sentence into clauses, and decides which of its numbers are names.

use std::collections::BTreeSet;
use std::ops::Range;

use super::item::{Form, Item, stem};
use super::lexicon::{LEXICON, cue, is_han};
use super::reader::Reader;
use super::sentence::{Clause, Name, Value};
use super::token::Kind;

impl Reader<'_> {
    /// Splits the sentence into parts with a value of their own.
    pub(super) fn parts(&self, items: &[Item]) -> Vec<Range<usize>> {
        let mut cuts: Vec<usize> = Vec::new();
        for (n, token) in self.tokens.iter().enumerate() {
            let cut = match token.kind {
                Kind::Mark => matches!(
                    token.text.as_str(),
                    "," | ";"
                        | ":"
                        | "，"
                        | "；"
                        | "："
                        | "、"
                        | "—"
                        | "–"
                        | "("
                        | ")"
                        | "（"
                        | "）"
                ),
                Kind::Word => matches!(
                    token.text.as_str(),
                    "and" | "und" | "but" | "aber" | "while" | "sondern"
                ),
                _ => false,
            };
            if cut && !items.iter().any(|item| item.tokens.contains(&n)) {
                cuts.push(n);
            }
        }
        cuts.push(self.tokens.len());
        let is_value = |item: &Item| matches!(item.form, Form::Value { .. } | Form::Date { .. });
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for end in cuts {
            let own = || {
                items
                    .iter()
                    .filter(|item| (start..end).contains(&item.tokens.start))
            };
            let begins = match parts.last() {
                None => true,
                Some(last) => {
                    let before = items
                        .iter()
                        .filter(|item| last.contains(&item.tokens.start));
                    let before: Vec<&Item> = before.collect();
                    let said = before.len() > 1 || before.iter().any(|item| is_value(item));
                    said && own().any(is_value)
                }
            };
            match parts.last_mut() {
                Some(last) if !begins => last.end = end,
                _ => parts.push(start..end),
            }
            start = end;
        }
        parts
    }

    pub(super) fn clause(&self, part: &Range<usize>, own: &[&Item], all: &[Item]) -> Clause {
        let mut clause = Clause::default();
        let is_value = |item: &&&Item| matches!(item.form, Form::Value { .. });
        let has_value = own.iter().any(|item| is_value(&item) && !item.is_former);
        let has_date = own
            .iter()
            .any(|item| matches!(item.form, Form::Date { .. }));
        // The last number with a label is the value if the clause has no other.
        let last = own.iter().rposition(|item| {
            matches!(item.form, Form::Label { .. } | Form::Code { .. })
                && !self.is_owned(part, item)
        });
        let last = last.filter(|_| !has_value && !has_date);
        for (at, item) in own.iter().enumerate() {
            let name = |key: &str, is_place: bool| Name {
                key: key.to_owned(),
                number: item.number.clone(),
                is_place,
                range: item.range.clone(),
            };
            let value = |dimension: &str, amount: &str| Value {
                dimension: dimension.to_owned(),
                amount: amount.to_owned(),
                number: item.number.clone(),
                is_former: item.is_former,
                range: item.range.clone(),
            };
            match &item.form {
                Form::Name { key } => clause.names.push(name(key, false)),
                Form::Label { key } if Some(at) == last || item.is_former => {
                    clause
                        .values
                        .push(value(&format!("of {key}"), &item.number));
                }
                Form::Code { text, .. } if Some(at) == last || item.is_former => {
                    clause.values.push(Value {
                        number: text.clone(),
                        ..value("code", text)
                    });
                }
                Form::Label { key } | Form::Code { key, .. } => {
                    let is_place = !self.is_owned(part, item) && self.is_in_place(item);
                    clause.names.push(name(key, is_place));
                }
                Form::Date { amount, dimension }
                    if has_value && !item.is_former && self.is_dated(part, item) =>
                {
                    clause.names.push(Name {
                        number: amount.clone(),
                        ..name(dimension, false)
                    });
                }
                Form::Date { dimension, amount } => clause.values.push(value(dimension, amount)),
                Form::Value { dimension, amount } => clause.values.push(value(dimension, amount)),
            }
        }
        self.terms(part, all, &mut clause);
        clause.head = own
            .iter()
            .find_map(|item| self.head(part, item, all, &clause));
        clause
    }

    /// Returns the noun of which a name is a part or owner: `baggage` in `baggage on flight 12`.
    fn head(
        &self,
        part: &Range<usize>,
        item: &Item,
        all: &[Item],
        clause: &Clause,
    ) -> Option<String> {
        if !clause.names.iter().any(|name| name.range == item.range) {
            return None;
        }
        let mut n = self.start_of(item);
        let links =
            |n: usize| LEXICON.place.contains(self.at(n)) || LEXICON.owner.contains(self.at(n));
        if n > part.start + 1 && self.is_content(n - 1) && links(n - 2) {
            n -= 1;
        }
        let mut is_linked = false;
        while n > part.start && LEXICON.empty.contains(self.before(n, 1)) {
            n -= 1;
            is_linked |= links(n);
        }
        let before = n.checked_sub(1).filter(|n| part.contains(n))?;
        let is_number = all.iter().any(|item| item.tokens.contains(&before));
        let word = self.term(self.at(before));
        let gerund = self.at(before).ends_with("ing");
        ((is_linked || gerund) && !is_number && clause.terms.contains(&word)).then_some(word)
    }

    /// Returns whether a date names the thing that the clause is about: at its beginning, or after a word such as `of`.
    fn is_dated(&self, part: &Range<usize>, item: &Item) -> bool {
        let before = self.before(item.tokens.start, 1);
        let is_owner = LEXICON.owner.contains(before) || before == "from";
        is_owner || self.is_topic(part, item)
    }

    /// Returns the first token of a number with its label.
    fn start_of(&self, item: &Item) -> usize {
        let start = item.tokens.start;
        let is_label = matches!(item.form, Form::Label { .. })
            && self.kind(start.wrapping_sub(1)) == Some(Kind::Word)
            && self.before_label(start).is_some();
        start - usize::from(is_label)
    }

    /// Returns whether a number is at the beginning of its clause, before any verb or other noun.
    fn is_topic(&self, part: &Range<usize>, item: &Item) -> bool {
        let start = self.start_of(item);
        // One more noun may describe the label: `branch release-1.2`.
        let noun = start.checked_sub(1).filter(|n| {
            let word = self.at(*n);
            self.is_content(*n)
                && self.touches_word(*n)
                && !self.is_cue(*n)
                && !LEXICON.amount.contains(word)
                && !LEXICON.ambiguous.contains(word)
                && matches!(item.form, Form::Label { .. } | Form::Code { .. })
                && item.tokens.end < part.end
        });
        self.begins(part, item, start) || noun.is_some_and(|n| self.begins(part, item, n))
    }

    /// Returns whether only a space is between a token and the next one.
    fn touches_word(&self, n: usize) -> bool {
        let end = self.tokens.get(n).map(|token| token.range.end + 1);
        end.is_some() && end == self.tokens.get(n + 1).map(|token| token.range.start)
    }

    /// Returns whether only empty words are between the beginning of a clause and a token.
    fn begins(&self, part: &Range<usize>, item: &Item, start: usize) -> bool {
        // A clause after a colon or a comma begins anew.
        let mark = (part.start..start).rev().find(|n| {
            matches!(self.at(*n), "," | ":" | "，" | "：" | "、")
                && self.kind(*n) == Some(Kind::Mark)
        });
        let from = mark.map_or(part.start, |n| n + 1);
        (from..start).all(|n| match self.kind(n) {
            Some(Kind::Word) => {
                LEXICON.empty.contains(self.at(n)) && !LEXICON.predicate.contains(self.at(n))
                    || self.is_cue(n)
                    || n + 2 == start && self.before(start, 1) == "number"
            }
            Some(Kind::Han) => {
                // In `服务42` the label is before the number.
                let text = self.without_cues(n);
                let length = text
                    .chars()
                    .filter(|c| is_han(*c) && !LEXICON.empty_chars.contains(c))
                    .count();
                let most = match &item.form {
                    Form::Label { key } if !key.starts_with(is_han) => 2,
                    Form::Code { .. } => 2,
                    _ => 4,
                };
                n + 1 == start
                    && length <= most
                    && !text.contains(['在', '到', '用', '去', '是', '我', '有'])
            }
            Some(Kind::Number) => false,
            _ => true,
        })
    }

    /// Returns whether a number names by its place: at the beginning of the clause, or after a word such as `of`.
    fn is_owned(&self, part: &Range<usize>, item: &Item) -> bool {
        let n = item.tokens.start;
        let mut start = n;
        while start > 0
            && (self.is_content(start - 1)
                || matches!(
                    self.at(start - 1),
                    "the"
                        | "our"
                        | "den"
                        | "dem"
                        | "der"
                        | "die"
                        | "das"
                        | "no"
                        | "nr"
                        | "."
                        | "unser"
                        | "unsere"
                        | "#"
                ))
            && start + 3 > n
        {
            start -= 1;
        }
        let owner = start > 0 && LEXICON.owner.contains(self.at(start - 1))
            || n > 1 && LEXICON.owner.contains(self.before(n, 2))
            || matches!(self.before(n, 1), "of" | "for" | "für");
        let owns =
            self.at(item.tokens.end) == "'" || self.at(item.tokens.end).starts_with('的') || {
                let after: String = self.at(item.tokens.end).chars().take(6).collect();
                after.contains('的') && self.kind(item.tokens.end) == Some(Kind::Han)
            };
        self.is_topic(part, item) || owner || owns
    }

    /// Returns whether a word of a place is before a number and its label.
    fn is_in_place(&self, item: &Item) -> bool {
        let n = item.tokens.start;
        if self.kind(n.wrapping_sub(1)) == Some(Kind::Han) {
            let text = self.before(n, 1);
            return LEXICON
                .place
                .iter()
                .any(|word| word.starts_with(is_han) && text.contains(*word));
        }
        (1..=3).any(|places| LEXICON.place.contains(self.before(n, places)))
    }

    /// Returns the text of a token with spaces instead of phrases that say how the sentence relates to others.
    fn without_cues(&self, n: usize) -> String {
        let token = self.tokens.get(n);
        let start = token.map_or(0, |token| token.range.start);
        let chars = token.map_or("", |token| token.text.as_str()).char_indices();
        let is_cue = |at: usize| {
            self.han_cues
                .iter()
                .any(|range| range.contains(&(start + at)))
        };
        chars
            .map(|(at, c)| if is_cue(at) { ' ' } else { c })
            .collect()
    }

    /// Returns the beginning of a word of a subject by which it is compared.
    fn term(&self, word: &str) -> String {
        if !self.is_german || LEXICON.alias.contains_key(word) {
            return stem(word);
        }
        let ends = ["en", "et", "st", "t", "e", "n"];
        let bare = ends.iter().filter_map(|end| word.strip_suffix(end));
        let bare = bare.into_iter().find(|bare| bare.chars().count() >= 4);
        let plain = |c: char| match c {
            'ä' => 'a',
            'ö' => 'o',
            'ü' => 'u',
            _ => c,
        };
        stem(&bare.unwrap_or(word).chars().map(plain).collect::<String>())
    }

    /// Adds the words of the subject to a clause.
    fn terms(&self, part: &Range<usize>, items: &[Item], clause: &mut Clause) {
        let keys: BTreeSet<&str> = clause.names.iter().map(|name| name.key.as_str()).collect();
        let of: BTreeSet<&str> = clause
            .values
            .iter()
            .filter_map(|value| value.dimension.strip_prefix("of "))
            .collect();
        let mut terms = BTreeSet::new();
        let mut last: Option<(usize, String)> = None;
        for n in part.clone() {
            if items.iter().any(|item| item.tokens.contains(&n)) {
                continue;
            }
            let text = self.at(n);
            if let Some(side) = LEXICON.opposite.get(text) {
                clause.opposites.insert(*side);
            }
            match self.kind(n) {
                Some(Kind::Word) => {
                    clause.negated |= self.has_cue(n, cue::NEGATES);
                    let is_unit = LEXICON.units.contains_key(text);
                    if self.is_content(n)
                        && !self.is_cue(n)
                        && !is_unit
                        && text.chars().count() > 1
                        && !self.has_cue(n, cue::NEGATES)
                    {
                        let term = self.term(text);
                        if let Some((before, last)) = last.replace((n, term.clone()))
                            && before + 1 == n
                            && (!self.is_german
                                || self.tokens.get(n).is_some_and(|token| token.is_capital))
                        {
                            clause.pairs.insert((last, term.clone()));
                        }
                        terms.insert(term);
                    }
                }
                Some(Kind::Han) => {
                    for (at, _) in text.char_indices() {
                        let rest = text.get(at..).unwrap_or("");
                        clause
                            .opposites
                            .extend(LEXICON.han_opposites.all(rest).map(|(_, side)| side));
                        let mut cues = LEXICON.han_phrases(rest);
                        clause.negated |= cues.any(|(_, cue)| cue & cue::NEGATES != 0);
                    }
                    let mut text = self.without_cues(n);
                    let after_number = n > 0 && items.iter().any(|item| item.tokens.end == n);
                    if after_number {
                        let units = LEXICON.han_units.longest(&text).map(|(unit, _)| unit.len());
                        let scales = LEXICON
                            .han_scales
                            .longest(&text)
                            .map(|(unit, _)| unit.len());
                        let words = LEXICON.counters.all(&text).chain(LEXICON.namers.all(&text));
                        let unit = words
                            .map(|(word, ())| word.len())
                            .chain(units)
                            .chain(scales)
                            .max();
                        text = text.get(unit.unwrap_or(0)..).unwrap_or("").to_owned();
                    }
                    for run in text.split(|c: char| !is_han(c) || LEXICON.empty_chars.contains(&c))
                    {
                        terms.extend(run.chars().map(String::from));
                    }
                }
                _ => {}
            }
        }
        terms.retain(|term| !keys.contains(term.as_str()) && !of.contains(term.as_str()));
        clause.terms = terms;
    }
}
