//! What is read off a sentence.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use crate::fold::fold_case;
use crate::words::{WordKind, WordLists, visit_words};

/// Characters of a word that tell it from another: its endings are left out.
const STEM_CHARS: usize = 5;

/// Sentences that are read of one text.
const MOST_SENTENCES: usize = 24;

/// Kind of a value. Only values of one kind replace each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    Number,
    Time,
    Date,
    /// Letters and digits, a path, a name with underscores.
    Identifier,
    /// A word of one list.
    Word(usize),
}

/// A sentence.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Beginnings of its content words.
    pub(super) terms: BTreeSet<String>,
    pub(super) values: BTreeMap<ValueKind, BTreeSet<String>>,
    /// Values that are said to be something's: the word for it, and the value.
    pub(super) sets: Vec<(String, String)>,
    /// Whether it asks something.
    pub(super) asks: bool,
    /// Whether it has a phrase of the list of this name.
    pub(super) weak: bool,
    pub(super) strong: bool,
    pub(super) drop: bool,
    pub(super) negated: bool,
    pub(super) same: bool,
}

/// The phrases of `cues.txt`.
struct Cues {
    weak: Vec<&'static str>,
    strong: Vec<&'static str>,
    drop: Vec<&'static str>,
    negation: Vec<&'static str>,
    same: Vec<&'static str>,
    is: HashSet<&'static str>,
    values: Vec<Vec<&'static str>>,
    stop: HashSet<&'static str>,
}

static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let lines = include_str!("cues.txt").lines();
    let lines: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let phrases = |text: &'static str| text.split(", ").map(str::trim);
    let all = |name: &str| {
        let lines = lines.iter().filter(|(of, _)| *of == name);
        lines
            .flat_map(|(_, text)| phrases(text))
            .collect::<Vec<_>>()
    };
    let values = lines.iter().filter(|(of, _)| *of == "values");
    Cues {
        weak: all("weak"),
        strong: all("strong"),
        drop: all("drop"),
        negation: all("negation"),
        same: all("same"),
        is: all("is").into_iter().collect(),
        values: values.map(|(_, text)| phrases(text).collect()).collect(),
        stop: WordLists::stop_words().collect(),
    }
});

/// The sentences of a text. A phrase of correction that stands alone ("No, wait.") belongs to the next one.
pub(super) fn statements(text: &str) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    let (mut weak, mut strong) = (false, false);
    for sentence in sentences(text).into_iter().take(MOST_SENTENCES) {
        let mut statement = Statement::read(sentence);
        statement.weak |= weak;
        statement.strong |= strong;
        (weak, strong) = match statement.terms.len() < 2 && statement.values.is_empty() {
            true => (statement.weak, statement.strong),
            false => (false, false),
        };
        all.push(statement);
    }
    all
}

/// Cuts a text behind marks that end a sentence; a dot or colon within a value ends none.
fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut begin, mut chars) = (0, text.char_indices().peekable());
    while let Some((at, c)) = chars.next() {
        let is_behind = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
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
    out.retain(|sentence| !sentence.trim().is_empty());
    out
}

impl Statement {
    /// The words and values of several sentences.
    pub(super) fn joined(parts: &[Statement]) -> Self {
        let mut all = Statement::default();
        for part in parts {
            all.terms.extend(part.terms.iter().cloned());
            for (kind, values) in &part.values {
                let known = all.values.entry(*kind).or_default();
                known.extend(values.iter().cloned());
            }
        }
        all
    }

    fn read(sentence: &str) -> Self {
        let folded = fold_case(sentence).replace('’', "'");
        let cues = &*CUES;
        let mut spaced = String::from(" ");
        for c in folded.chars() {
            match c.is_alphanumeric() || c == '\'' {
                true => spaced.push(c),
                false if spaced.ends_with(' ') => {}
                false => spaced.push(' '),
            }
        }
        spaced.push(' ');
        let has = |phrase: &str| match is_unspaced(phrase) {
            true => folded.contains(phrase),
            false => spaced.contains(&format!(" {phrase} ")),
        };
        let any = |phrases: &[&str]| phrases.iter().any(|phrase| has(phrase));
        let mut statement = Statement {
            asks: folded.trim_end().ends_with(['?', '？', '؟']),
            weak: any(&cues.weak),
            strong: any(&cues.strong),
            drop: any(&cues.drop),
            negated: any(&cues.negation),
            same: any(&cues.same),
            ..Statement::default()
        };
        // Phrases and values are no content.
        let mut content = folded.clone();
        for phrases in [
            &cues.weak,
            &cues.strong,
            &cues.drop,
            &cues.negation,
            &cues.same,
        ] {
            for phrase in phrases.iter().filter(|phrase| has(phrase)) {
                if is_unspaced(phrase) {
                    content = content.replace(phrase, " ");
                } else {
                    content = without(&content, phrase);
                }
            }
        }
        for (kind, words) in cues.values.iter().enumerate() {
            for word in words.iter().filter(|word| has(word)) {
                statement
                    .values
                    .entry(ValueKind::Word(kind))
                    .or_default()
                    .insert((*word).to_owned());
                content = match is_unspaced(word) {
                    true => content.replace(word, " "),
                    false => without(&content, word),
                };
            }
        }
        statement.read_values(&content);
        statement.read_terms(&content);
        statement
    }

    /// Values that are written in ASCII, and what they are said of.
    fn read_values(&mut self, content: &str) {
        let is_value = |c: char| c.is_ascii_alphanumeric() || "_./:-@%+".contains(c);
        let mut at = 0;
        while let Some(begin) = content.get(at..).and_then(|rest| rest.find(is_value)) {
            let begin = at + begin;
            let rest = content.get(begin..).unwrap_or_default();
            let end = begin + rest.find(|c| !is_value(c)).unwrap_or(rest.len());
            at = end;
            let run = content.get(begin..end).unwrap_or_default();
            let value = run.trim_matches(|c: char| ".:-/+@".contains(c));
            let Some(kind) = kind_of(value) else { continue };
            let first = begin + run.find(value).unwrap_or_default();
            if let Some(subject) = subject_before(content.get(..first).unwrap_or_default()) {
                self.sets.push((subject, value.to_owned()));
            }
            let values = self.values.entry(kind).or_default();
            values.insert(value.to_owned());
        }
    }

    fn read_terms(&mut self, content: &str) {
        visit_words(content, &mut |word| {
            let text = content.get(word.range).unwrap_or_default();
            match word.kind {
                WordKind::Spaced => self.terms.extend(term(text)),
                WordKind::Unspaced => {
                    let chars: Vec<char> = text.chars().filter(|c| !EMPTY.contains(c)).collect();
                    let pairs = chars.windows(2);
                    self.terms
                        .extend(pairs.map(|pair| pair.iter().collect::<String>()));
                }
                WordKind::Symbol => {}
            }
        });
    }
}

/// Chinese characters that say nothing about a subject.
const EMPTY: [char; 19] = [
    '的', '了', '是', '在', '我', '们', '把', '要', '会', '将', '这', '那', '个', '到', '为', '和',
    '与', '就', '用',
];

fn is_unspaced(phrase: &str) -> bool {
    phrase
        .chars()
        .next()
        .is_some_and(|c| ('\u{2e80}'..='\u{9fff}').contains(&c))
}

/// The beginning of a content word; `None` for another.
fn term(word: &str) -> Option<String> {
    let has_digit = word.chars().any(char::is_numeric);
    let is_empty = CUES.stop.contains(word) || CUES.is.contains(word);
    (!has_digit && !is_empty && word.chars().count() > 1)
        .then(|| word.chars().take(STEM_CHARS).collect())
}

/// Takes a phrase out of a text wherever it stands as whole words.
fn without(text: &str, phrase: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(phrase) {
        let (before, behind) = rest.split_at(at);
        let behind = behind.get(phrase.len()..).unwrap_or_default();
        let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        out.push_str(before);
        match is_edge(out.chars().next_back()) && is_edge(behind.chars().next()) {
            true => out.push(' '),
            false => out.push_str(phrase),
        }
        rest = behind;
    }
    out + rest
}

fn kind_of(value: &str) -> Option<ValueKind> {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let letters = has(|c| c.is_ascii_alphabetic());
    let digits = has(|c| c.is_ascii_digit());
    let inner = value.contains(['_', '/']) || value.contains('.') && letters;
    let marks = value.chars().filter(|c| "-/.".contains(*c)).count();
    match (letters, digits) {
        (_, false) if !inner || !letters => None,
        (true, _) => Some(ValueKind::Identifier),
        (false, _) if value.contains(':') => Some(ValueKind::Time),
        (false, _) if marks >= 2 => Some(ValueKind::Date),
        (false, _) => Some(ValueKind::Number),
    }
}

/// What a value behind `text` is said of, where the words between say that it is.
fn subject_before(text: &str) -> Option<String> {
    let mut words = Vec::new();
    visit_words(text, &mut |word| {
        words.extend(text.get(word.range).map(str::to_owned));
    });
    let sign = text.trim_end().ends_with(['=', ':', '：', '—']);
    let mut words = words.into_iter().rev().peekable();
    let mut is_said = sign;
    while words
        .next_if(|word| CUES.is.contains(word.as_str()))
        .is_some()
    {
        is_said = true;
    }
    let subject = words.find_map(|word| term(&word));
    subject.filter(|_| is_said)
}
