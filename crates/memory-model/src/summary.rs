//! Summaries: nodes of a DAG over the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::{FieldHasher, Hash};
use crate::ids::{SeqRange, SummaryId};
use crate::json::RawJson;
use crate::time::Timestamp;

/// Recipe of a summary: summarizer, prompt, policy and their versions, as one canonical line.
///
/// Two summaries of the same sources by the same recipe are the same: a store keeps one and pays once.
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

/// What a summary will be used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// It takes the place of its sources.
    #[default]
    Replace,
    /// It takes the place of a turn's beginning; the end of the turn stays in view behind it.
    TurnPrefix,
}

/// A child of a summary: a range of messages, or another summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Child {
    /// Messages, verbatim.
    Messages {
        /// Positions of the messages.
        range: SeqRange,
    },
    /// Another summary.
    Summary {
        /// Positions of the messages that it covers.
        range: SeqRange,
        /// Id of the summary.
        id: SummaryId,
    },
}

impl Child {
    /// Positions of the messages that the child covers.
    pub fn range(&self) -> SeqRange {
        match self {
            Child::Messages { range } | Child::Summary { range, .. } => *range,
        }
    }

    /// Id of the summary; `None` for messages.
    pub fn summary(&self) -> Option<&SummaryId> {
        match self {
            Child::Messages { .. } => None,
            Child::Summary { id, .. } => Some(id),
        }
    }
}

/// A summary: it covers a contiguous range, and its children partition that range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// `sum_` and the first 16 hex digits of `hash`.
    pub id: SummaryId,
    /// Positions of the messages that it covers.
    pub range: SeqRange,
    /// 0 for a summary of messages alone, else 1 + the depth of its deepest child summary.
    pub depth: u32,
    /// Children, in order; they partition `range`.
    pub children: Vec<Child>,
    /// Text of the summary.
    pub text: String,
    /// Rendered messages that replace the text in a context, as a JSON list.
    pub messages: Option<RawJson>,
    /// Cost of the rendered summary in a context, in tokens.
    pub tokens: u64,
    /// Cost of its children when it was made, in tokens.
    pub source_tokens: u64,
    /// Whether it was written without a model and should be rewritten when one is available.
    pub provisional: bool,
    /// Recipe that it was made by.
    pub recipe: Recipe,
    /// Tier that produced it, such as `normal`, `aggressive`, `extractive` or `cut`.
    pub tier: String,
    /// Model that wrote it; `None` without a model.
    pub model: Option<String>,
    /// Facts about its making, as a JSON object: scores, refused tiers, omissions. Not part of the
    /// hash.
    pub meta: Option<RawJson>,
    /// Earliest time of the messages that it covers.
    pub earliest_at: Timestamp,
    /// Latest time of the messages that it covers.
    pub latest_at: Timestamp,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Hash over its children.
    pub source_hash: Hash,
    /// Hash over its children, range, depth, recipe and text.
    pub hash: Hash,
}

/// Size of what a summary stands for: two figures of this model, and three with the names and
/// meanings of the older memory engine. Kept in [`Summary::meta`] under `figures`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFigures {
    /// Number of messages that it covers, without notes.
    pub messages: u64,
    /// Cost of those messages, in tokens.
    pub message_tokens: u64,
    /// Rows of the messages that it was made from directly, and for each summary that it was made
    /// from one more than that one's own count. A message has a row for its text or its blocks, and
    /// one for each reasoning, tool call and tool result.
    pub descendant_count: u64,
    /// Cost of those rows and summaries, in tokens.
    pub descendant_token_count: u64,
    /// Cost of all rows of the covered messages, in tokens.
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

/// The field of [`Summary::meta`] that holds the figures.
#[derive(Deserialize)]
struct FiguresOnly {
    figures: Option<SummaryFigures>,
}

impl Summary {
    /// Returns the figures in `meta`; `None` if there are none.
    pub fn figures(&self) -> Option<SummaryFigures> {
        let meta = self.meta.as_ref()?;
        let read = serde_json::from_str::<FiguresOnly>(meta.as_str());
        read.ok()?.figures
    }

    /// Whether all its children are messages.
    pub fn is_leaf(&self) -> bool {
        self.depth == 0
    }

    /// Name of the kind: `leaf` or `condensed`.
    pub fn kind(&self) -> &'static str {
        if self.is_leaf() { "leaf" } else { "condensed" }
    }

    /// Computes the hash from the other fields; a sound summary has it in `hash`.
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
    /// Creates a hasher without children.
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

    /// Returns the source hash.
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
