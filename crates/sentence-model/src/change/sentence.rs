//! Reads the statements of sentences.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::cues::{self, Cue, Found};
use super::statement::{Statement, apart_term};
use super::values::{self, ValueKind, Written};
use crate::NumberedSentence;
use crate::words::{Tokenizer, WordKind, WordLists, visit_words};

/// Number of characters of a stem that distinguish a word from others. The rest of the stem is left out.
const STEM_CHARS: usize = 5;

/// Character sequences that mark a line as data or code.
const DATA: [&str; 6] = ["{\"", "\":", "();", "::", "){", ") {"];

/// Minimum probability of a rule with which a sentence that sets a value counts as one. A new value for the same thing is
/// another sign of a change, so this is less than for a sentence alone.
const LIKELY_RULE: f64 = 0.5;

/// Words that do not describe a subject.
static EMPTY_WORDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| WordLists::stop_words().chain(cues::links()).collect());

/// Words that link a subject to its value, such as `is`.
static LINKS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| cues::links().collect());

/// Reads the sentences of a text, in order. A phrase of correction that is a sentence by itself ("No, wait.") belongs to
/// the next sentence.
#[derive(Default)]
pub(super) struct Reader {
    /// Last content words of the sentence before, if it is one statement and no question.
    last_words: Vec<String>,
    /// Whether the sentence before is only a phrase with the meaning `Weak`, or `Strong`.
    weak: bool,
    strong: bool,
}

impl Reader {
    /// Returns the statements of a sentence.
    pub(super) fn read(&mut self, sentence: &str) -> Vec<Statement> {
        if DATA.iter().any(|sign| sentence.contains(sign)) {
            return Vec::new();
        }
        let sentence = Sentence::read(sentence);
        let numbered = Arc::new(NumberedSentence::read(sentence.text));
        let text: Arc<str> = sentence.text.into();
        let mut statements: Vec<Statement> = Vec::new();
        for part in sentence.parts() {
            let joined = sentence.begins_with_joint(&part);
            let mut statement = sentence.statement(part);
            statement.numbered = Arc::clone(&numbered);
            statement.sentence = Arc::clone(&text);
            statement.leads = statements
                .iter()
                .all(|one: &Statement| one.values.is_empty());
            statement.weak |= self.weak;
            statement.strong |= self.strong;
            if let Some(before) = statements.last() {
                if joined {
                    statement.is_of_same_end(before);
                    statement.is_of_same_subject(before);
                }
                statement.is_of_same_thing(before);
            }
            statements.push(statement);
        }
        // In "For method names too. End them with …", the second sentence is about the thing named in the first.
        if let [only] = statements.as_mut_slice()
            && only.lacks_subject()
        {
            only.terms.extend(self.last_words.iter().cloned());
        }
        (self.weak, self.strong) = match statements.as_slice() {
            [only] if only.terms.len() < 2 && only.values.is_empty() => (only.weak, only.strong),
            _ => (false, false),
        };
        self.last_words = match statements.as_slice() {
            [only] if !only.asks => only.last_words.clone(),
            _ => Vec::new(),
        };
        statements
    }
}

/// Returns a text in lower case, with each letter at the same byte offset.
fn lowered(text: &str) -> String {
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) if one.len_utf8() == c.len_utf8() => one,
            _ => c,
        }
    };
    text.chars().map(lower).collect()
}

fn within(range: &Range<usize>, by: &Range<usize>) -> bool {
    by.start <= range.start && range.end <= by.end
}

/// The content words of a part of a sentence.
#[derive(Default)]
struct Terms {
    all: BTreeSet<String>,
    /// Pairs of adjacent ones.
    neighbours: BTreeSet<(String, String)>,
    /// The last ones that follow each other directly.
    last: Vec<String>,
}

/// A sentence with the signal phrases and values in it.
struct Sentence<'t> {
    text: &'t str,
    folded: String,
    cues: Vec<Found>,
    values: Vec<Written>,
    /// Whether it is a rule, or is likely to be one.
    is_rule: bool,
}

impl<'t> Sentence<'t> {
    fn read(sentence: &'t str) -> Self {
        let (text, folded) = (sentence, lowered(sentence));
        let mut cues = cues::find(&folded);
        let mut values = values::written(text);
        let mut quoted = values.clone();
        quoted.retain(|value| value.is_quoted);
        cues.retain(|cue| !quoted.iter().any(|value| within(&cue.range, &value.range)));
        // A phrase without meaning removes other phrases inside it, but a pronoun still refers to something.
        let empty: Vec<Range<usize>> = cues
            .iter()
            .filter(|cue| cue.cue == Cue::Empty)
            .map(|cue| cue.range.clone())
            .collect();
        cues.retain(|cue| {
            let is_part = |by: &Range<usize>| within(&cue.range, by) && cue.range != *by;
            cue.cue == Cue::Pronoun || !empty.iter().any(is_part)
        });
        // "Also, …" begins a statement about another thing.
        let first = folded.find(char::is_alphanumeric);
        // A joint, and the phrase directly after it.
        let joints = cues.iter().filter(|cue| cue.cue == Cue::Joint);
        let joints: Vec<(usize, usize)> = joints
            .map(|cue| (cue.range.start, cue.range.end + 1))
            .collect();
        for cue in &mut cues {
            let rest = folded.get(cue.range.end..).unwrap_or_default();
            let goes_on = first.is_some_and(|first| {
                cue.range.start == first || joints.contains(&(first, cue.range.start))
            }) && rest.starts_with([',', '，', '、']);
            if goes_on && matches!(cue.cue, Cue::Same | Cue::Adding | Cue::Negation) {
                cue.cue = Cue::Empty;
            }
        }
        // "Start using …" is not about a beginning.
        for cue in &mut cues {
            let rest = folded.get(cue.range.end..).unwrap_or_default();
            let next = rest.split_whitespace().next().unwrap_or_default();
            if matches!(cue.cue, Cue::Apart(..)) && rest.starts_with(' ') && next.ends_with("ing") {
                cue.cue = Cue::Empty;
            }
        }
        for cue in &cues {
            if let Cue::Value(list, value) = cue.cue {
                // A word such as `CamelCase` also looks like a name.
                values.retain(|written| written.range != cue.range);
                values.push(Written {
                    range: cue.range.clone(),
                    kind: ValueKind::Word(list),
                    text: value.to_string(),
                    is_quoted: false,
                });
            }
        }
        if values.is_empty() {
            values.extend(place_value(&folded, &cues));
        }
        cues.retain(|cue| cue.cue != Cue::Copula);
        values.sort_by_key(|value| value.range.start);
        let is_likely = || !values.is_empty() && crate::rule_probability(text) >= LIKELY_RULE;
        let is_rule = cues.iter().any(|cue| cue.cue == Cue::Rule) || is_likely();
        Self {
            text,
            folded,
            cues,
            values,
            is_rule,
        }
    }

    /// Splits the sentence into parts that each contain at least one value. Returns the whole sentence if it contains
    /// none. An introduction before a value and a reason after it may be left out.
    fn parts(&self) -> Vec<Range<usize>> {
        let mut cuts: Vec<usize> = Vec::new();
        // A piece without a value belongs to the next piece, unless it is an introduction.
        let mut introductions: Vec<usize> = Vec::new();
        for (at, c) in self.folded.char_indices() {
            let behind = at + c.len_utf8();
            let rest = self.folded.get(behind..).unwrap_or_default();
            match c {
                ',' | ';' | '，' | '、' | '；' | '—' | '–' => cuts.push(behind),
                ':' | '：' if c == '：' || rest.starts_with(' ') => {
                    cuts.push(behind);
                    introductions.push(behind);
                }
                _ => {}
            }
        }
        for cue in &self.cues {
            if matches!(cue.cue, Cue::Joint | Cue::Contrast) {
                cuts.push(cue.range.start);
            }
            // The text before `, so` is a reason.
            let before = self.folded.get(..cue.range.start).unwrap_or_default();
            let follows = cue.cue == Cue::Reason && before.trim_end().ends_with([',', '，']);
            if cue.cue == Cue::Contrast || follows {
                introductions.push(cue.range.start);
            }
        }
        cuts.sort_unstable();
        let inside = |cut: &usize| {
            self.values
                .iter()
                .any(|value| value.range.start < *cut && *cut < value.range.end)
        };
        cuts.retain(|cut| !inside(cut));
        cuts.push(self.folded.len());
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        for end in cuts {
            let piece = begin..end;
            if !self.has_value(&piece) {
                // The piece belongs to the next one.
                continue;
            }
            let has_subject = !self.terms(&piece).all.is_empty();
            let introduced = introductions.iter().filter(|at| piece.contains(at));
            let alone = introduced
                .map(|at| *at..end)
                .rfind(|rest| self.has_value(rest) && self.terms(rest).all.len() >= 2);
            match parts.last_mut() {
                // The piece is one of several values of the same thing.
                Some(last) if !has_subject => last.end = end,
                _ => parts.push(alone.unwrap_or(piece)),
            }
            begin = end;
        }
        match parts.last_mut() {
            Some(last) => last.end = self.folded.len(),
            None => parts.push(0..self.folded.len()),
        }
        parts
            .into_iter()
            .map(|part| self.without_reason(part))
            .collect()
    }

    /// Returns whether a part begins with a joining phrase such as `and`.
    fn begins_with_joint(&self, part: &Range<usize>) -> bool {
        let text = self.folded.get(part.clone()).unwrap_or_default();
        let begin = part.start + text.find(char::is_alphanumeric).unwrap_or_default();
        let mut cues = self.cues.iter();
        cues.any(|cue| cue.cue == Cue::Joint && cue.range.start == begin)
    }

    fn values_in<'s>(&'s self, part: &'s Range<usize>) -> impl Iterator<Item = &'s Written> {
        let values = self.values.iter();
        values.filter(|value| part.contains(&value.range.start))
    }

    fn has_value(&self, part: &Range<usize>) -> bool {
        self.values_in(part).next().is_some()
    }

    /// Returns the ranges of phrases and values, which are not content words. Words for things that are never the same
    /// are left out.
    fn taken(&self) -> impl Iterator<Item = &Range<usize>> {
        let cues = self.cues.iter();
        let cues = cues.filter(|cue| !matches!(cue.cue, Cue::Apart(..)));
        let cues = cues.map(|cue| &cue.range);
        cues.chain(self.values.iter().map(|value| &value.range))
    }

    /// Cuts a part before the reason or clause that follows its last value.
    fn without_reason(&self, part: Range<usize>) -> Range<usize> {
        let Some(last) = self.values_in(&part).map(|value| value.range.end).max() else {
            return part;
        };
        let ends = |cue: &Cue| matches!(cue, Cue::Reason | Cue::Joint | Cue::Contrast);
        let reasons = self.cues.iter().filter(|cue| ends(&cue.cue));
        let begins = reasons.map(|cue| cue.range.start);
        let end = begins.filter(|at| *at >= last && *at < part.end).min();
        part.start..end.unwrap_or(part.end)
    }

    fn statement(&self, part: Range<usize>) -> Statement {
        let here = |cue: &&Found| part.contains(&cue.range.start);
        let in_part = |kind: Cue| self.cues.iter().filter(here).any(|found| found.cue == kind);
        let in_all = |kind: Cue| self.cues.iter().any(|found| found.cue == kind);
        let terms = self.terms(&part);
        let mut statement = Statement {
            text: self
                .text
                .get(part.clone())
                .unwrap_or_default()
                .trim()
                .to_owned(),
            terms: terms.all,
            neighbours: terms.neighbours,
            last_words: terms.last,
            asks: self.folded.trim_end().ends_with(['?', '？', '؟']),
            weak: in_all(Cue::Weak),
            strong: in_all(Cue::Strong),
            same: in_all(Cue::Same),
            rule: self.is_rule,
            drop: in_part(Cue::Drop),
            negated: in_part(Cue::Negation),
            adding: self.adds(&part),
            example: in_part(Cue::Example),
            speaks_of_it: in_part(Cue::Pronoun),
            ..Statement::default()
        };
        for cue in self.cues.iter().filter(here) {
            if let Cue::Apart(list, thing) = cue.cue {
                statement.apart.entry(list).or_default().insert(thing);
            }
        }
        for value in self.values_in(&part) {
            let before = self.folded.get(..value.range.start).unwrap_or_default();
            if let Some(subject) = subject_before(before).filter(|_| value.kind != ValueKind::Place)
            {
                statement.sets.push((subject, value.text.clone()));
            }
            let written = self.text.get(value.range.clone()).unwrap_or_default();
            let written = match value.is_quoted {
                true => written.trim_matches(values::is_quote),
                false => written,
            };
            statement
                .written
                .push((value.kind, value.text.clone(), written.to_owned()));
            let values = statement.values.entry(value.kind).or_default();
            values.insert(value.text.clone());
        }
        statement
    }

    /// Returns whether a part adds a value to others. A phrase such as `include` does not count if a joint is between it
    /// and the first value, because another verb may follow: `include a digit and start it with 'x'`.
    fn adds(&self, part: &Range<usize>) -> bool {
        let value = self.values_in(part).next();
        let end = value.map_or(part.end, |value| value.range.start);
        let here = || {
            self.cues
                .iter()
                .filter(|cue| part.contains(&cue.range.start))
        };
        let last = |kind: Cue| {
            let before = here().filter(|cue| cue.cue == kind && cue.range.start < end);
            before.map(|cue| cue.range.start).max()
        };
        here().any(|cue| cue.cue == Cue::Adding)
            && last(Cue::Adding).is_none_or(|adding| last(Cue::Joint) <= Some(adding))
    }

    /// Returns the content words of a part.
    fn terms(&self, part: &Range<usize>) -> Terms {
        let mut terms = Terms::default();
        let text = self.folded.get(part.clone()).unwrap_or_default();
        let is_content = |range: &Range<usize>| !self.taken().any(|by| within(range, by));
        let mut before: Option<(usize, String)> = None;
        visit_words(text, &mut |word| {
            let range = part.start + word.range.start..part.start + word.range.end;
            let last = before.take();
            match word.kind {
                _ if !is_content(&range) => {}
                WordKind::Spaced => {
                    let Some(one) = self.term(range.clone()) else {
                        return;
                    };
                    let last = last.filter(|(end, _)| {
                        matches!(self.folded.get(*end..range.start), Some(" " | "-"))
                    });
                    match last {
                        Some((_, last)) => {
                            terms.neighbours.insert((last, one.clone()));
                        }
                        None => terms.last.clear(),
                    }
                    before = (!self.is_verb(&range)).then(|| (range.end, one.clone()));
                    terms.last.push(one.clone());
                    terms.all.insert(one);
                }
                WordKind::Unspaced => terms.all.extend(self.pairs(range)),
                WordKind::Symbol => {}
            }
        });
        terms
    }

    /// Returns the term of a word. Different words for the same thing have the same term.
    fn term(&self, range: Range<usize>) -> Option<String> {
        let mut apart = self.cues.iter().filter(|cue| cue.range == range);
        let apart = apart.find_map(|cue| match cue.cue {
            Cue::Apart(list, thing) => Some(apart_term(list, thing)),
            _ => None,
        });
        term(&self.folded, range).map(|term| apart.unwrap_or(term))
    }

    /// Returns whether a word is a verb behind a phrase of rules, and so no part of a compound: `when naming jobs`.
    fn is_verb(&self, range: &Range<usize>) -> bool {
        let mut cues = self.cues.iter().filter(|cue| cue.cue == Cue::Rule);
        let text = self.folded.get(range.clone()).unwrap_or_default();
        text.ends_with("ing") && cues.any(|cue| cue.range.end + 1 == range.start)
    }

    /// Returns the pairs of neighbouring characters that are not part of a phrase or value.
    fn pairs(&self, range: Range<usize>) -> Vec<String> {
        let text = self.folded.get(range.clone()).unwrap_or_default();
        let is_taken = |at: usize| self.taken().any(|by| by.contains(&at));
        let chars = text
            .char_indices()
            .map(|(at, c)| match is_taken(range.start + at) {
                true => ' ',
                false => c,
            });
        let chars: Vec<char> = chars.filter(|c| !EMPTY.contains(c)).collect();
        let is_kana = |c: &char| ('\u{3041}'..='\u{309f}').contains(c);
        let pairs = chars.windows(2);
        let pairs = pairs.filter(|pair| !pair.contains(&' ') && !pair.iter().all(is_kana));
        pairs.map(|pair| pair.iter().collect()).collect()
    }
}

/// Characters that do not describe a subject.
const EMPTY: [char; 32] = [
    '的', '了', '是', '在', '我', '们', '把', '要', '会', '将', '这', '那', '个', '到', '为', '和',
    '与', '就', '用', 'は', 'が', 'を', 'の', 'に', 'で', 'と', '은', '는', '을', '를', '의', '에',
];

/// Maximum number of words of a value that is one only by its place.
const PLACE_WORDS: usize = 2;

/// Returns the value at the end of a sentence in lower case: the words behind its last copula. `None` if they are more than
/// two, or if a phrase is among them.
fn place_value(folded: &str, cues: &[Found]) -> Option<Written> {
    let copulas = cues.iter().filter(|cue| cue.cue == Cue::Copula);
    let from = copulas.map(|cue| cue.range.end).max()?;
    let mut words: Vec<Range<usize>> = Vec::new();
    visit_words(folded.get(from..)?, &mut |word| {
        words.push(from + word.range.start..from + word.range.end);
    });
    let is_taken = |word: &Range<usize>| {
        let cue = cues.iter().any(|cue| within(word, &cue.range));
        cue || folded
            .get(word.clone())
            .is_some_and(|word| EMPTY_WORDS.contains(word))
    };
    let begin = words.iter().position(|word| !is_taken(word))?;
    let value = words.get(begin..)?;
    let range = value.first()?.start..value.last()?.end;
    let is_value = value.len() <= PLACE_WORDS && !value.iter().any(is_taken);
    is_value.then(|| Written {
        kind: ValueKind::Place,
        text: folded.get(range.clone()).unwrap_or_default().to_owned(),
        range,
        is_quoted: false,
    })
}

/// Returns the beginning of a content word's stem. `None` for other words.
fn term(text: &str, range: Range<usize>) -> Option<String> {
    let written = text.get(range)?;
    let has_digit = written.chars().any(char::is_numeric);
    if has_digit || EMPTY_WORDS.contains(written) || written.chars().nth(1).is_none() {
        return None;
    }
    let stem = Tokenizer::RANKING.term(written);
    Some(stem.chars().take(STEM_CHARS).collect())
}

/// Returns the subject of a value that follows `text`. `None` if there is no subject, or if no
/// linking word or sign connects it to the value.
fn subject_before(text: &str) -> Option<String> {
    let mut words = Vec::new();
    visit_words(text, &mut |word| words.push(word.range));
    let mut is_said = text.trim_end().ends_with(['=', ':', '：', '—']);
    let is_link =
        |range: &Range<usize>| text.get(range.clone()).is_some_and(|it| LINKS.contains(it));
    let mut words = words.into_iter().rev().peekable();
    while words.next_if(is_link).is_some() {
        is_said = true;
    }
    let subject = words.find_map(|range| term(text, range));
    subject.filter(|_| is_said)
}
