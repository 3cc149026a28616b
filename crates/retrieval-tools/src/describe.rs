//! Answer of `describe`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use memory_model::{RawJson, Seq, Summary, SummaryFigures, SummaryId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::arguments::Arguments;
use crate::room::{Room, longest};
use crate::text::{fenced, moment, quoted, rfc3339, short};

/// Arguments of `describe`, the tool `memory_describe`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DescribeArgs {
    /// The summary's id, such as sum_0123456789abcdef.
    pub(crate) summary_id: String,
}

impl Arguments for DescribeArgs {
    const NAME: &'static str = "memory_describe";
    const TITLE: &'static str = "Describe a summary";
    const DESCRIPTION: &'static str = "Inspect a summary: its full text, the messages it covers, the summaries that \
        contain it and those it was made from.";
}

/// Answer of `describe`: the text of a summary, its token counts, its parents and children, and the record of how it
/// was made. Serializes to JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// Id of the described summary.
    pub summary_id: SummaryId,
    /// `leaf` if all children of the summary are messages, otherwise `condensed`.
    pub kind: &'static str,
    /// Depth of the summary in the tree of summaries. 0 for a leaf summary. Otherwise one more than the depth of its
    /// deepest child.
    pub depth: u32,
    /// Position of the first message that the summary covers.
    pub first: Seq,
    /// Position of the last message that the summary covers, inclusive.
    pub last: Seq,
    /// Number of tokens of the summary in a context.
    pub tokens: u64,
    /// Number of tokens of the messages and summaries from which the summary was made, at the time of its creation.
    pub source_tokens: u64,
    /// Number of the messages that the summary covers and their cost, and related numbers under the names of an older
    /// memory engine. `None` if these numbers were not recorded with the summary.
    #[serde(flatten)]
    pub figures: Option<SummaryFigures>,
    /// Text of the summary. May be only its beginning if [`clipped`](Self::clipped) is `true`.
    pub content: String,
    /// Whether the text, a list of ids or `meta` was shortened or left out because of the limit
    /// [`RetrievalLimits::describe_tokens`](crate::RetrievalLimits::describe_tokens).
    pub clipped: bool,
    /// Ids of the summaries that were made from this summary or contain it as a child.
    pub parents: Vec<SummaryId>,
    /// Ids of the summaries from which this summary was made, in order. Empty if it was made from messages alone.
    pub sources: Vec<SummaryId>,
    /// Ids of the summaries among the children of this summary, in order. `expand` shows the children. Empty for a leaf
    /// summary.
    pub children: Vec<SummaryId>,
    /// Whether the summary was written without a model, and is to be rewritten when a model is available.
    pub provisional: bool,
    /// Name of the summarization method that wrote the summary, such as `normal` or `extractive`.
    pub tier: String,
    /// Name of the model that wrote the summary; `None` if no model wrote it.
    pub model: Option<String>,
    /// One line that identifies how the summary was made: the summarizer, its methods and prompts, and the token
    /// estimator.
    pub recipe: String,
    /// Record of how the summary was made, as a JSON object: target and actual number of tokens, scores, refused
    /// attempts with the reasons, and omissions. `None` without a record, or if it was left out because of a limit.
    pub meta: Option<RawJson>,
    /// Time at which the summary was made.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
    /// Earliest time of the messages that the summary covers; `null` in JSON if none is known.
    #[serde(serialize_with = "moment")]
    pub earliest_at: Timestamp,
    /// Latest time of the messages that the summary covers; `null` in JSON if none is known.
    #[serde(serialize_with = "moment")]
    pub latest_at: Timestamp,
}

/// Returns the text of a summary. For a summary without text: the messages that a context shows in its place, as JSON.
pub(crate) fn content(summary: &Summary) -> &str {
    match &summary.messages {
        Some(messages) if summary.text().is_empty() => messages.as_str(),
        _ => summary.text(),
    }
}

impl Description {
    pub(crate) fn new(summary: Summary, parents: Vec<SummaryId>) -> Self {
        Self {
            kind: summary.kind(),
            depth: summary.depth,
            first: summary.range.first,
            last: summary.range.last,
            tokens: summary.tokens,
            source_tokens: summary.source_tokens,
            figures: summary.figures(),
            content: content(&summary).to_owned(),
            clipped: false,
            parents,
            sources: summary.source_summaries().cloned().collect(),
            children: summary
                .children
                .iter()
                .filter_map(|child| child.summary().cloned())
                .collect(),
            provisional: summary.provisional,
            tier: summary.tier,
            model: summary.model,
            recipe: summary.recipe.as_str().to_owned(),
            meta: summary.meta,
            created_at: summary.created_at,
            earliest_at: summary.earliest_at,
            latest_at: summary.latest_at,
            summary_id: summary.id,
        }
    }

    /// Shortens the answer until it fits in the room. `meta` and the lists of ids are reduced first, if they take more
    /// than half of the room. Then the content is cut.
    pub(crate) fn within(mut self, room: &Room<'_>) -> Self {
        let fits = |room: &Room<'_>, answer: &Self| room.holds(&answer.to_text());
        if fits(room, &self) {
            return self;
        }
        self.clipped = true;
        let content = std::mem::take(&mut self.content);
        let half = room.without(2);
        if !fits(&half, &self) {
            self.meta = None;
        }
        while !fits(&half, &self)
            && self.parents.len() + self.sources.len() + self.children.len() > 0
        {
            for ids in [&mut self.parents, &mut self.sources, &mut self.children] {
                ids.truncate(ids.len() / 2);
            }
        }
        let end = longest(&content, |cut| {
            cut.clone_into(&mut self.content);
            fits(room, &self)
        });
        content
            .get(..end)
            .unwrap_or_default()
            .clone_into(&mut self.content);
        self
    }

    /// Returns the description as text for a model.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let times = match (self.earliest_at.known(), self.latest_at.known()) {
            (Some(earliest), Some(latest)) => format!(", {earliest} to {latest}"),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "{}: {} summary of depth {} over messages:{}-{}{}",
            self.summary_id, self.kind, self.depth, self.first, self.last, times,
        );
        let _ = write!(
            out,
            "{} tokens made from {}, tier {}",
            self.tokens,
            self.source_tokens,
            short(&self.tier)
        );
        if let Some(model) = &self.model {
            let _ = write!(out, ", model {}", short(model));
        }
        let provisional = if self.provisional {
            ", provisional: written without a model"
        } else {
            ""
        };
        let _ = writeln!(out, ", made {}{provisional}", self.created_at);
        if let Some(figures) = &self.figures {
            let _ = writeln!(
                out,
                "stands for {} messages of {} tokens; descendant_count {}, descendant_token_count \
                 {}, source_message_token_count {}",
                figures.messages,
                figures.message_tokens,
                figures.descendant_count,
                figures.descendant_token_count,
                figures.source_message_token_count
            );
        }
        let _ = writeln!(out, "recipe: {}", quoted(&self.recipe));
        let meta = self.meta.as_ref().map(RawJson::as_str);
        let meta: BTreeMap<String, &RawValue> = meta
            .and_then(|meta| serde_json::from_str(meta).ok())
            .unwrap_or_default();
        for (name, value) in meta.iter().filter(|(name, _)| *name != "figures") {
            let _ = writeln!(out, "{name}: {}", one_line(value.get()));
        }
        if self.clipped {
            out.push_str("some of this is left out: it is longer than this host allows\n");
        }
        let _ = writeln!(out, "parents: {}", list(&self.parents, "nothing"));
        let _ = writeln!(out, "made from: {}", list(&self.sources, "messages"));
        if self.children != self.sources {
            let _ = writeln!(out, "unfolds to: {}", list(&self.children, "messages"));
        }
        out.push_str("content:\n");
        fenced(&mut out, &self.content);
        let _ = writeln!(
            out,
            "To read what it stands for, call memory_expand with summary_id {}.",
            short(self.summary_id.as_str())
        );
        out
    }
}

fn list(ids: &[SummaryId], none: &str) -> String {
    if ids.is_empty() {
        return none.to_owned();
    }
    let ids: Vec<&str> = ids.iter().map(SummaryId::as_str).collect();
    ids.join(", ")
}

/// Returns a JSON text on one line.
fn one_line(json: &str) -> String {
    json.split(['\n', '\r']).map(str::trim).collect()
}
