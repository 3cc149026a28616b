//! Checks of summaries: they are unchanged, made from existing sources, and contain no cycles.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    Accounting, Child, ConversationId, SeqRange, SourceHasher, Summary, SummaryId, summary_id,
};

use super::scope::{Facts, Scope};
use crate::erasure::{ERASED, Erasures};
use crate::error::{ErrorKind, Result};
use crate::store::Store;
use crate::types::Conversation;
use crate::violation::{Report, ViolationKind};

/// Reads all summaries that a conversation itself made.
pub(super) async fn load<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    report: &mut Report,
) -> Result<BTreeMap<SummaryId, Summary>> {
    let mut summaries: BTreeMap<SummaryId, Summary> = BTreeMap::new();
    let mut after: Option<SummaryId> = None;
    loop {
        let page = match store.own_summaries(conversation, after.as_ref(), 256).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let message =
                    format!("conversation {conversation}: its summaries cannot be read: {error}");
                report.add(ViolationKind::Other, message);
                return Ok(summaries);
            }
            page => page?,
        };
        let before = summaries.len();
        for summary in page.items {
            let id = summary.id.clone();
            if summaries.insert(id.clone(), summary).is_some() {
                let message = format!("conversation {conversation}: {id} is there twice");
                report.add(ViolationKind::Other, message);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(summaries);
        }
        if summaries.len() == before {
            let message =
                format!("conversation {conversation}: the list of summaries does not end");
            report.add(ViolationKind::Other, message);
            return Ok(summaries);
        }
    }
}

pub(super) fn verify(
    conversation: &Conversation,
    summaries: &BTreeMap<SummaryId, Summary>,
    scope: &Scope<'_>,
    rules: Option<&dyn Accounting>,
    erasures: &Erasures,
    report: &mut Report,
) {
    let key = &conversation.key;
    let erased = erased(summaries, erasures);
    for (id, summary) in summaries {
        report.summaries += 1;
        // Of an erased summary only the hash, the range, the depth and the cost are left to check.
        let erased = erased.contains(id);
        if erasures.summaries.contains(id) && summary.text() != ERASED {
            let message = format!("{key}: the words of {id} were erased, and are back");
            report.add(ViolationKind::SummaryChanged, message);
        }
        let changed = !erased && summary.hash != summary.expected_hash();
        if changed || *id != summary_id(summary.hash) {
            let message = format!("{key}: {id} was changed: its hash or id differs");
            report.add(ViolationKind::SummaryChanged, message);
        }
        verify_children(key.as_str(), conversation, summary, scope, report);
        verify_sources(key.as_str(), conversation, summary, scope, report);
        // The cost of a summary in an unknown rendering cannot be recomputed.
        if let Some(rules) = rules.filter(|rules| !erased && rules.rendering() == summary.rendering)
        {
            let tokens = rules.summary(summary);
            if tokens != summary.tokens {
                let message = format!(
                    "{key}: {id} is recorded with {} tokens, but {} gives {tokens}",
                    summary.tokens,
                    rules.estimator_id()
                );
                report.add(ViolationKind::EstimatorMixed, message);
            }
        }
    }
}

/// Returns the summaries of a conversation that are recorded as erased and were made from erased entries, directly or
/// through other summaries. Without such an entry the words of a summary were lost, not erased.
fn erased<'s>(
    summaries: &'s BTreeMap<SummaryId, Summary>,
    erasures: &Erasures,
) -> BTreeSet<&'s SummaryId> {
    let is_recorded = |id: &SummaryId| erasures.summaries.contains(id);
    let mut erased = BTreeSet::new();
    loop {
        let before = erased.len();
        for (id, summary) in summaries {
            let is_erased = |below: &Child| {
                let range = below.range();
                let mut entries = erasures.entries.iter();
                entries.any(|erasure| erasure.range.intersect(&range).is_some())
                    || below
                        .summary()
                        .is_some_and(|id| match summaries.contains_key(id) {
                            true => erased.contains(id),
                            // The check of the ancestor that made it has found its erased entry.
                            false => is_recorded(id),
                        })
            };
            let mut below = summary.children.iter().chain(&summary.sources);
            if is_recorded(id) && summary.text() == ERASED && below.any(is_erased) {
                erased.insert(id);
            }
        }
        if erased.len() == before {
            return erased;
        }
    }
}

/// Checks that the children of a summary exist and cover exactly its range, and that the summary's depth is one more
/// than that of the deepest child.
fn verify_children(
    key: &str,
    conversation: &Conversation,
    summary: &Summary,
    scope: &Scope<'_>,
    report: &mut Report,
) {
    let id = &summary.id;
    let mut next = summary.range.first;
    let mut whole = true;
    let mut deepest = None;
    for child in &summary.children {
        let range = child.range();
        if SeqRange::new(range.first, range.last).is_none() {
            whole = false;
            let message = format!("{key}: the child {range} of {id} is not a range");
            report.add(ViolationKind::ChildRangeWrong, message);
            continue;
        }
        if range.first != next || range.last > conversation.head {
            whole = false;
            let message =
                format!("{key}: the child {range} of {id} does not follow the one before");
            report.add(ViolationKind::ChildRangeWrong, message);
        }
        next = range.last.next();
        match named(key, summary, child, "child", scope, report) {
            ReferenceTarget::Messages => {}
            ReferenceTarget::Summary(known) => deepest = deepest.max(Some(known.depth)),
            ReferenceTarget::Missing => whole = false,
        }
    }
    if next != summary.range.last.next() {
        whole = false;
        let message = format!(
            "{key}: the children of {id} end at {}, not at {}",
            next.prev(),
            summary.range.last
        );
        report.add(ViolationKind::ChildRangeWrong, message);
    }
    let depth = deepest.map_or(0, |deepest| deepest.saturating_add(1));
    // If a child is missing, the summary may be deeper than its other children give.
    if summary.depth < depth || (whole && summary.depth != depth) {
        let message = format!(
            "{key}: {id} has depth {}, but its children give {depth}: summaries must not contain \
             themselves",
            summary.depth
        );
        report.add(ViolationKind::Cycle, message);
    }
}

/// Checks that the sources of a summary exist and have the recorded hash and cost.
fn verify_sources(
    key: &str,
    conversation: &Conversation,
    summary: &Summary,
    scope: &Scope<'_>,
    report: &mut Report,
) {
    let id = &summary.id;
    let mut hasher = SourceHasher::new();
    let mut cost = 0u64;
    let mut whole = !summary.sources.is_empty();
    for source in &summary.sources {
        let range = source.range();
        let is_range = SeqRange::new(range.first, range.last).is_some();
        if !is_range || range.last > summary.range.last.min(conversation.head) {
            whole = false;
            let message = format!(
                "{key}: the source {range} of {id} is not a range up to {}",
                summary.range.last
            );
            report.add(ViolationKind::SourceChanged, message);
            continue;
        }
        let known = if summary.sources == summary.children {
            // A missing source was already reported as a missing child.
            named(
                key,
                summary,
                source,
                "source",
                scope,
                &mut Report::default(),
            )
        } else {
            named(key, summary, source, "source", scope, report)
        };
        match known {
            ReferenceTarget::Messages => {
                cost = cost.saturating_add(scope.cost(range));
                match scope.hashes(range) {
                    Some(hashes) => hashes.into_iter().for_each(|hash| hasher.message(hash)),
                    None => whole = false,
                }
            }
            ReferenceTarget::Summary(known) => {
                cost = cost.saturating_add(known.tokens);
                hasher.summary(known.hash);
            }
            ReferenceTarget::Missing => whole = false,
        }
    }
    if summary.sources.is_empty() || (whole && hasher.finish() != summary.source_hash) {
        let message = format!("{key}: the sources of {id} were changed after it was made");
        report.add(ViolationKind::SourceChanged, message);
    }
    if whole && cost != summary.source_tokens {
        let message = format!(
            "{key}: the sources of {id} are recorded with {} tokens, but cost {cost}",
            summary.source_tokens
        );
        report.add(ViolationKind::SumWrong, message);
    }
}

/// Messages or summary to which a child or source refers.
enum ReferenceTarget<'s> {
    Messages,
    Summary(&'s Facts),
    Missing,
}

/// Looks up a child or source of a summary, and reports a child or source that is missing or covers another range.
fn named<'s>(
    key: &str,
    summary: &Summary,
    named: &Child,
    role: &str,
    scope: &'s Scope<'_>,
    report: &mut Report,
) -> ReferenceTarget<'s> {
    let Child::Summary { range, id } = named else {
        return ReferenceTarget::Messages;
    };
    let of = &summary.id;
    let Some(known) = scope.summary(id) else {
        let message = format!("{key}: the {role} {id} of {of} is not in this conversation");
        report.add(ViolationKind::ForeignLineage, message);
        return ReferenceTarget::Missing;
    };
    if known.range != *range {
        let message = format!(
            "{key}: {of} names {id} as its {role} over {range}, but {id} covers {}",
            known.range
        );
        report.add(ViolationKind::ChildRangeWrong, message);
    }
    ReferenceTarget::Summary(known)
}
