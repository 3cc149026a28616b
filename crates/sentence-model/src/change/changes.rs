//! Finds texts that change statements (sentences, or parts of them that set a value) of earlier texts.

use std::collections::{BTreeSet, HashMap};

use super::compounds::Compounds;
use super::sentence::Reader;
use super::statement::Statement;
use super::{Renumbered, Why, are_apart, change, renumbered};
use crate::fold::composed;
use crate::sentences;

/// Finds statements in the texts of a conversation that a later text changes, such as a new value or a dropped plan.
#[derive(Debug)]
pub struct Changes {
    said: Vec<Said>,
    compounds: Compounds,
    /// For each content word, the indexes in `later` of the statements that contain the word.
    by_term: HashMap<String, Vec<usize>>,
    /// The same for the keys of numbered things.
    by_number: HashMap<String, Vec<usize>>,
    later: Vec<Place>,
    asked: BTreeSet<String>,
    /// Values in the question, such as numbers or names.
    named: BTreeSet<String>,
    /// Positions of the statements that contain a value and the most words of the question.
    answers: Vec<Place>,
}

/// The statements of one text, ready to be compared with other texts by [`Changes`].
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The statements of the sentences. A sentence with several values may have several statements.
    statements: Vec<Statement>,
    is_narration: bool,
}

/// Maximum number of sentences of a text that are read.
const MOST_SENTENCES: usize = 24;

impl Said {
    /// Finds the statements in a text: its sentences, or the parts of a sentence that each set a value. Only the first 24 sentences
    /// are read.
    pub fn of(text: &str) -> Self {
        let text = composed(text).replace('’', "'");
        let mut reader = Reader::default();
        let all = text.lines().flat_map(sentences).take(MOST_SENTENCES);
        Self {
            statements: all.flat_map(|sentence| reader.read(sentence)).collect(),
            ..Self::default()
        }
    }

    /// Marks the text as narration, such as the comments of an agent between its tool calls. [`Changes`] does not let
    /// narration change earlier statements.
    pub fn as_narration(mut self) -> Self {
        self.is_narration = true;
        self
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }
}

/// Maximum number of statements that are compared with earlier ones, counted from the last one back.
const MOST_LATER: usize = 1024;

/// Minimum number of words of the question that an answer contains.
const FEWEST_ASKED: usize = 2;

/// Number of texts directly before a text that are searched for a statement that it repeats.
const ANSWERED: usize = 2;

/// Maximum number of statements of a text that the next text may answer without naming the thing.
const SHORT: usize = 3;

/// Position of a statement (a sentence, or a part of one) in the texts of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    text: usize,
    /// Index of the statement in its text.
    at: usize,
}

/// A change of a statement (a sentence, or a part of one that sets a value) by a later text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Change<'s> {
    /// The statement that is changed.
    pub changed: &'s Statement,
    /// Index of the later text, in the list given to [`Changes::new`].
    pub by: usize,
    /// The statement of the later text that makes the change.
    pub statement: &'s Statement,
    /// Why it makes the change.
    pub why: Why,
    /// Whether the changed statement is likely to be the one that the question asks for. This is so if no other
    /// statement of its text contains more words of the question, and the question does not contain the old value.
    pub is_asked: bool,
}

impl Changes {
    /// Compares texts with each other. `said` are the texts of a conversation, oldest first. `question` is the question
    /// that the texts are to answer.
    pub fn new(mut said: Vec<Said>, question: &str) -> Self {
        complete(&mut said);
        let compounds = Compounds::of(said.iter().map(Said::statements));
        let (mut by_term, mut later) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
        let mut by_number = HashMap::<String, Vec<usize>>::new();
        let may_change = said.iter().enumerate().filter(|(_, one)| !one.is_narration);
        let statements = may_change.clone().flat_map(|(text, one)| {
            let statements = one.statements.iter().enumerate();
            statements.map(move |(at, statement)| (Place { text, at }, statement))
        });
        let changing: Vec<_> = statements.filter(|(_, one)| one.may_change()).collect();
        let first = changing.len().saturating_sub(MOST_LATER);
        for (place, statement) in changing.into_iter().skip(first) {
            for term in &statement.terms {
                by_term.entry(term.clone()).or_default().push(later.len());
            }
            for key in statement.numbered.keys() {
                by_number.entry(key).or_default().push(later.len());
            }
            later.push(place);
        }
        let (mut asked, mut named) = (BTreeSet::new(), BTreeSet::new());
        for statement in Said::of(question).statements {
            asked.extend(statement.terms);
            named.extend(statement.values.into_values().flatten());
        }
        let mut answers = Vec::new();
        let mut most = FEWEST_ASKED;
        for (text, one) in may_change {
            for (at, statement) in one.statements.iter().enumerate() {
                let words = statement.terms.intersection(&asked).count();
                if statement.values.is_empty() || statement.adding || words < most {
                    continue;
                }
                if words > most {
                    answers.clear();
                    most = words;
                }
                answers.push(Place { text, at });
            }
        }
        Self {
            said,
            compounds,
            by_term,
            by_number,
            later,
            asked,
            named,
            answers,
        }
    }

    /// Returns the changes of the statements in the text with index `text`, in the order of the statements. For a
    /// statement that was changed several times, returns only the last known change.
    pub fn of(&self, text: usize) -> Vec<Change<'_>> {
        let parts = || {
            self.said
                .get(text)
                .into_iter()
                .flat_map(|said| &said.statements)
        };
        let words = |part: &Statement| part.terms.intersection(&self.asked).count();
        let most = parts().map(words).max().unwrap_or_default();
        let changes = parts().filter_map(|part| {
            let (place, why) = self.newest(text, part)?;
            let later = self.statement(place)?;
            Some(Change {
                changed: part,
                by: place.text,
                statement: later,
                why,
                is_asked: words(part) == most && !self.names_only(part, later),
            })
        });
        changes.collect()
    }

    /// Returns the indexes in `later` of the statements that share a content word with a statement.
    fn sharing(&self, statement: &Statement) -> BTreeSet<usize> {
        let terms = statement.terms.iter();
        let places = terms.filter_map(|term| self.by_term.get(term));
        places.flatten().copied().collect()
    }

    /// Returns the index of the last text that answers the question with other values than the text with index `text`.
    /// `None` if there is no such text. A text is an answer if one of its statements contains a value and the most
    /// words of the question. The later answer does not necessarily change the earlier one.
    pub fn newer_answer(&self, text: usize) -> Option<usize> {
        let own = self.answers.iter().filter(|one| one.text == text);
        let newer = self.answers.iter().filter(|one| one.text > text);
        let newer = newer.filter(|later| {
            own.clone().any(|earlier| {
                let (Some(earlier), Some(later)) =
                    (self.statement(*earlier), self.statement(**later))
                else {
                    return false;
                };
                let mut values = earlier.values.iter();
                !later.asks
                    && !self.names_only(earlier, later)
                    && !are_apart(earlier, later, &self.compounds)
                    && !matches!(renumbered(earlier, later, false), Renumbered::Unchanged)
                    && values.any(|(kind, before)| {
                        let after = later.values.get(kind);
                        after.is_some_and(|after| after.is_disjoint(before))
                    })
            })
        });
        newer.map(|one| one.text).max()
    }

    /// Returns whether the question contains a value of the earlier statement that the later statement does not
    /// contain. The question then asks for the earlier statement.
    fn names_only(&self, earlier: &Statement, later: &Statement) -> bool {
        let has = |one: &Statement, value| one.values.values().any(|values| values.contains(value));
        let mut named = self.named.iter();
        named.any(|value| has(earlier, value) && !has(later, value))
    }

    /// Returns the position of the last change of a statement. Follows changes of changes.
    fn newest(&self, text: usize, statement: &Statement) -> Option<(Place, Why)> {
        let first = statement;
        let mut newest = None;
        let (mut text, mut statement) = (text, statement);
        while let Some((place, why)) = self.change(text, statement) {
            let next = self.statement(place)?;
            // An intermediate change may leave open which thing it is about. The last change must still fit the first
            // statement.
            let others = are_apart(first, next, &self.compounds)
                || matches!(renumbered(first, next, false), Renumbered::Unchanged);
            if newest.is_some() && others {
                break;
            }
            newest = Some((place, why));
            (text, statement) = (place.text, next);
        }
        newest
    }

    /// Returns the position of the last statement that directly changes this one.
    fn change(&self, text: usize, earlier: &Statement) -> Option<(Place, Why)> {
        if !earlier.is_claim() {
            return None;
        }
        let mut shared = self.sharing(earlier);
        let keys = earlier.numbered.keys();
        let numbered = keys.iter().filter_map(|key| self.by_number.get(key));
        shared.extend(numbered.flatten());
        if earlier.numbered.has_numbers() {
            // A sentence such as `make that 30` need not have a word of the one before it.
            let first = self.later.partition_point(|place| place.text <= text);
            let next = self.later.iter().enumerate().skip(first);
            let next = next.take_while(|(_, place)| place.text == text + 1);
            shared.extend(next.map(|(at, _)| at));
        }
        shared.into_iter().rev().find_map(|at| {
            let place = self.later.get(at).copied();
            let place = place.filter(|place| place.text > text)?;
            let later = self.statement(place)?;
            let is_next = place.text == text + 1 && self.are_next(text);
            let why = change(earlier, later, &self.compounds, is_next)?;
            Some((place, why))
        })
    }

    /// Returns whether a text and the one after it are so short that their statements are next to each other.
    fn are_next(&self, text: usize) -> bool {
        let is_short = |said: &Said| said.statements.len() <= SHORT;
        let next = self.said.get(text + 1);
        self.said.get(text).is_some_and(is_short) && next.is_some_and(is_short)
    }

    fn statement(&self, place: Place) -> Option<&Statement> {
        self.said.get(place.text)?.statements.get(place.at)
    }
}

/// Completes statements that repeat a value without naming the thing. "I'll use 'x' for names", after "start names with
/// 'x'", is also about the start of names.
fn complete(said: &mut [Said]) {
    for text in 0..said.len() {
        let (before, rest) = said.split_at_mut(text);
        let Some(own) = rest.first_mut() else { return };
        for at in 0..own.statements.len() {
            let (earlier, rest) = own.statements.split_at_mut(at);
            let Some((statement, later)) = rest.split_first_mut() else {
                continue;
            };
            if !statement.apart.is_empty() || statement.values.is_empty() {
                continue;
            }
            let answered = before.iter().rev().take(ANSWERED);
            let answered = answered.flat_map(|one| &one.statements);
            let mut all = earlier.iter().rev().chain(later.iter()).chain(answered);
            let first = all.find(|other| !other.apart.is_empty() && statement.says_again(other));
            if let Some(first) = first {
                statement.is_of_same_end(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_names_a_value_asks_for_the_text_with_it() {
        let said = || {
            let texts = [
                "The port of the staging server is 4321.",
                "The port of the staging server is now 4998.",
            ];
            texts.into_iter().map(Said::of).collect()
        };
        let asked = |question: &str| {
            let changes = Changes::new(said(), question);
            changes.of(0).first().map(|change| change.is_asked)
        };
        let general = "What is the port of the staging server?";
        assert_eq!(asked(general), Some(true));
        let exact = "Since when is the port of the staging server 4321?";
        assert_eq!(asked(exact), Some(false));
        assert_eq!(Changes::new(said(), exact).newer_answer(0), None);
    }
}
