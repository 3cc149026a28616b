//! The terms of a question that occur in a corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::corpus::Corpus;
use super::dates::AskedDate;
use super::postings::TermId;
use super::weights::{ASKING_WORD_WEIGHT, DERIVED_WORD_WEIGHT};
use sentence_model::fold::{composed, fold_case};
use sentence_model::words::{Language, Tokenizer, WordLists, is_stop_word};

/// Minimum number of first characters that two words share if one is derived from the other.
const DERIVED_CHARS: usize = 5;

/// A question, read for the ranking.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// The terms to find, sorted by text, with their numbers and weights. Terms that do not occur in the corpus are
    /// left out.
    pub(super) terms: BTreeMap<Arc<str>, (TermId, f64)>,
    /// The terms of the question itself. A document that contains one of them is a hit.
    pub(super) own: Vec<TermId>,
    /// The terms in `own` that describe the subject.
    pub(super) telling: Vec<TermId>,
    /// Number of words that describe the subject, including words that do not occur in the corpus.
    pub(super) telling_count: usize,
    /// Pairs of neighbouring terms.
    pub(super) pairs: Vec<(TermId, TermId)>,
    /// Numbers of the participants that the question names, in order, each once.
    pub(super) participants: Vec<u32>,
    pub(super) dates: Vec<AskedDate>,
    /// Whether the question asks for a time.
    pub(super) asks_time: bool,
    /// Whether the question is in the first person.
    pub(super) first_person: bool,
    /// Terms that the best documents have in common, with their weights. They are not in `terms`.
    pub(super) added: Vec<(TermId, f64)>,
}

impl Question {
    /// Reads a question for a ranking of a corpus.
    pub(super) fn read(corpus: &Corpus, text: &str) -> Self {
        let mut question = Question::default();
        let (mut asked, mut all, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let text = &*composed(text);
        Tokenizer::RANKING.visit_query(text, &mut |range, term| {
            let word = text.get(range).unwrap_or_default();
            let folded = fold_case(word);
            let name = corpus.names.get(&folded).copied();
            if let Some(participant) = name
                && !question.participants.contains(&participant)
            {
                question.participants.push(participant);
            }
            let is_left_out = is_stop_word(word) || name.is_some();
            let language = Language::of_word(&folded);
            let asks = language.is_some_and(|l| WordLists::of(l).asking.contains(folded.as_str()));
            let weight = if asks { ASKING_WORD_WEIGHT } else { 1.0 };
            words.push(folded);
            all.push((term.clone(), 1.0));
            if !is_left_out {
                asked.push((term, weight));
            }
        });
        question.read_asker(&words, text);
        // If a question contains only stop words and names, they are its subject.
        let asked = if asked.is_empty() { all } else { asked };
        question.look_up(corpus, &asked);
        question
    }

    fn read_asker(&mut self, words: &[String], text: &str) {
        let lists = WordLists::of(Language::English);
        self.dates = AskedDate::all(words, text);
        let how_long = words.windows(2).any(|two| two == ["how", "long"]);
        self.first_person = words
            .iter()
            .any(|word| lists.first_person.contains(word.as_str()));
        self.asks_time = how_long || words.iter().any(|word| lists.when.contains(word.as_str()));
    }

    /// Looks up terms with their weights, and adds the corpus' terms that are derived from them.
    fn look_up(&mut self, corpus: &Corpus, asked: &[(String, f64)]) {
        let distinct = asked.iter().map(|(term, weight)| (term.as_str(), *weight));
        let distinct: BTreeMap<&str, f64> = distinct.collect();
        self.telling_count = distinct.values().filter(|weight| **weight >= 1.0).count();
        for (term, weight) in &distinct {
            if let Some((text, id)) = corpus.terms.get_key_value(*term) {
                self.terms.insert(Arc::clone(text), (*id, *weight));
                self.own.push(*id);
                if *weight >= 1.0 {
                    self.telling.push(*id);
                }
            }
        }
        for (text, id) in distinct.keys().flat_map(|term| derived(corpus, term)) {
            self.terms.entry(text).or_insert((id, DERIVED_WORD_WEIGHT));
        }
        let id = |(term, _): &(String, f64)| corpus.terms.get(term.as_str()).copied();
        for pair in asked.windows(2) {
            if let [first, second] = pair
                && let (Some(first), Some(second)) = (id(first), id(second))
            {
                self.pairs.push((first, second));
            }
        }
    }
}

/// Returns whether two different words have the same beginning of at least five characters, after which one of them has
/// at most one more character.
fn is_derived(term: &str, other: &str) -> bool {
    let alike = term.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    let mut common = alike.count();
    while !term.is_char_boundary(common) {
        common -= 1;
    }
    let Some((alike, rest)) = term.split_at_checked(common) else {
        return false;
    };
    let other_rest = other.get(common..).unwrap_or_default();
    let is_short = |rest: &str| rest.chars().nth(1).is_none();
    !(rest.is_empty() && other_rest.is_empty())
        && (is_short(rest) || is_short(other_rest))
        && alike.chars().nth(DERIVED_CHARS - 1).is_some()
}

/// Returns the corpus' terms of which one is derived from `term`, or from which `term` is derived: see [`is_derived`].
fn derived(corpus: &Corpus, term: &str) -> Vec<(Arc<str>, TermId)> {
    let Some((at, c)) = term.char_indices().nth(DERIVED_CHARS - 1) else {
        return Vec::new();
    };
    let prefix = term.get(..at + c.len_utf8()).unwrap_or_default();
    let after = corpus.terms.range::<Arc<str>, _>(Arc::from(prefix)..);
    let alike = after.take_while(|(other, _)| other.starts_with(prefix));
    alike
        .filter(|(other, _)| is_derived(term, other))
        .map(|(text, id)| (Arc::clone(text), *id))
        .collect()
}

/// The words of a conversation that a ranking may need for a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The terms of the question's words. A text that contains a word of the question contains the terms of this word.
    pub terms: BTreeSet<String>,
    /// The first five characters of the question's long terms. A word with one of these beginnings may be derived from
    /// a word of the question.
    pub prefixes: BTreeSet<String>,
}

impl Wanted {
    /// Returns the words that a ranking may need for a question.
    pub(crate) fn new(question: &str) -> Self {
        let mut wanted = Self::default();
        let question = composed(question);
        Tokenizer::RANKING.visit_query(&question, &mut |_, term| {
            if let Some((at, c)) = term.char_indices().nth(DERIVED_CHARS - 1) {
                let prefix = term.get(..at + c.len_utf8()).unwrap_or_default();
                wanted.prefixes.insert(prefix.to_owned());
            }
            wanted.terms.insert(term);
        });
        wanted
    }

    /// Returns whether the ranking needs a word with one of the [prefixes](Self::prefixes): whether it is a word of the
    /// question, or one of them is derived from the other.
    pub(crate) fn needs(&self, word: &str) -> bool {
        self.terms.contains(word) || self.terms.iter().any(|term| is_derived(term, word))
    }

    /// Returns whether the ranking may [need](Self::needs) a longer word with this beginning.
    pub(crate) fn may_need_longer(&self, beginning: &str) -> bool {
        let chars = beginning.chars().count();
        self.terms.iter().any(|term| {
            let alike = term.chars().zip(beginning.chars());
            let common = alike.take_while(|(a, b)| a == b).count();
            // If the beginning continues as the term does, any characters may follow. Otherwise the words share only
            // this beginning, which must be long enough.
            common == chars
                || (common >= DERIVED_CHARS && common + 1 >= (chars + 1).min(term.chars().count()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, character by character.
    fn is_derived_by_chars(term: &str, other: &str) -> bool {
        let common = term.chars().zip(other.chars()).take_while(|(a, b)| a == b);
        let common = common.count();
        let shorter = term.chars().count().min(other.chars().count());
        other != term && common >= DERIVED_CHARS && common + 1 >= shorter
    }

    fn may_need(wanted: &Wanted, beginning: &str) -> bool {
        wanted.needs(beginning) || wanted.may_need_longer(beginning)
    }

    #[test]
    fn words_are_derived_that_begin_alike() {
        let rng = &mut fastrand::Rng::with_seed(5);
        let mut seen = [0, 0];
        for _ in 0..40_000 {
            let mut word = || -> String {
                let tail = (0..rng.usize(..4)).map(|_| ['a', 'b', 'é', 'è', '数'][rng.usize(..5)]);
                let tail: String = tail.collect();
                ["éba数", "ébaé", "ébaèa", "ébaèa"][rng.usize(..4)].to_owned() + &tail
            };
            let (term, other) = (word(), word());
            let derived = is_derived_by_chars(&term, &other);
            assert_eq!(is_derived(&term, &other), derived, "{term} {other}");
            let wanted = Wanted {
                terms: [term.clone()].into(),
                prefixes: BTreeSet::new(),
            };
            let shared = other.chars().count() - rng.usize(..3);
            let beginning: String = other.chars().take(shared).collect();
            if derived || term == other {
                assert!(may_need(&wanted, &beginning), "{term} {other}");
                let goes_on = beginning != other;
                assert!(
                    !goes_on || wanted.may_need_longer(&beginning),
                    "{term} {other}"
                );
            }
            seen[usize::from(may_need(&wanted, &beginning))] += 1;
        }
        assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
    }
}
