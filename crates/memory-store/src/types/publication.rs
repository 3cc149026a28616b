//! A publish of spans to a view, its outcome, and its record in the view's history.

use memory_model::{
    Hash, SeqRange, Span, SpanBody, SpanStart, Summary, Timestamp, ViewName, ViewVersion,
};

use super::lease::Fence;

/// Arguments for replacing spans of a view, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Name of the view (the compacted log).
    pub view: ViewName,
    /// Range of positions to replace. It must lie in the log.
    pub at: SeqRange,
    /// Spans that the view (the compacted log) must still have over the range. If the view has others, the publish is
    /// lost.
    pub expect: Vec<Span>,
    /// New spans of the view (the compacted log), which cover exactly the range `at`.
    pub spans: Vec<Span>,
    /// Summaries that the new spans refer to and that the store may not have yet.
    pub summaries: Vec<Summary>,
    /// Fence of a lease that must still be valid. A successful publish completes the lease's job. `None` publishes
    /// without a lease.
    pub fence: Option<Fence>,
    /// The conversation's [`erasures`](super::Conversation::erasures) before the sources of the summaries were read. If
    /// words were erased later, the publish is refused with [`Published::Outdated`].
    pub erasures: u64,
    /// Time of the publish, recorded by the store.
    pub now: Timestamp,
}

/// Outcome of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The spans were replaced. The view (the compacted log) now has this version.
    Done(ViewVersion),
    /// The view (the compacted log) already had the new spans, at this version. The store did not change.
    Already(ViewVersion),
    /// The view (the compacted log) had other spans than expected. The store did not change.
    Lost {
        /// Spans that the view has over the range.
        found: Vec<Span>,
    },
    /// Words of the conversation were erased after the sources of the summaries were read. The store did not change.
    Outdated,
}

/// Record of one publish in a view's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Version of the view (the compacted log) that the publish created.
    pub version: ViewVersion,
    /// Range of positions that the publish replaced.
    pub at: SeqRange,
    /// Spans that the publish removed, as rows of the view's table of spans.
    pub removed: Vec<SpanStart>,
    /// Spans that the publish added, as rows of the view's table of spans.
    pub added: Vec<SpanStart>,
    /// Time of the publish.
    pub created_at: Timestamp,
    /// Chain hash over this publication and all earlier publications of the view (the compacted log). See
    /// [`publication_hash`].
    pub hash: Hash,
}

/// Returns a view's chain hash after a publication: H(`before` ‖ version ‖ range ‖ removed span starts ‖ added span
/// starts). `before` is the chain hash before the publication.
pub fn publication_hash(
    before: Hash,
    version: ViewVersion,
    at: SeqRange,
    removed: &[SpanStart],
    added: &[SpanStart],
) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication 1");
    hasher.hash(before);
    hasher.number(i64::try_from(version.0).unwrap_or(i64::MAX));
    hasher.number(i64::from(at.first.0));
    hasher.number(i64::from(at.last.0));
    for rows in [removed, added] {
        hasher.number(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        for row in rows {
            hasher.number(i64::from(row.first.0));
            let (kind, text, depth) = match &row.body {
                SpanBody::Raw => ("raw", None, -1),
                SpanBody::Summary { id, depth } => {
                    ("summary", Some(id.as_str()), i64::from(*depth))
                }
                SpanBody::Trimmed(policy) => ("trimmed", Some(policy.as_str()), -1),
                SpanBody::Omitted => ("omitted", None, -1),
            };
            hasher.bytes(kind.as_bytes());
            hasher.optional(text);
            hasher.number(depth);
            hasher.number(i64::try_from(row.tokens).unwrap_or(i64::MAX));
        }
    }
    hasher.finish()
}

/// Returns the hash over the stored record of a publication: H(its chain hash ‖ its time). [`publication_hash`] does
/// not cover the time.
pub fn publication_record_hash(hash: Hash, at: Timestamp) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication record 1");
    hasher.hash(hash);
    hasher.number(at.0);
    hasher.finish()
}
