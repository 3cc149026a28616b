//! What `describe` answers.

use std::fmt::Write as _;

use memory_model::{Seq, Summary, SummaryId, Timestamp};
use serde::Serialize;

use crate::text::{fenced, rfc3339, short};

/// A summary's content, figures and lineage. It serialises to the JSON that scripts rely on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// Which summary.
    pub summary_id: SummaryId,
    /// `leaf` when it was made from messages alone, else `condensed`.
    pub kind: &'static str,
    /// 0 for a leaf, else one more than its deepest constituent.
    pub depth: u32,
    /// The first message it covers.
    pub first: Seq,
    /// The last message it covers, inclusive.
    pub last: Seq,
    /// What it costs in a context, in tokens.
    pub tokens: u64,
    /// What it was made from cost when it was made, in tokens.
    pub source_tokens: u64,
    /// Its text.
    pub content: String,
    /// The summaries that were made from this one.
    pub containers: Vec<SummaryId>,
    /// The summaries that this one was made from, in order; none for a leaf.
    pub constituents: Vec<SummaryId>,
    /// Whether it was written without a model, to be redone when one is available.
    pub provisional: bool,
    /// How it was made, such as `normal` or `extractive`.
    pub tier: String,
    /// The model that wrote it, if one did.
    pub model: Option<String>,
    /// When it was made.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
    /// The earliest time of the messages it covers.
    #[serde(serialize_with = "rfc3339")]
    pub earliest_at: Timestamp,
    /// The latest time of the messages it covers.
    #[serde(serialize_with = "rfc3339")]
    pub latest_at: Timestamp,
}

/// A summary's text, or the messages that it is rendered as when it has no text.
pub(crate) fn content(summary: &Summary) -> &str {
    match &summary.messages {
        Some(messages) if summary.text.is_empty() => messages.as_str(),
        _ => &summary.text,
    }
}

impl Description {
    pub(crate) fn new(summary: Summary, containers: Vec<SummaryId>) -> Self {
        Self {
            kind: summary.kind(),
            depth: summary.depth,
            first: summary.range.first,
            last: summary.range.last,
            tokens: summary.tokens,
            source_tokens: summary.source_tokens,
            content: content(&summary).to_owned(),
            containers,
            constituents: summary
                .children
                .iter()
                .filter_map(|child| child.summary().cloned())
                .collect(),
            provisional: summary.provisional,
            tier: summary.tier,
            model: summary.model,
            created_at: summary.created_at,
            earliest_at: summary.earliest_at,
            latest_at: summary.latest_at,
            summary_id: summary.id,
        }
    }

    /// The answer as a model reads it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}: {} summary of depth {} over messages:{}-{}, {} to {}",
            self.summary_id,
            self.kind,
            self.depth,
            self.first,
            self.last,
            self.earliest_at,
            self.latest_at,
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
        let _ = writeln!(out, "contained in: {}", list(&self.containers, "nothing"));
        let _ = writeln!(out, "made from: {}", list(&self.constituents, "messages"));
        out.push_str("content:\n");
        fenced(&mut out, &self.content);
        let _ = writeln!(
            out,
            "To read what it was made from, call memory_expand with summary_id {}.",
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
