//! The state as a list of single facts, without a limit on their size.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memory_model::Seq;

use super::{ConversationState, asks, failing, has_rules, tasks, tells_rules};
use crate::item::{ASKED, Item, Kind};
use crate::print::{ARROW, ending};
use crate::text::{is_step, line_sentences, matcher, reads_as_code, squeeze};
use crate::{standing, tasks as lists};

/// Words of a sentence that states a decision, and not only a step.
const DECIDED: &[&str] = &[
    "decid",
    "decision",
    "chose ",
    "chosen",
    "we'll use",
    "we will use",
    "let's use",
    "let's go with",
    "going with",
    "go with ",
    "settled on",
    "agreed",
    "entschied",
    "entschlossen",
    "決定",
    "決め",
    "方針",
    "결정",
    "决定",
];
/// Lengths of a sentence with a decision, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=400;
/// Maximum number of characters of a failure's output.
const SAYS: usize = 160;

/// Kind of a fact about a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FactKind {
    /// A standing instruction of the user, in its latest form.
    Rule,
    /// A sentence that states a decision and that no later message replaces as a whole, or the user's answer to a question of
    /// the agent's tool.
    Decision,
    /// A file that calls changed.
    File,
    /// A command that failed and did not succeed later.
    Failing,
    /// A task of the latest list that is open or in progress.
    Task,
}

/// A fact about a conversation at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fact {
    /// Kind of the fact.
    pub kind: FactKind,
    /// Message that states the fact; `None` for a file.
    pub seq: Option<Seq>,
    /// Words of the fact: a sentence, the path of a file, a command.
    pub text: String,
    /// Output of a failing command.
    pub says: Option<String>,
}

impl ConversationState {
    /// Returns the facts that hold at the end of the conversation, by kind and position. Each is listed once.
    pub fn facts(&self) -> Vec<Fact> {
        let items: Vec<&Item> = self
            .gathered
            .items
            .iter()
            .filter(|item| item.weight > 0)
            .collect();
        let mut facts = Vec::new();
        let mut seen = BTreeSet::new();
        let mut add = |kind, seq, text: &str, says: Option<String>| {
            let text = squeeze(text);
            if !text.is_empty() && seen.insert((kind, text.clone())) {
                facts.push(Fact {
                    kind,
                    seq,
                    text,
                    says,
                });
            }
        };
        for item in items.iter().rev().filter(|item| has_rules(item)) {
            for rule in &standing::wanted(item).rules {
                add(FactKind::Rule, Some(item.range.last), rule, None);
            }
        }
        for item in &items {
            if item.label == ASKED {
                // The user chose one of the agent's proposals.
                for answer in item.lines.iter().filter(|line| line.contains(ARROW)) {
                    add(FactKind::Decision, Some(item.range.last), answer, None);
                }
                continue;
            }
            let is_said = item.kind == Kind::Reply
                || (item.kind == Kind::User && asks(item) && !tells_rules(item));
            let sentences = item
                .lines
                .iter()
                .filter(|_| is_said)
                .flat_map(|line| line_sentences(line));
            for sentence in sentences.filter(|sentence| is_decided(sentence)) {
                add(FactKind::Decision, Some(item.range.last), &sentence, None);
            }
        }
        for (path, _) in self
            .gathered
            .files
            .iter()
            .filter(|(_, file)| file.changed > 0)
        {
            add(FactKind::File, None, path, None);
        }
        for item in failing(&items) {
            let says = ending(item, SAYS);
            add(
                FactKind::Failing,
                Some(item.range.last),
                &item.lines.join(" "),
                Some(says),
            );
        }
        if let Some((item, list)) = tasks(&items) {
            for task in lists::open(list) {
                add(FactKind::Task, Some(item.range.last), task, None);
            }
        }
        facts.sort_by_key(|fact| (fact.kind, fact.seq));
        facts
    }
}

/// Returns whether a sentence states a decision.
pub(super) fn is_decided(sentence: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| matcher(DECIDED));
    LENGTHS.contains(&sentence.chars().count())
        && WORDS.as_ref().is_some_and(|words| words.is_match(sentence))
        && !sentence.ends_with(['?', '？', ':', '：'])
        && !is_step(sentence)
        && !reads_as_code(sentence)
        // The words of the assistant that a short answer refers to.
        && !sentence.contains("(to [")
}
