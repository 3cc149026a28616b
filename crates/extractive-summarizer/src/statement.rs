//! Statements of users: the values that a sentence sets, each with its subject.

use std::sync::Arc;

use sentence_model::NumberedSentence;

use crate::cue_lists::Cue;
use crate::force::{Force, RULE_BYTES, force_of, is_new};
use crate::phrases::any;
use crate::said_value::{Class, Value};
use crate::stems::stem;
use crate::subject::{adds, is_single};
use crate::words::{Words, words};

/// Maximum number of values of a sentence that are read.
const VALUES: usize = 4;

/// Statement of a sentence: the value that it gives a subject. For example, `Use port 8080` gives the port the value
/// `8080`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Informative words around the value, in order, without the values.
    pub(crate) subject: Vec<String>,
    /// Number of words at the beginning of `subject` that give the condition of the statement, such as `naming
    /// functions` in `When naming functions, use snake_case`.
    pub(crate) topic: usize,
    /// Number of words at the beginning of `subject` that do not come from the clause with the value, but from an
    /// earlier clause of the sentence. Between words of two clauses, comparisons ignore the order.
    pub(crate) lead: usize,
    pub(crate) value: Option<Value>,
    /// Whether the subject has only one value: it starts *with*, is, or is set *to* the value.
    pub(crate) single: bool,
    /// Whether the sentence says that something has changed.
    pub(crate) changes: bool,
    /// Whether the sentence says that something applies from now on.
    pub(crate) fresh: bool,
    /// Whether the statement applies to all things of its kind.
    pub(crate) universal: bool,
    pub(crate) withdraws: bool,
    /// Whether the value is added to other values of the subject.
    pub(crate) adds: bool,
    /// Pairs of directly neighbouring words of the subject.
    pub(crate) pairs: Arc<[(String, String)]>,
    /// The numbers of the sentence: those that name things, and those that are values.
    pub(crate) numbered: Arc<NumberedSentence>,
}

/// What a sentence says.
#[derive(Debug, Default)]
pub(crate) struct Understood {
    pub(crate) force: Force,
    pub(crate) statements: Vec<Statement>,
    pub(crate) numbered: Arc<NumberedSentence>,
}

/// Returns the force of a sentence, its [`statements`] and its numbers. The sentence is usually parsed only once.
pub(crate) fn understood(sentence: &str, before: Option<&str>) -> Understood {
    if sentence.len() > RULE_BYTES {
        return Understood::default();
    }
    let mut said = words(sentence);
    let has_value = said.has_value();
    let force = force_of(&mut said, sentence);
    if said.has_value() != has_value {
        // Determining the force changed the values. Statements look for values in another way, so the sentence is
        // parsed again.
        said = words(sentence);
    }
    let numbered = Arc::new(NumberedSentence::read(sentence));
    Understood {
        force,
        statements: statements_of(said, sentence, before, &numbered),
        numbered,
    }
}

/// Returns the statements of a sentence: one for each of its values, or one that withdraws an earlier statement.
/// `before` is the previous sentence, to which pronouns may refer.
pub(crate) fn statements(sentence: &str, before: Option<&str>) -> Vec<Statement> {
    match sentence.len() {
        ..=RULE_BYTES => {
            let numbered = Arc::new(NumberedSentence::read(sentence));
            statements_of(words(sentence), sentence, before, &numbered)
        }
        _ => Vec::new(),
    }
}

fn statements_of(
    mut said: Words<'_>,
    sentence: &str,
    before: Option<&str>,
    numbered: &Arc<NumberedSentence>,
) -> Vec<Statement> {
    let withdraws = any(&said, sentence, Cue::Withdraws);
    said.find_weak(!withdraws);
    let said = said;
    if (!said.has_value() && !withdraws) || is_task(&said) {
        return Vec::new();
    }
    let changes = any(&said, sentence, Cue::Changes);
    let fresh = changes
        || is_new(&said)
        || any(&said, sentence, Cue::Since)
        || any(&said, sentence, Cue::Updates);
    let universal = fresh || any(&said, sentence, Cue::Universal);
    let mut pairs = said.pairs(sentence);
    let part = before.and_then(|before| named_part(&pairs, before));
    pairs.extend(part.clone());
    let pairs: Arc<[(String, String)]> = pairs.into();
    let mut found = Vec::new();
    let (mut start, mut first) = (0, Vec::new());
    let mut carried: Vec<String> = Vec::new();
    // A number that names a thing is no value.
    let is_name = |n: usize| {
        let at = said.words.get(n).map(|word| word.at);
        let mut names = numbered.names();
        names.any(|(_, range)| at.is_some_and(|at| range.contains(&at)))
    };
    let values = (0..said.words.len()).filter(|n| said.is_value(*n) && !is_name(*n));
    let values: Vec<usize> = values.take(VALUES).collect();
    let rejects = values.iter().any(|at| said.rejects(*at));
    let rejects = rejects && values.iter().any(|at| !said.rejects(*at));
    let changes = changes || rejects;
    let fresh = fresh || rejects;
    for at in values {
        if (start > 0 && said.qualifies(at)) || (rejects && said.rejects(at)) {
            continue;
        }
        if said.names(at) {
            carried = said.telling(sentence, |n| {
                (start..at).contains(&n) && said.clause(n) == said.clause(at)
            });
            carried.extend(said.value(at).map(|value| value.text.to_lowercase()));
            start = at + 1;
            continue;
        }
        let (topic, done) = said.topic(at, sentence);
        let mut subject = without_repeats(topic);
        let topic = subject.len();
        subject.extend(done);
        let mut subject = without_repeats(subject);
        let mut lead = subject.len();
        let from = said.begin(start, at);
        if said.is_manner(at) {
            found.push(Statement {
                subject: vec![stem("answer")],
                value: said.value(at).cloned(),
                changes,
                fresh,
                universal,
                numbered: Arc::clone(numbered),
                ..Statement::default()
            });
            start = at + 1;
            continue;
        }
        subject.append(&mut carried);
        let about = said.about(from, at, topic > 0, &subject, sentence);
        subject.extend(about);
        let dated = said
            .value(at)
            .is_some_and(|value| value.class == Class::Date);
        if dated && !subject.is_empty() {
            subject.push(stem("date"));
        }
        if first.is_empty() {
            if said.refers(start, at) && subject.len() < 3 {
                let clause = said.clause(at);
                let words: Vec<String> =
                    said.telling(sentence, |n| n < at && said.clause(n) != clause);
                let words = match before {
                    Some(before) if words.len() < 2 => {
                        self::words(before).telling(before, |_| true)
                    }
                    _ => words,
                };
                subject.splice(0..0, words);
            }
            if subject.len() < 3 {
                let clause = said.clause(at);
                let heading = said.telling(sentence, |n| {
                    n < at && said.clause(n) != clause && said.is_heading(n)
                });
                lead += heading.len();
                subject.splice(topic..topic, heading);
            }
            first.clone_from(&subject);
        } else if subject.len() < 2 {
            // `… and end them with` is about the same thing as the part before.
            subject.extend(first.iter().skip(1).cloned());
        } else if subject.len() < 3 {
            // `… and all method names with` repeats the action of the part before.
            subject.splice(0..0, first.first().cloned());
        }
        start = said.end(at);
        let statement = Statement {
            single: is_single(&said, sentence, from, at),
            adds: adds(&said, sentence, from, at),
            pairs: Arc::clone(&pairs),
            numbered: Arc::clone(numbered),
            value: said.value(at).cloned(),
            changes,
            fresh,
            universal,
            withdraws,
            topic,
            lead,
            ..Statement::default()
        };
        for mut subject in said.parts(subject, from, at, sentence) {
            if let Some((word, of)) = &part
                && let Some(at) = subject.iter().position(|one| one == of)
            {
                subject.insert(at, word.clone());
            }
            let subject = without_repeats(subject);
            found.push(Statement {
                subject,
                ..statement.clone()
            });
        }
    }
    if found.is_empty() && withdraws {
        found.push(Statement {
            subject: without_repeats(said.telling(sentence, |_| true)),
            withdraws,
            numbered: Arc::clone(numbered),
            ..Statement::default()
        });
    }
    found
}

/// Finds a compound of this sentence in the previous one with a word before it. Returns that word and the word that
/// follows it. For `column names` after `table column names`, these are `table` and `column`.
fn named_part(pairs: &[(String, String)], before: &str) -> Option<(String, String)> {
    if pairs.is_empty() {
        return None;
    }
    let earlier = words(before).pairs(before);
    let mut same = pairs.iter().filter(|pair| earlier.contains(pair));
    same.find_map(|(first, _)| {
        let mut longer = earlier.iter().filter(|(_, of)| of == first);
        let (part, of) = longer.next()?;
        // A pair such as `end names` is no compound.
        let own = pairs.iter().any(|(_, whole)| whole == first);
        let known = pairs.iter().any(|(a, b)| a == part || b == part);
        (!own && !known).then(|| (part.clone(), of.clone()))
    })
}

/// Returns whether the words ask to rename or replace something and give no replacement. The value is then the object
/// of the task.
fn is_task(said: &Words<'_>) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| said.has(word));
    has(&["rename", "replace"]) && !has(&["to", "with", "by", "into", "as", "instead", "should"])
}

fn without_repeats(mut words: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    words.retain(|word| seen.insert(word.clone()));
    words
}
