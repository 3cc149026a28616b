//! What `describe` answers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use memory_model::{Accounting, RawJson, Seq, Summary, SummaryFigures, SummaryId, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::piece::Payload;
use crate::text::{fenced, quoted, rfc3339, short};

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
    /// How many messages it stands for and what they cost, and the figures under the names of the
    /// older memory engine; `None` for a summary that was made without them.
    #[serde(flatten)]
    pub figures: Option<SummaryFigures>,
    /// Its text, or the beginning of it.
    pub content: String,
    /// Whether the host's ceiling cut the text, the lists of ids or `meta`.
    pub clipped: bool,
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
    /// Summarizer, ladder, prompts and estimator, as one line.
    pub recipe: String,
    /// How it came about, as a JSON object: target and cost, scores, the tiers that were refused
    /// and why, what was left out.
    pub meta: Option<RawJson>,
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
            figures: summary.figures(),
            content: content(&summary).to_owned(),
            clipped: false,
            containers,
            constituents: summary
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

    /// Cuts what may be long until the text costs at most `most` tokens: first `meta` and the lists
    /// of ids are left out where they take more than half, then the content is cut.
    pub(crate) fn within(mut self, most: u64, accounting: &dyn Accounting) -> Self {
        if most == u64::MAX || accounting.text(&self.to_text()) <= most {
            return self;
        }
        self.clipped = true;
        let content = std::mem::take(&mut self.content);
        let around = |answer: &Self| accounting.text(&answer.to_text());
        if around(&self) > most / 2 {
            self.meta = None;
        }
        while around(&self) > most / 2 && self.containers.len() + self.constituents.len() > 0 {
            self.containers.truncate(self.containers.len() / 2);
            self.constituents.truncate(self.constituents.len() / 2);
        }
        // Fences and seams cost a little.
        let mut room = most.saturating_sub(around(&self));
        let payload = Payload::of_text(&content);
        while room > 0 {
            let end = payload.fit(accounting, 0, room);
            payload.slice(0, end).clone_into(&mut self.content);
            let over = around(&self).saturating_sub(most);
            if over == 0 {
                return self;
            }
            room = room.saturating_sub(over);
        }
        self.content.clear();
        self
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

/// JSON on one line.
fn one_line(json: &str) -> String {
    json.split(['\n', '\r']).map(str::trim).collect()
}
