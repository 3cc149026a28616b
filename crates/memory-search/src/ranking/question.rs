//! What a question asks for, in the terms of a corpus.

use std::collections::BTreeMap;

use super::corpus::{Corpus, TermId, is_stop_word};
use super::dates::AskedDate;
use crate::fold::fold_case;
use crate::words::{Language, WordLists};

/// Fewest characters that two words begin with alike when one is derived from the other.
const DERIVED_CHARS: usize = 5;

/// A question as the ranking reads it.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// The terms to find, with their weights. Terms that the corpus does not have are left out.
    pub(super) terms: BTreeMap<TermId, f64>,
    /// The terms that stand in the question itself. What has one of them is a hit.
    pub(super) own: Vec<TermId>,
    /// Those of them that describe what is asked for.
    pub(super) telling: Vec<TermId>,
    /// Number of words that describe what is asked for, also such as the corpus does not have.
    pub(super) telling_count: usize,
    /// Pairs of neighbouring terms.
    pub(super) pairs: Vec<(TermId, TermId)>,
    /// Numbers of the participants that it names, in their order, each once.
    pub(super) participants: Vec<u32>,
    pub(super) dates: Vec<AskedDate>,
    /// Whether it asks for a time.
    pub(super) asks_time: bool,
    /// Whether it is in the first person.
    pub(super) first_person: bool,
}

/// A term of the question, before it is looked up.
struct Asked {
    term: String,
    weight: f64,
}

impl Question {
    /// Reads a question.
    pub(super) fn read(corpus: &Corpus, text: &str) -> Self {
        let mut question = Question::default();
        let (mut asked, mut all, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let policy = &corpus.policy;
        let tokenizer = policy.tokenizer();
        tokenizer.visit_query(text, &mut |range, term| {
            let word = text.get(range).unwrap_or_default();
            let folded = fold_case(word);
            let name = corpus.names.get(&folded).copied();
            if let Some(participant) = name
                && !question.participants.contains(&participant)
            {
                question.participants.push(participant);
            }
            let is_left_out = (policy.omit_stop_words && is_stop_word(word, tokenizer))
                || (policy.omit_names && name.is_some());
            let language = Language::of_word(&folded, policy.language);
            let asks = language.is_some_and(|l| WordLists::of(l).asking.contains(folded.as_str()));
            let weight = if asks { policy.asking_word_weight } else { 1.0 };
            words.push(folded);
            all.push(Asked {
                term: term.clone(),
                weight: 1.0,
            });
            if !is_left_out {
                asked.push(Asked { term, weight });
            }
        });
        question.read_asker(&words, policy.language);
        // A question of nothing but such words is about them.
        let asked = if asked.is_empty() { all } else { asked };
        question.look_up(corpus, &asked);
        question
    }

    fn read_asker(&mut self, words: &[String], latin: Option<Language>) {
        let lists = WordLists::of(latin.unwrap_or(Language::English));
        self.dates = AskedDate::all(words, lists);
        let how_long = words.windows(2).any(|two| two == ["how", "long"]);
        self.first_person = words
            .iter()
            .any(|word| lists.first_person.contains(word.as_str()));
        self.asks_time = how_long || words.iter().any(|word| lists.when.contains(word.as_str()));
    }

    /// Looks the terms up, adds those that are derived, and weighs them.
    fn look_up(&mut self, corpus: &Corpus, asked: &[Asked]) {
        let mut distinct = BTreeMap::new();
        for one in asked {
            distinct.insert(one.term.as_str(), one.weight);
        }
        self.telling_count = distinct.values().filter(|weight| **weight >= 1.0).count();
        for (term, weight) in &distinct {
            if let Some(id) = corpus.terms.get(*term) {
                self.terms.insert(*id, *weight);
                self.own.push(*id);
                if *weight >= 1.0 {
                    self.telling.push(*id);
                }
            }
        }
        let derived_weight = corpus.policy.derived_word_weight;
        if derived_weight > 0.0 {
            for id in distinct.keys().flat_map(|term| derived(corpus, term)) {
                self.terms.entry(id).or_insert(derived_weight);
            }
        }
        let id = |one: &Asked| corpus.terms.get(&one.term).copied();
        for pair in asked.windows(2) {
            if let [first, second] = pair
                && let (Some(first), Some(second)) = (id(first), id(second))
            {
                self.pairs.push((first, second));
            }
        }
    }
}

/// The corpus' terms that begin as `term` does, but for one character of the shorter of the two.
fn derived(corpus: &Corpus, term: &str) -> Vec<TermId> {
    let length = term.chars().count();
    let Some((at, c)) = term.char_indices().nth(DERIVED_CHARS - 1) else {
        return Vec::new();
    };
    let prefix = term.get(..at + c.len_utf8()).unwrap_or_default();
    let after = corpus.terms.range(prefix.to_owned()..);
    let alike = after.take_while(|(other, _)| other.starts_with(prefix));
    alike
        .filter(|(other, _)| {
            let common = term.chars().zip(other.chars()).take_while(|(a, b)| a == b);
            let shorter = length.min(other.chars().count());
            *other != term && common.count() + 1 >= shorter
        })
        .map(|(_, id)| *id)
        .collect()
}
