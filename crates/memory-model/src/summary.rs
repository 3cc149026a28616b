//! Summaries: nodes of a DAG over the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::{FieldHasher, Hash};
use crate::ids::{SeqRange, SummaryId};
use crate::json::RawJson;
use crate::time::Timestamp;

/// How a summary was made: summarizer, prompt, policy and their versions, as one canonical line.
///
/// A summary of the same sources by the same recipe is never paid for twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipe(String);

impl Recipe {
    /// Wraps a recipe line.
    pub fn new(line: impl Into<String>) -> Self {
        Self(line.into())
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of the pieces that a summary was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Child {
    /// Messages, verbatim.
    Messages {
        /// Which ones.
        range: SeqRange,
    },
    /// Another summary.
    Summary {
        /// What it covers.
        range: SeqRange,
        /// Which one.
        id: SummaryId,
    },
}

impl Child {
    /// The messages that the piece covers.
    pub fn range(&self) -> SeqRange {
        match self {
            Child::Messages { range } | Child::Summary { range, .. } => *range,
        }
    }

    /// The summary, when the piece is one.
    pub fn summary(&self) -> Option<&SummaryId> {
        match self {
            Child::Messages { .. } => None,
            Child::Summary { id, .. } => Some(id),
        }
    }
}

/// A summary: it covers a contiguous range, and its children partition that range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// `sum_` and the first 16 hex digits of `hash`.
    pub id: SummaryId,
    /// The messages that it stands for.
    pub range: SeqRange,
    /// 1 + the deepest child, messages counting as -1: 0 for a leaf.
    pub depth: u32,
    /// What it was made from, in order.
    pub children: Vec<Child>,
    /// The text.
    pub text: String,
    /// Rendered messages that stand in place of the text (phi-core's one-liners), a JSON list.
    pub messages: Option<RawJson>,
    /// What it costs in a context, rendered, in tokens.
    pub tokens: u64,
    /// What its children cost when it was made, in tokens.
    pub source_tokens: u64,
    /// Written without a model, to be redone when one is available.
    pub provisional: bool,
    /// How it was made.
    pub recipe: Recipe,
    /// The tier that produced it, such as `normal`, `aggressive`, `extractive` or `cut`.
    pub tier: String,
    /// The model that wrote it, if one did.
    pub model: Option<String>,
    /// How it came about, as a JSON object: scores, tiers that were refused, what was left out.
    /// No part of the hash.
    pub meta: Option<RawJson>,
    /// The earliest time of the messages it covers.
    pub earliest_at: Timestamp,
    /// The latest time of the messages it covers.
    pub latest_at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Hash over its children.
    pub source_hash: Hash,
    /// Hash over its children, range, depth, recipe and text.
    pub hash: Hash,
}

/// How much of a log a summary stands for: two figures of our own, and three that have the names
/// and the meaning of the older memory engine's. Kept in [`Summary::meta`] under `figures`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFigures {
    /// Number of messages that it stands for; notes do not count.
    pub messages: u64,
    /// What those cost, in tokens.
    pub message_tokens: u64,
    /// Rows of the messages that it was made from directly, and for each summary that it was made
    /// from one more than that one's own count. A message has a row for its text or its blocks, and
    /// one for each reasoning, tool call and tool result.
    pub descendant_count: u64,
    /// What those rows and summaries cost, in tokens.
    pub descendant_token_count: u64,
    /// What all rows of the messages cost that it stands for, in tokens.
    pub source_message_token_count: u64,
}

impl SummaryFigures {
    /// Adds a message that the summary was made from directly: its rows, and its cost in tokens.
    pub fn add_message(&mut self, rows: u64, tokens: u64) {
        self.messages += 1;
        self.message_tokens += tokens;
        self.descendant_count += rows;
        if rows > 0 {
            self.descendant_token_count += tokens;
            self.source_message_token_count += tokens;
        }
    }

    /// Adds a summary that the summary was made from: its figures, and its cost in tokens.
    pub fn add_summary(&mut self, below: &Self, tokens: u64) {
        self.messages += below.messages;
        self.message_tokens += below.message_tokens;
        self.descendant_count += below.descendant_count + 1;
        self.descendant_token_count += below.descendant_token_count + tokens;
        self.source_message_token_count += below.source_message_token_count;
    }
}

/// The part of [`Summary::meta`] that holds the figures.
#[derive(Deserialize)]
struct FiguresOnly {
    figures: Option<SummaryFigures>,
}

impl Summary {
    /// How much of the log it stands for; `None` where its maker did not say.
    pub fn figures(&self) -> Option<SummaryFigures> {
        let meta = self.meta.as_ref()?;
        let read = serde_json::from_str::<FiguresOnly>(meta.as_str());
        read.ok()?.figures
    }

    /// Whether it was made from messages alone.
    pub fn is_leaf(&self) -> bool {
        self.depth == 0
    }

    /// The kind's name: `leaf` or `condensed`.
    pub fn kind(&self) -> &'static str {
        if self.is_leaf() { "leaf" } else { "condensed" }
    }

    /// What `hash` must be.
    pub fn expected_hash(&self) -> Hash {
        summary_hash(
            self.source_hash,
            self.range,
            self.depth,
            &self.recipe,
            &self.text,
            self.messages.as_ref(),
        )
    }
}

/// Hashes a summary's children: feed the hashes of all messages of each [`Child::Messages`] in
/// order, and the hash of each [`Child::Summary`].
#[derive(Debug)]
pub struct SourceHasher(FieldHasher);

impl Default for SourceHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl SourceHasher {
    /// A hasher before the first child.
    pub fn new() -> Self {
        Self(FieldHasher::new("agent-memory summary source 1"))
    }

    /// Adds one message of a child.
    pub fn message(&mut self, hash: Hash) {
        self.0.number(0);
        self.0.hash(hash);
    }

    /// Adds a child that is a summary.
    pub fn summary(&mut self, hash: Hash) {
        self.0.number(1);
        self.0.hash(hash);
    }

    /// The source hash.
    pub fn finish(self) -> Hash {
        self.0.finish()
    }
}

/// The hash of a summary: H(source hash ‖ range ‖ depth ‖ recipe ‖ text ‖ messages).
pub fn summary_hash(
    source_hash: Hash,
    range: SeqRange,
    depth: u32,
    recipe: &Recipe,
    text: &str,
    messages: Option<&RawJson>,
) -> Hash {
    let mut hasher = FieldHasher::new("agent-memory summary 1");
    hasher.hash(source_hash);
    hasher.number(i64::from(range.first.0));
    hasher.number(i64::from(range.last.0));
    hasher.number(i64::from(depth));
    hasher.bytes(recipe.as_str().as_bytes());
    hasher.bytes(text.as_bytes());
    hasher.optional(messages.map(RawJson::as_str));
    hasher.finish()
}

/// The public id of the summary with this hash.
pub fn summary_id(hash: Hash) -> SummaryId {
    let digits = hash.to_string();
    SummaryId::new(format!("sum_{}", digits.get(..16).unwrap_or(&digits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Seq;

    #[test]
    fn ids_come_from_hashes() {
        let mut source = SourceHasher::new();
        source.message(Hash([7; 32]));
        let source = source.finish();
        let range = SeqRange::new(Seq(1), Seq(3)).unwrap();
        let recipe = Recipe::new("leaf@1");
        let hash = summary_hash(source, range, 0, &recipe, "text", None);
        let id = summary_id(hash);
        assert_eq!(id.as_str().len(), 20);
        assert!(id.as_str().starts_with("sum_"));
        assert_ne!(summary_hash(source, range, 0, &recipe, "text.", None), hash);
        assert_ne!(summary_hash(source, range, 1, &recipe, "text", None), hash);
        let mut as_summary = SourceHasher::new();
        as_summary.summary(Hash([7; 32]));
        assert_ne!(as_summary.finish(), source);
    }
}
