//! Splits sentences into statements: the parts of a sentence that each set a value, or the whole sentence.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use sentence_model::{NumberedSentence, is_point_of_number};

use super::cues::{self, Cue, Found};
use super::values::{self, ValueKind, Written};
use crate::words::{Tokenizer, WordKind, WordLists, visit_words};

/// Number of characters of a stem that distinguish a word from others. The rest of the stem is left out.
const STEM_CHARS: usize = 5;

/// Minimum share of the shorter statement's content words that both statements contain, in percent.
pub(super) const SAME_SUBJECT: usize = 60;

/// Character sequences that mark a line as data or code.
const DATA: [&str; 6] = ["{\"", "\":", "();", "::", "){", ") {"];

/// Minimum number of content words of a sentence that names its subject itself.
const FEW_TERMS: usize = 3;

/// Maximum number of sentences of a text that are read.
const MOST_SENTENCES: usize = 24;

/// A sentence, or a part of a sentence that contains a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Statement {
    /// Text of the statement.
    pub(super) text: String,
    /// The first characters of the stems of its content words, which describe the subject.
    pub(super) terms: BTreeSet<String>,
    /// Pairs of adjacent content words.
    pub(super) neighbours: BTreeSet<(String, String)>,
    pub(super) values: BTreeMap<ValueKind, BTreeSet<String>>,
    /// Pairs of a subject and its value, such as `("port", "8080")`.
    pub(super) sets: Vec<(String, String)>,
    /// The things that the statement names from groups that never mean the same, such as `start` and `end`. Maps the
    /// index of the group to the indexes of its things.
    pub(super) apart: BTreeMap<usize, BTreeSet<usize>>,
    /// Whether the statement is a question.
    pub(super) asks: bool,
    /// Whether the statement or its sentence contains a phrase with the meaning `Weak`. The next fields do the same for
    /// other meanings: see [`Cue`].
    pub(super) weak: bool,
    pub(super) strong: bool,
    pub(super) drop: bool,
    pub(super) negated: bool,
    pub(super) same: bool,
    pub(super) rule: bool,
    pub(super) adding: bool,
    pub(super) example: bool,
    /// Whether the statement refers to something named earlier.
    pub(super) speaks_of_it: bool,
    /// The numbers of its sentence.
    pub(super) numbered: Arc<NumberedSentence>,
    /// Whether it stands for its sentence where the numbers of sentences are compared.
    pub(super) leads: bool,
}

/// Words that do not describe a subject.
static EMPTY_WORDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| WordLists::stop_words().chain(cues::links()).collect());

/// Words that link a subject to its value, such as `is`.
static LINKS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| cues::links().collect());

/// Returns the sentences of a text, each as a list of statements. A phrase of correction that is a sentence by itself
/// ("No, wait.") belongs to the next sentence.
pub(super) fn statements(text: &str) -> Vec<Vec<Statement>> {
    let mut all: Vec<Vec<Statement>> = Vec::new();
    let (mut weak, mut strong) = (false, false);
    for sentence in sentences(text).into_iter().take(MOST_SENTENCES) {
        let sentence = Sentence::read(sentence);
        let parts = sentence.parts().into_iter();
        let numbered = Arc::new(NumberedSentence::read(sentence.text));
        let mut statements: Vec<Statement> = Vec::new();
        for part in parts {
            let joined = sentence.begins_with_joint(&part);
            let mut statement = sentence.statement(part);
            statement.numbered = Arc::clone(&numbered);
            statement.leads = statements
                .iter()
                .all(|one: &Statement| one.values.is_empty());
            statement.weak |= weak;
            statement.strong |= strong;
            if let Some(before) = statements.last() {
                if joined {
                    statement.is_of_same_end(before);
                }
                statement.is_of_same_thing(before);
            }
            statements.push(statement);
        }
        // In "For method names too. End them with …", the second sentence is about the thing named in the first.
        if let ([only], Some([before])) = (statements.as_mut_slice(), all.last().map(Vec::as_slice))
            && !before.asks
        {
            only.is_of_same_thing(before);
        }
        (weak, strong) = match statements.as_slice() {
            [only] if only.terms.len() < 2 && only.values.is_empty() => (only.weak, only.strong),
            _ => (false, false),
        };
        all.push(statements);
    }
    all
}

/// Returns the term for one of several things that are never the same.
fn apart_term(list: usize, thing: usize) -> String {
    format!("{list}:{thing}")
}

/// Returns whether a term stands for one of several things that are never the same.
fn is_apart(term: &str) -> bool {
    term.contains(':')
}

/// Splits a text into sentences. A dot or colon within a value does not end a sentence.
fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut begin, mut chars) = (0, text.char_indices().peekable());
    while let Some((at, c)) = chars.next() {
        let is_behind = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            '.' if is_point_of_number(text, at) => false,
            '.' | '!' | '?' | ';' | '؟' | '…' => is_behind,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            out.extend(text.get(begin..end));
            begin = end;
        }
    }
    out.extend(text.get(begin..));
    // Data and code are not statements.
    let is_data = |sentence: &&str| DATA.iter().any(|sign| sentence.contains(sign));
    out.retain(|sentence| !sentence.trim().is_empty() && !is_data(sentence));
    out
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

/// A sentence with the signal phrases and values in it.
struct Sentence<'t> {
    text: &'t str,
    folded: String,
    cues: Vec<Found>,
    values: Vec<Written>,
}

impl<'t> Sentence<'t> {
    fn read(sentence: &'t str) -> Self {
        let (text, folded) = (sentence, lowered(sentence));
        let mut cues = cues::find(&folded);
        let mut values = values::written(text);
        let mut quoted = values.clone();
        quoted.retain(|value| value.is_quoted);
        cues.retain(|cue| !quoted.iter().any(|value| within(&cue.range, &value.range)));
        // A phrase without meaning removes other phrases inside it.
        let empty: Vec<Range<usize>> = cues
            .iter()
            .filter(|cue| cue.cue == Cue::Empty)
            .map(|cue| cue.range.clone())
            .collect();
        cues.retain(|cue| {
            let is_part = |by: &Range<usize>| within(&cue.range, by) && cue.range != *by;
            !empty.iter().any(is_part)
        });
        // "Also, …" begins a statement about another thing.
        let first = folded.find(char::is_alphanumeric);
        for cue in &mut cues {
            let rest = folded.get(cue.range.end..).unwrap_or_default();
            let goes_on = Some(cue.range.start) == first && rest.starts_with([',', '，', '、']);
            if goes_on && matches!(cue.cue, Cue::Same | Cue::Adding) {
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
        values.sort_by_key(|value| value.range.start);
        Self {
            text,
            folded,
            cues,
            values,
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
            if cue.cue == Cue::Contrast {
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
            let has_subject = !self.terms(&piece).0.is_empty();
            let introduced = introductions.iter().filter(|at| piece.contains(at));
            let alone = introduced
                .map(|at| *at..end)
                .rfind(|rest| self.has_value(rest) && self.terms(rest).0.len() >= 2);
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
        let (terms, neighbours) = self.terms(&part);
        let mut statement = Statement {
            text: self
                .text
                .get(part.clone())
                .unwrap_or_default()
                .trim()
                .to_owned(),
            terms,
            neighbours,
            asks: self.folded.trim_end().ends_with(['?', '？', '؟']),
            weak: in_all(Cue::Weak),
            strong: in_all(Cue::Strong),
            same: in_all(Cue::Same),
            rule: in_all(Cue::Rule),
            drop: in_part(Cue::Drop),
            negated: in_part(Cue::Negation),
            adding: in_part(Cue::Adding),
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
            if let Some(subject) = subject_before(before) {
                statement.sets.push((subject, value.text.clone()));
            }
            let values = statement.values.entry(value.kind).or_default();
            values.insert(value.text.clone());
        }
        statement
    }

    /// Returns the content words of a part, and the pairs of adjacent ones.
    fn terms(&self, part: &Range<usize>) -> (BTreeSet<String>, BTreeSet<(String, String)>) {
        let (mut terms, mut neighbours) = (BTreeSet::new(), BTreeSet::new());
        let text = self.folded.get(part.clone()).unwrap_or_default();
        let is_content = |range: &Range<usize>| !self.taken().any(|by| within(range, by));
        let mut before: Option<(usize, String)> = None;
        visit_words(text, &mut |word| {
            let range = part.start + word.range.start..part.start + word.range.end;
            let last = before.take();
            match word.kind {
                _ if !is_content(&range) => {}
                WordKind::Spaced => {
                    let Some(one) = term(&self.folded, range.clone()) else {
                        return;
                    };
                    let mut apart = self.cues.iter().filter(|cue| cue.range == range);
                    let apart = apart.find_map(|cue| match cue.cue {
                        Cue::Apart(list, thing) => Some(apart_term(list, thing)),
                        _ => None,
                    });
                    if let Some(thing) = apart {
                        // Different words for the same thing have the same term.
                        terms.insert(thing);
                        return;
                    }
                    if let Some((end, last)) = last
                        && matches!(self.folded.get(end..range.start), Some(" " | "-"))
                    {
                        neighbours.insert((last, one.clone()));
                    }
                    before = Some((range.end, one.clone()));
                    terms.insert(one);
                }
                WordKind::Unspaced => terms.extend(self.pairs(range)),
                WordKind::Symbol => {}
            }
        });
        (terms, neighbours)
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

impl Statement {
    /// Adds the subject of an earlier statement if this statement contains a value and only refers to the subject, as
    /// in `end them with`.
    fn is_of_same_thing(&mut self, before: &Self) {
        let own = self.terms.iter().filter(|term| !is_apart(term)).count();
        if !self.speaks_of_it || self.values.is_empty() || own >= FEW_TERMS {
            return;
        }
        let apart = !self.apart.is_empty();
        let terms = before.terms.iter().filter(|term| !apart || !is_apart(term));
        self.terms.extend(terms.cloned());
        self.neighbours.extend(before.neighbours.iter().cloned());
    }

    /// Adds the thing of another statement from a group that never means the same, if this statement names none: in
    /// `start a with x and b with y`, the second part is about the start too.
    pub(super) fn is_of_same_end(&mut self, other: &Self) {
        if !self.apart.is_empty() || self.values.is_empty() {
            return;
        }
        for (list, things) in &other.apart {
            let terms = things.iter().map(|thing| apart_term(*list, *thing));
            self.terms.extend(terms);
        }
        self.apart.clone_from(&other.apart);
    }

    /// Returns whether this statement repeats another statement's value for the same subject.
    pub(super) fn says_again(&self, other: &Self) -> bool {
        let shared = self.terms.intersection(&other.terms).count();
        !self.values.is_empty()
            && self.values == other.values
            && shared > 0
            && shared * 100 >= self.terms.len() * SAME_SUBJECT
    }

    /// Returns whether this statement is a claim that a later statement can change.
    pub(super) fn is_claim(&self) -> bool {
        !self.asks && !self.example
    }

    /// Returns whether this statement may change an earlier one.
    pub(super) fn may_change(&self) -> bool {
        let says = self.weak || self.strong || self.drop || self.negated || self.rule;
        let has_values = !self.values.is_empty() || self.numbered.has_numbers();
        !self.asks && !self.example && (says || has_values)
    }
}
