//! Finds texts that change statements (sentences, or parts of them that set a value) of earlier texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::statement::Statement;
use super::{Compounds, Said, are_apart, corrects, renumbers};

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
    terms: usize,
}

/// A change of a statement (a sentence, or a part of one that sets a value) by a later text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<'s> {
    /// Index of the later text, in the list given to [`Changes::new`].
    pub by: usize,
    /// The statement of the later text that makes the change.
    pub statement: &'s str,
    /// Whether the changed statement is likely to be the one that the question asks for. This is so if no other
    /// statement of its text contains more words of the question, and the question does not contain the old value.
    pub is_asked: bool,
}

impl Changes {
    /// Compares texts with each other. `said` are the texts of a conversation, oldest first. `question` is the question
    /// that the texts are to answer.
    pub fn new(mut said: Vec<Said>, question: &str) -> Self {
        complete(&mut said);
        let compounds = Compounds::of(&said);
        let (mut by_term, mut later) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
        let mut by_number = HashMap::<String, Vec<usize>>::new();
        let may_change = said.iter().enumerate().filter(|(_, one)| !one.is_narration);
        for (text, one) in may_change.clone() {
            for (at, statement) in one.statements.iter().enumerate() {
                if statement.may_change() {
                    for term in &statement.terms {
                        by_term.entry(term.clone()).or_default().push(later.len());
                    }
                    for key in statement.numbered.keys() {
                        by_number.entry(key).or_default().push(later.len());
                    }
                    let terms = statement.terms.len();
                    later.push(Place { text, at, terms });
                }
            }
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
                let terms = statement.terms.len();
                answers.push(Place { text, at, terms });
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
            let place = self.newest(text, part)?;
            let later = self.statement(place)?;
            Some(Change {
                by: place.text,
                statement: later.text.as_str(),
                is_asked: words(part) == most && !self.names_only(part, later),
            })
        });
        changes.collect()
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
                    && renumbers(earlier, later, false) != Some(false)
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
    fn newest(&self, text: usize, statement: &Statement) -> Option<Place> {
        let first = statement;
        let mut newest: Option<Place> = None;
        let (mut text, mut statement) = (text, statement);
        while let Some(place) = self.change(text, statement) {
            let next = self.statement(place)?;
            // An intermediate change may leave open which thing it is about. The last change must still fit the first
            // statement.
            let others = are_apart(first, next, &self.compounds)
                || renumbers(first, next, false) == Some(false);
            if newest.is_some() && others {
                break;
            }
            newest = Some(place);
            (text, statement) = (place.text, next);
        }
        newest
    }

    /// Returns the position of the last statement that directly changes this one.
    fn change(&self, text: usize, earlier: &Statement) -> Option<Place> {
        if !earlier.is_claim() {
            return None;
        }
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for at in earlier
            .terms
            .iter()
            .flat_map(|term| self.by_term.get(term))
            .flatten()
        {
            *shared.entry(*at).or_default() += 1;
        }
        let keys = earlier.numbered.keys();
        let numbered = keys.iter().filter_map(|key| self.by_number.get(key));
        for at in numbered.flatten() {
            shared.entry(*at).or_default();
        }
        if earlier.numbered.has_numbers() {
            // A sentence such as `make that 30` need not have a word of the one before it.
            let first = self.later.partition_point(|place| place.text <= text);
            let next = self.later.iter().enumerate().skip(first);
            let next = next.take_while(|(_, place)| place.text == text + 1);
            for (at, _) in next {
                shared.entry(at).or_default();
            }
        }
        shared.into_iter().rev().find_map(|(at, shared)| {
            let place = self
                .later
                .get(at)
                .copied()
                .filter(|place| place.text > text)?;
            let later = self.statement(place)?;
            let is_short = earlier.terms.len().max(place.terms) <= 2;
            let is_next =
                place.text == text + 1 && self.is_short(text) && self.is_short(place.text);
            let changes = match renumbers(earlier, later, is_next) {
                Some(changes) => changes,
                None => (shared >= 2 || is_short) && corrects(earlier, later, &self.compounds),
            };
            changes.then_some(place)
        })
    }

    /// Returns whether a text is so short that each of its statements is next to those of the text after it.
    fn is_short(&self, text: usize) -> bool {
        let said = self.said.get(text);
        said.is_some_and(|said| said.statements.len() <= SHORT)
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
