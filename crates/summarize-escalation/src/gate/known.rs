//! Comparison of an answer with its source.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, tail};
use memory_model::Part;

use super::terms;
use super::words::{self, Word};
use crate::criteria::Term;
use crate::request::SummaryRequest;

/// Number of bytes that are read of a long text of the source: at its start, and at its end. Prompts show far less.
const TEXT_BYTES: (usize, usize) = (48 * 1024, 16 * 1024);
/// Number of consecutive words that are compared to find text that was copied.
const COPY_WORDS: usize = 8;
/// Minimum number of runs of words in a text that is compared with its source.
const COPY_RUNS: usize = 24;
/// Maximum number of names of one text that count for its source.
const NAMES_OF_TEXT: usize = 8;
/// Number of names and numbers of a source of which every summary has one.
const MANY_TERMS: u32 = 8;
/// Maximum number of names that are looked up within words of the source.
const LOOKED_UP: usize = 64;
/// Minimum length of the parts of a name that are looked up, in characters.
const NAME_CHARS: usize = 3;
/// Minimum length of a word that tells the subject of a text, in characters. Shorter words are in most texts.
const TELLING_CHARS: usize = 5;

/// Words of the texts from which a summary may be written: the source, and the previous summary and instructions.
pub(super) struct Known<'a> {
    texts: Vec<Cow<'a, str>>,
    words: HashSet<u64>,
    /// Long words, which tell a subject.
    telling: HashSet<u64>,
    pairs: HashSet<u64>,
    runs: HashSet<u64>,
}

/// How many words of an answer its source has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) found: u32,
    pub(super) total: u32,
}

fn is_telling(word: &Word) -> bool {
    word.letters && word.chars >= TELLING_CHARS
}

/// Returns the distinct words of Latin letters in a text that tell its subject.
fn telling(text: &str) -> HashSet<u64> {
    let is_other = |c: char| !matches!(c, '!'..='~' | '\u{c0}'..='\u{24f}');
    let words = text.split(is_other).flat_map(words::words);
    let long = words.filter(is_telling);
    long.map(|word| word.hash).collect()
}

/// Returns the number of distinct words in a text that tell its subject.
pub(super) fn telling_words(text: &str) -> u32 {
    count(telling(text).len())
}

impl<'a> Known<'a> {
    pub(super) fn of(request: &SummaryRequest<'a>) -> Self {
        let texts = texts(request.source);
        let mut known = Self {
            texts: Vec::new(),
            words: HashSet::new(),
            telling: HashSet::new(),
            pairs: HashSet::new(),
            runs: HashSet::new(),
        };
        // A copy may go on from one message to the next.
        let mut before: Vec<Word> = Vec::new();
        for text in texts.iter().flat_map(|text| ends(text)) {
            let own = words::words(text);
            known.add(text, &own);
            before.extend(own);
            known.runs.extend(words::runs(&before, COPY_WORDS));
            before.drain(..before.len().saturating_sub(COPY_WORDS - 1));
        }
        let before = self::texts(request.before);
        let before = before.iter().flat_map(|text| ends(text));
        let context = [request.previous, request.instructions];
        for text in context.into_iter().flatten().chain(before) {
            known.add(text, &words::words(text));
        }
        known.texts = texts;
        known
    }

    fn add(&mut self, text: &str, words: &[Word]) {
        self.words.extend(
            words
                .iter()
                .filter(|word| !word.single)
                .map(|word| word.hash),
        );
        let long = words.iter().filter(|word| is_telling(word));
        self.telling.extend(long.map(|word| word.hash));
        self.pairs.extend(words::pairs(text));
    }

    /// Returns the number of distinct words.
    pub(super) fn vocabulary(&self) -> usize {
        self.words.len() + self.pairs.len()
    }

    /// Returns whether the source has a text verbatim.
    pub(super) fn says(&self, text: &str) -> bool {
        self.texts.iter().any(|said| said.contains(text))
    }

    /// Returns whether a word is not in the source, but is the beginning of one of its words.
    pub(super) fn is_cut_name(&self, word: &str) -> bool {
        let cut = || {
            self.texts.iter().flat_map(|text| ends(text)).any(|text| {
                text.match_indices(word).any(|(at, _)| {
                    let inside = |c: char| c == '_' || c.is_alphanumeric();
                    let before = text.get(..at).and_then(|text| text.chars().next_back());
                    let after = text
                        .get(at + word.len()..)
                        .and_then(|text| text.chars().next());
                    !before.is_some_and(inside) && after.is_some_and(inside)
                })
            })
        };
        let whole = words::words(word);
        word.is_ascii()
            && word.len() >= NAME_CHARS
            && whole.iter().all(|word| !self.words.contains(&word.hash))
            && cut()
    }

    /// Counts the distinct names in the source. Of a text with many, such as a list of files, only some count.
    pub(super) fn own_names(&self) -> u32 {
        let mut own: HashSet<&str> = HashSet::new();
        for text in &self.texts {
            own.extend(names(text).into_iter().take(NAMES_OF_TEXT));
        }
        count(own.len())
    }

    /// Returns whether the source has many names and numbers, and a text has none of them. `own_names` is the number of names.
    pub(super) fn has_no_term(&self, text: &str, own_names: u32) -> bool {
        let own: HashSet<&str> = self.texts.iter().flat_map(|text| numbers(text)).collect();
        let many = count(own.len()).saturating_add(own_names) >= MANY_TERMS;
        many && self.names(text).found == 0 && numbers(text).is_disjoint(&own)
    }

    /// Counts the names of an answer, such as identifiers, paths and codes, and how many of them the source has. A name
    /// that is put together from parts that the source has counts as found.
    pub(super) fn names(&self, text: &str) -> Shared {
        let names = names(text);
        let mut looked_up = 0;
        let mut is_known = |part: &str| {
            let words = words::words(part);
            if words.iter().all(|word| self.words.contains(&word.hash)) {
                return true;
            }
            // A part of a longer name, such as `BeforeTool` of `handleBeforeTool`.
            looked_up += 1;
            looked_up <= LOOKED_UP && self.says(part)
        };
        let mut is_found = |name: &&str| {
            let parts = name.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
            parts
                .filter(|part| {
                    part.len() >= NAME_CHARS && part.contains(|c: char| !c.is_ascii_digit())
                })
                .all(&mut is_known)
        };
        Shared {
            found: count(names.iter().filter(|name| is_found(name)).count()),
            total: count(names.len()),
        }
    }

    /// Counts the distinct words of Latin letters in a text that tell its subject, and how many of them the source has.
    /// `None` if the source has fewer of them than the text: it was written in another script, or its words are gone, and
    /// the text has to say in its own words what there is.
    pub(super) fn telling(&self, text: &str) -> Option<Shared> {
        let telling = telling(text);
        (self.telling.len() >= telling.len()).then(|| Shared {
            found: count(telling.intersection(&self.words).count()),
            total: count(telling.len()),
        })
    }

    /// Counts the pairs of characters in a text without spaces between words, and how many of them the source has.
    /// `None` if the source has not at least four times as many: then it says little in such a script.
    pub(super) fn pairs(&self, text: &str) -> Option<Shared> {
        let pairs = words::pairs(text);
        (self.pairs.len() >= 4 * pairs.len()).then(|| Shared {
            found: count(pairs.intersection(&self.pairs).count()),
            total: count(pairs.len()),
        })
    }

    /// Returns whether a text is a passage of the source, or more than half of it was copied from there word by word.
    pub(super) fn is_copied(&self, text: &str) -> bool {
        if self.says(text.trim()) {
            return true;
        }
        let all = words::words(text);
        let runs = all.len().saturating_sub(COPY_WORDS - 1);
        let copied = words::runs(&all, COPY_WORDS)
            .filter(|run| self.runs.contains(run))
            .count();
        runs >= COPY_RUNS && copied * 2 > runs
    }
}

/// Returns the names in a text: its terms without numbers, and names of files.
fn names(text: &str) -> BTreeSet<&str> {
    let mut names: BTreeSet<&str> = terms::file_names(text).collect();
    terms::visit(text, &mut |class, name| {
        // Times and dates are told by the prompt, not by the messages.
        let of_source = match class {
            Term::Numbers => false,
            Term::Codes => !name.contains(':'),
            _ => true,
        };
        if of_source {
            names.insert(name);
        }
    });
    names
}

/// Returns the numbers of two digits and more in a text.
fn numbers(text: &str) -> HashSet<&str> {
    let mut numbers = HashSet::new();
    terms::visit(text, &mut |class, number| {
        if class == Term::Numbers {
            numbers.insert(number);
        }
    });
    numbers
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the start and the end of a long text, or the whole of a shorter one.
fn ends(text: &str) -> impl Iterator<Item = &str> {
    let (start, end) = TEXT_BYTES;
    let parts = match text.len() > start + end {
        true => [head(text, start), tail(text, end)],
        false => [text, ""],
    };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Returns the texts of a source. The strings of JSON arguments are decoded.
fn texts<'a>(source: &'a [Source<'a>]) -> Vec<Cow<'a, str>> {
    let mut texts = Vec::new();
    for piece in source {
        match piece {
            Source::Summary(summary) => texts.push(Cow::Borrowed(summary.text)),
            Source::Message(entry) => {
                if let Some(name) = &entry.name {
                    texts.push(Cow::Borrowed(name.as_str()));
                }
                for part in &entry.parts {
                    match part {
                        Part::ToolCall {
                            name, arguments, ..
                        } => {
                            texts.push(Cow::Borrowed(name.as_str()));
                            // As prompts show them, and as a summary tells them.
                            texts.push(Cow::Borrowed(arguments.as_str()));
                            texts.push(Cow::Owned(arguments.decoded_strings()));
                        }
                        part => part.visit_texts(&mut |text| texts.push(text)),
                    }
                }
            }
        }
    }
    texts
}
