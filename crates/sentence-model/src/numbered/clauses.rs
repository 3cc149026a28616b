//! Splits a sentence into clauses, and decides which of its numbers are names.

use std::collections::BTreeSet;
use std::ops::Range;

use super::item::{Form, Item};
use super::lexicon::{LEXICON, cue, is_han};
use super::reader::Reader;
use super::sentence::{CODE, Clause, DATE, Name, PLAIN, Value, WEEKDAY};
use super::spelling::stem;
use super::token::Kind;

/// Marks between clauses.
const BREAKS: &str = ",;:，；：、—–()（）";

impl Reader<'_> {
    /// Splits the sentence into parts with a value of their own.
    pub(super) fn parts(&self, items: &[Item]) -> Vec<Range<usize>> {
        let mut cuts: Vec<usize> = Vec::new();
        for (n, token) in self.tokens.iter().enumerate() {
            let cut = match token.kind {
                Kind::Mark => BREAKS.contains(&token.text),
                kind => kind == Kind::Word && LEXICON.has("break", &token.text),
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

    /// Reads a part of the sentence with its numbers.
    pub(super) fn clause(&self, part: &Range<usize>, own: &[&Item], all: &[Item]) -> Clause {
        let mut clause = Clause::default();
        let mut held = own.iter().filter(|item| !item.is_former);
        let is_numbered = |item: &Item| matches!(item.form, Form::Label { .. } | Form::Code { .. });
        let has_value = held
            .clone()
            .any(|item| matches!(item.form, Form::Value { .. }));
        let has_date = held.any(|item| matches!(item.form, Form::Date { .. }));
        // The last number with a label is the value if the clause has no other.
        let last = own
            .iter()
            .rposition(|item| is_numbered(item) && !self.is_owned(part, item));
        let last = last.filter(|_| !has_value && !has_date);
        for (at, item) in own.iter().enumerate() {
            let mut name = |key: &str, number: &str, is_place: bool| {
                clause.names.push(Name {
                    key: key.to_owned(),
                    number: number.to_owned(),
                    is_place,
                    range: item.range.clone(),
                });
            };
            let (dimension, amount) = match &item.form {
                Form::Name { key } => {
                    name(key, &item.number, false);
                    continue;
                }
                Form::Date { dimension, amount } => (*dimension, amount),
                Form::Label { key } => (key.as_str(), &item.number),
                Form::Code { text, .. } => (CODE, text),
                Form::Value { dimension, amount } => (dimension.as_str(), amount),
            };
            let is_date = dimension == DATE || dimension == WEEKDAY;
            if is_date && has_value && !item.is_former && self.is_dated(part, item) {
                name(dimension, amount, true);
                continue;
            }
            if dimension == PLAIN && !item.is_former && self.may_name(part, item, own.len()) {
                name("", &item.number, false);
                continue;
            }
            let mut dimension = dimension.to_owned();
            if is_numbered(item) && !item.is_former {
                let (Form::Label { key } | Form::Code { key, .. }) = &item.form else {
                    continue;
                };
                let is_place = self.is_in_place(item) || Some(at) == last;
                let is_place = is_place && !self.is_owned(part, item);
                name(key, &item.number, is_place);
                if !is_place {
                    continue;
                }
            }
            if matches!(item.form, Form::Label { .. }) {
                dimension = format!("of {dimension}");
            }
            let is_code = matches!(item.form, Form::Code { .. });
            clause.values.push(Value {
                amount: amount.clone(),
                number: if is_code { amount } else { &item.number }.clone(),
                is_former: item.is_former,
                may_name: dimension == PLAIN
                    && item.number.len() > 1
                    && self.begins(part, item, item.tokens.start),
                range: item.range.clone(),
                dimension,
            });
        }
        self.terms(part, all, &mut clause);
        let names = |item: &&&Item| {
            clause
                .names
                .iter()
                .any(|name| !name.is_place && name.range == item.range)
        };
        let heads = own.iter().filter(names).filter_map(|item| self.head(item));
        clause.heads = heads.filter(|head| clause.terms.contains(head)).collect();
        clause
    }

    /// Returns the word that a word such as `of` links to a number with its label.
    fn head(&self, item: &Item) -> Option<String> {
        let mut n = self.start_of(item);
        let mut is_linked = false;
        while n > 0 && LEXICON.empty.contains(self.before(n, 1)) {
            n -= 1;
            is_linked |= LEXICON.has("link", self.at(n));
        }
        is_linked.then(|| self.term(self.before(n, 1)))
    }

    /// Returns whether a number without a noun means a thing that was named before: `the 40`, `a 429`, or at the
    /// beginning of a clause with other numbers.
    fn may_name(&self, part: &Range<usize>, item: &Item, all: usize) -> bool {
        let start = item.tokens.start;
        let before = self.before(start, 1);
        LEXICON.has("article", before)
            || before == "a" && item.number.len() > 1
            || (all > 1 && self.begins(part, item, start) && item.number.len() > 1)
    }

    /// Returns whether a date says since when a sentence holds: `starting Monday`.
    pub(super) fn is_since(&self, item: &Item) -> bool {
        let is_date = matches!(item.form, Form::Date { .. });
        let (start, end) = (item.tokens.start, item.tokens.end);
        let before = self.before(start, 1);
        let is_since = match before {
            "of" => self.before(start, 2) == "as",
            "from" => start == 1 || self.at(end).starts_with("on"),
            _ => false,
        };
        is_date && (is_since || LEXICON.ends("since", before))
    }

    /// Returns whether a date names the thing that the clause is about: at its beginning, or after a word such as `of`.
    fn is_dated(&self, part: &Range<usize>, item: &Item) -> bool {
        let before = self.before(item.tokens.start, 1);
        let is_owner = LEXICON.has("owner", before) || before == "from";
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
        self.begins(part, item, self.start_of(item))
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
                (LEXICON.empty.contains(self.at(n)) || self.is_cue(n))
                    && !LEXICON.has("predicate", self.at(n))
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
                    && !self
                        .at(n)
                        .ends_with(['在', '到', '用', '成', '为', '至', '是'])
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
                || LEXICON.has("article", self.at(start - 1))
                || matches!(self.at(start - 1), "no" | "nr" | "." | "#"))
            && start + 3 > n
        {
            start -= 1;
        }
        // After the thing itself, `von` is a direction: `train 78 leaves from platform 4`.
        let goes = |word: &str| LEXICON.has("place", word) && self.has_number_before(part, start);
        let owner =
            start > 0 && LEXICON.has("owner", self.at(start - 1)) && !goes(self.at(start - 1))
                || n > 1 && LEXICON.has("owner", self.before(n, 2)) && !goes(self.before(n, 2))
                || matches!(self.before(n, 1), "of" | "for" | "für");
        let after = self.at(item.tokens.end);
        let owns = after == "'" || after.starts_with('的');
        self.is_topic(part, item) || owner || owns
    }

    /// Returns whether a word of a place is before a number and its label.
    fn is_in_place(&self, item: &Item) -> bool {
        let n = item.tokens.start;
        if self.kind(n.wrapping_sub(1)) == Some(Kind::Han) {
            let text = self.before(n, 1);
            return text.contains([
                '在', '到', '用', '去', '是', '为', '往', '于', '成', '走', '至',
            ]);
        }
        (1..=3).any(|places| LEXICON.has("place", self.before(n, places)))
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
        // `Geplant` is of `planen`.
        let participle = word
            .strip_prefix("ge")
            .filter(|bare| bare.chars().count() > 4);
        let word = participle
            .filter(|bare| bare.ends_with(['t', 'n']))
            .unwrap_or(word);
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
        let names = clause.names.iter().filter(|name| !name.is_place);
        let keys: BTreeSet<String> = names.map(|name| name.key.clone()).collect();
        let mut terms = BTreeSet::new();
        let mut last: Option<(usize, String)> = None;
        for n in part.clone() {
            if items.iter().any(|item| item.tokens.contains(&n)) {
                continue;
            }
            let text = self.at(n);
            match self.kind(n) {
                Some(Kind::Word) => {
                    clause.negated |= self.has_cue(n, cue::NEGATES | cue::DROPS);
                    let two = format!("{text} {}", self.at(n + 1));
                    let side = LEXICON.opposite.get(two.as_str());
                    let side = side.or_else(|| LEXICON.opposite.get(text)).copied();
                    let side = side.filter(|_| !self.is_cue(n));
                    clause.sides.extend(side);
                    // `C files` and `prices in JPY`: capitals name a thing, whatever they mean behind a number.
                    let written = self.tokens.get(n).map(|token| &token.range);
                    let written = written.and_then(|range| self.text.get(range.clone()));
                    let is_code = written.is_some_and(|word| word.chars().all(char::is_uppercase));
                    let is_unit = LEXICON.units.contains_key(text) && !is_code;
                    if !keys.contains(&stem(text))
                        && (self.is_content(n) || side.is_some())
                        && !self.is_cue(n)
                        && (!is_unit || side.is_some())
                        && !LEXICON.weekdays.contains_key(text)
                        && (text.chars().count() > 1 || is_code)
                        && !self.has_cue(n, cue::NEGATES)
                    {
                        // Words for one property are one word.
                        let term = match side {
                            Some((list, side)) => format!("{list}/{side}"),
                            None => self.term(text),
                        };
                        if let Some((before, last)) = last.replace((n, term.clone()))
                            && before + 1 == n
                            && !(before == 0 && self.all_cues & cue::MOVES != 0)
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
                        let sides = LEXICON.han_opposites.all(rest);
                        for (_, (list, side)) in sides {
                            clause.sides.insert((list, side));
                            terms.insert(format!("{list}/{side}"));
                        }
                        clause.negated |= LEXICON.negates(rest);
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
        terms.retain(|term| !keys.iter().any(|key| key == term || is_han_of(key, term)));
        let pairs = &mut clause.pairs;
        pairs.retain(|(one, other)| terms.contains(one) && terms.contains(other));
        clause.terms = terms;
    }
}

/// Returns whether a word is a character of the name of a thing.
fn is_han_of(key: &str, term: &str) -> bool {
    term.starts_with(is_han) && key.contains(term)
}
