//! Summaries: nodes of a directed acyclic graph over the messages of a log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::{FieldHasher, Hash};
use crate::ids::{RenderingId, SeqRange, SummaryId};
use crate::json::RawJson;
use crate::summary_body::SummaryBody;
use crate::time::Timestamp;

/// Description of how a summary was made, in one line: summarizer, prompt, policy and their versions.
///
/// Two summaries with the same sources and the same recipe are equivalent. A store keeps only one of them, so the model
/// is paid once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipe(String);

impl Recipe {
    /// Creates a recipe from its text: one line that names the summarizer, the prompt, the policy and their versions.
    pub fn new(line: impl Into<String>) -> Self {
        Self(line.into())
    }

    /// Returns the text of the recipe: one line that names the summarizer, the prompt, the policy and their versions.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Intended use of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// The summary replaces its sources.
    #[default]
    Replace,
    /// The summary replaces the beginning of a turn. The end of the turn follows the summary verbatim.
    TurnPrefix,
}

/// Range of messages, or another summary, that is a source or a child of a summary. Sources are the summary's input.
/// Children are the content to which a reader can unfold the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Child {
    /// Messages of the log, verbatim.
    Messages {
        /// Positions of the messages.
        range: SeqRange,
    },
    /// Another summary.
    Summary {
        /// Positions of the messages that the summary covers.
        range: SeqRange,
        /// Id of the summary.
        id: SummaryId,
    },
}

impl Child {
    /// Returns the positions of the messages that this child or source covers.
    pub fn range(&self) -> SeqRange {
        match self {
            Child::Messages { range } | Child::Summary { range, .. } => *range,
        }
    }

    /// Returns the id of the summary; `None` for messages.
    pub fn summary(&self) -> Option<&SummaryId> {
        match self {
            Child::Messages { .. } => None,
            Child::Summary { id, .. } => Some(id),
        }
    }
}

/// A summary of a contiguous range of messages. It was written from its sources, and a reader can unfold it to its
/// children, which cover the same range.
///
/// In most summaries, the children are the sources. A summary that is updated repeatedly has the previous summary among
/// its sources, but only ranges of messages as children, so its depth does not grow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Id of the summary: `sum_` and the first 16 hex digits of `hash`.
    pub id: SummaryId,
    /// Positions of the messages that the summary covers.
    pub range: SeqRange,
    /// Depth of the summary: 0 if all children are messages, otherwise 1 + the depth of its deepest child summary.
    pub depth: u32,
    /// Messages and summaries from which the summary was written, in the order of reading; at least one. Sources may
    /// overlap or be nested. They never end after `range`. Messages that end before it are context: see
    /// [`Summary::is_context`].
    pub sources: Vec<Child>,
    /// Messages and summaries to which a reader can unfold the summary, in order. Together they cover each position of
    /// `range` once.
    pub children: Vec<Child>,
    /// Text of the summary, as ranked lines.
    pub body: SummaryBody,
    /// Messages that a context shows instead of the summary's text, as a JSON list; `None` if the context shows the
    /// text.
    pub messages: Option<RawJson>,
    /// Cost of the summary in a context, in tokens, in the form that `rendering` names.
    pub tokens: u64,
    /// Form of the summary in a context for which `tokens` was counted.
    pub rendering: RenderingId,
    /// Cost of the summary's sources when the summary was made, in tokens.
    pub source_tokens: u64,
    /// Whether the summary was written without a model and should be rewritten when one is available.
    pub provisional: bool,
    /// Recipe by which the summary was made: summarizer, prompt, policy and their versions.
    pub recipe: Recipe,
    /// Name of the method that produced the text: `normal` and `aggressive` ask a model, `extractive` picks sentences,
    /// `cut` shortens the source.
    pub tier: String,
    /// Name of the model that wrote the summary; `None` if it was written without a model.
    pub model: Option<String>,
    /// Data about how the summary was made, as a JSON object: scores, refused attempts, omissions. Not part of the
    /// hash.
    pub meta: Option<RawJson>,
    /// Earliest time of the messages of the summary's sources.
    pub earliest_at: Timestamp,
    /// Latest time of the messages of the summary's sources.
    pub latest_at: Timestamp,
    /// Time at which the summary was made.
    pub created_at: Timestamp,
    /// Hash over the hashes of the summary's sources: see [`SourceHasher`].
    pub source_hash: Hash,
    /// Hash of the summary: see [`Summary::expected_hash`].
    pub hash: Hash,
}

/// Numbers and costs of the messages and summaries that a summary covers. [`Summary::meta`] contains them in the field
/// `figures`. The last three fields have the names and meanings that an older memory engine gave them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFigures {
    /// Number of messages that the summary covers, without notes.
    pub messages: u64,
    /// Cost of the covered messages, in tokens.
    pub message_tokens: u64,
    /// Number of descendants. Each message among the direct sources adds its number of rows, and each summary among
    /// them adds 1 + its own `descendant_count`. A message has one row for its text or its blocks, and one row for each
    /// reasoning, tool call and tool result.
    pub descendant_count: u64,
    /// Cost of all descendants, in tokens. Each message among the direct sources adds its cost if it has rows. Each
    /// summary among them adds its cost and its own `descendant_token_count`.
    pub descendant_token_count: u64,
    /// Cost of all covered messages that have rows, in tokens.
    pub source_message_token_count: u64,
}

impl SummaryFigures {
    /// Adds a message that is a direct source of the summary. `rows` is the number of its rows (see
    /// [`descendant_count`](Self::descendant_count)), and `tokens` is its cost.
    pub fn add_message(&mut self, rows: u64, tokens: u64) {
        self.messages += 1;
        self.message_tokens += tokens;
        self.descendant_count += rows;
        if rows > 0 {
            self.descendant_token_count += tokens;
            self.source_message_token_count += tokens;
        }
    }

    /// Adds a summary that is a direct source of the summary. `below` are the numbers of that source, and `tokens` is
    /// its cost.
    pub fn add_summary(&mut self, below: &Self, tokens: u64) {
        self.messages += below.messages;
        self.message_tokens += below.message_tokens;
        self.descendant_count += below.descendant_count + 1;
        self.descendant_token_count += below.descendant_token_count + tokens;
        self.source_message_token_count += below.source_message_token_count;
    }
}

/// Deserialized form of [`Summary::meta`] that reads only the field `figures`.
#[derive(Deserialize)]
struct FiguresOnly {
    figures: Option<SummaryFigures>,
}

impl Summary {
    /// Creates a summary with its sources as children, and computes its hash and id. The cost is 0 tokens, and the
    /// model, metadata, times and rendering are empty: set these fields afterwards. The hash does not cover them.
    pub fn new(
        range: SeqRange,
        depth: u32,
        sources: Vec<Child>,
        source_hash: Hash,
        recipe: Recipe,
        body: impl Into<SummaryBody>,
    ) -> Self {
        let mut summary = Self {
            id: SummaryId::new(""),
            range,
            depth,
            children: sources.clone(),
            sources,
            body: body.into(),
            messages: None,
            tokens: 0,
            rendering: RenderingId::new(""),
            source_tokens: 0,
            provisional: false,
            recipe,
            tier: "normal".to_owned(),
            model: None,
            meta: None,
            earliest_at: Timestamp::default(),
            latest_at: Timestamp::default(),
            created_at: Timestamp::default(),
            source_hash,
            hash: Hash::ZERO,
        };
        summary.set_hash_and_id();
        summary
    }

    /// Computes the hash and the id from the other fields, and sets both.
    pub fn set_hash_and_id(&mut self) {
        self.hash = self.expected_hash();
        self.id = summary_id(self.hash);
    }

    /// Returns whether a source of the summary is context: messages before [`range`](Self::range), which the writer read
    /// but did not summarize. An erasure of them also erases the summary. They do not count in [`SummaryFigures`].
    pub fn is_context(&self, source: &Child) -> bool {
        source.summary().is_none() && source.range().last < self.range.first
    }

    /// Returns the text of the summary: the lines of the body, joined by line feeds.
    pub fn text(&self) -> &str {
        self.body.text()
    }

    /// Returns the ids of the summaries among the summary's sources, in order.
    pub fn source_summaries(&self) -> impl Iterator<Item = &SummaryId> {
        self.sources.iter().filter_map(Child::summary)
    }

    /// Returns the numbers and costs of the covered messages and summaries, which are recorded in `meta`. `None` if
    /// they are not recorded.
    pub fn figures(&self) -> Option<SummaryFigures> {
        let meta = self.meta.as_ref()?;
        let read = serde_json::from_str::<FiguresOnly>(meta.as_str());
        read.ok()?.figures
    }

    /// Returns whether all children of the summary are messages.
    pub fn is_leaf(&self) -> bool {
        self.depth == 0
    }

    /// Returns the name of the summary's kind: `leaf` or `condensed`.
    pub fn kind(&self) -> &'static str {
        if self.is_leaf() { "leaf" } else { "condensed" }
    }

    /// Computes the hash from the other fields: H(source hash ‖ children ‖ range ‖ depth ‖ recipe ‖ body ‖ messages).
    /// The result equals `hash` unless a field was changed. A child is hashed by its range and id.
    pub fn expected_hash(&self) -> Hash {
        let mut hasher = FieldHasher::new("agent-memory summary 2");
        hasher.hash(self.source_hash);
        hasher.number(i64::try_from(self.children.len()).unwrap_or(i64::MAX));
        for child in &self.children {
            hasher.range(child.range());
            hasher.optional(child.summary().map(SummaryId::as_str));
        }
        hasher.range(self.range);
        hasher.number(i64::from(self.depth));
        hasher.bytes(self.recipe.as_str().as_bytes());
        self.body.add_to(&mut hasher);
        hasher.optional(self.messages.as_ref().map(RawJson::as_str));
        hasher.finish()
    }
}

/// Computes the hash over a summary's sources. Add the sources in order: for [`Child::Messages`] the hash of each
/// message in order, for [`Child::Summary`] the hash of the summary.
#[derive(Debug)]
pub struct SourceHasher(FieldHasher);

impl Default for SourceHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl SourceHasher {
    /// Creates a hasher without sources.
    pub fn new() -> Self {
        Self(FieldHasher::new("agent-memory summary source 1"))
    }

    /// Adds the hash of one message of a source.
    pub fn message(&mut self, hash: Hash) {
        self.0.number(0);
        self.0.hash(hash);
    }

    /// Adds the hash of a summary that is a source.
    pub fn summary(&mut self, hash: Hash) {
        self.0.number(1);
        self.0.hash(hash);
    }

    /// Returns the hash over all added sources.
    pub fn finish(self) -> Hash {
        self.0.finish()
    }
}

/// Returns the id of the summary with this hash.
pub fn summary_id(hash: Hash) -> SummaryId {
    let digits = hash.to_string();
    SummaryId::new(format!("sum_{}", digits.get(..16).unwrap_or(&digits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Seq;
    use crate::summary_body::RankedLine;

    fn summary() -> Summary {
        let mut source = SourceHasher::new();
        source.message(Hash([7; 32]));
        let range = SeqRange::new(Seq(1), Seq(3)).unwrap();
        let sources = vec![Child::Messages { range }];
        let recipe = Recipe::new("leaf@1");
        Summary::new(range, 0, sources, source.finish(), recipe, "one\ntwo")
    }

    #[test]
    fn ids_come_from_hashes() {
        let id = summary().id;
        assert_eq!(id.as_str().len(), 20);
        assert!(id.as_str().starts_with("sum_"));
        let mut as_summary = SourceHasher::new();
        as_summary.summary(Hash([7; 32]));
        assert_ne!(as_summary.finish(), summary().source_hash);
    }

    #[test]
    fn the_hash_covers_the_content_of_a_summary_and_not_its_cost() {
        let line = |text, rank| RankedLine { text, rank };
        let (first, rest) = (SeqRange::single(Seq(1)), SeqRange::new(Seq(2), Seq(3)));
        let children = [first, rest.unwrap()].map(|range| Child::Messages { range });
        let over = Child::Summary {
            range: summary().range,
            id: SummaryId::new("sum_0"),
        };
        let changes: [&dyn Fn(&mut Summary); 8] = [
            &|s| s.source_hash = Hash::ZERO,
            &|s| s.children = children.to_vec(),
            &|s| s.children = vec![over.clone()],
            &|s| s.range = SeqRange::new(Seq(1), Seq(4)).unwrap(),
            &|s| s.depth = 1,
            &|s| s.recipe = Recipe::new("leaf@2"),
            &|s| s.body = SummaryBody::new("one\ntwo."),
            &|s| s.body = SummaryBody::ranked([line("one", 1), line("two", 2)]),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut changed = summary();
            change(&mut changed);
            assert_ne!(changed.expected_hash(), summary().hash, "change {index}");
        }
        let mut same = summary();
        same.tokens = 9;
        same.rendering = RenderingId::new("other@1");
        assert_eq!(same.expected_hash(), summary().hash);
    }
}
