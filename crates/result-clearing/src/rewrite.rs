//! Jobs of the inner planner, over the view as it really is.

use std::collections::BTreeMap;

use compaction_plan::{Job, Work};
use memory_model::{Accounting, Seq, SeqRange, Span, SpanBody, summary_overhead};

use crate::cleared::Cleared;

/// Least length of a summary that is worth making, in tokens: anna's minimum target.
const LEAST_SUMMARY: u64 = 10;

/// Returns the job over the spans that the view holds; `None` where it would cut a cleared group, or would not
/// make the view cheaper.
pub(crate) fn rewrite(
    mut job: Job,
    cleared: &BTreeMap<Seq, Cleared>,
    accounting: &dyn Accounting,
) -> Option<Job> {
    let mut saved = 0_u64;
    let mut expect = Vec::with_capacity(job.expect.len());
    for span in job.expect {
        let range = span.closed_range()?;
        if span.body != SpanBody::Raw {
            expect.push(span);
            continue;
        }
        let from = cleared.range(..range.first).next_back();
        let from = from.filter(|(_, group)| group.range.last >= range.first);
        let groups = from
            .into_iter()
            .chain(cleared.range(range.first..=range.last))
            .map(|(_, group)| group);
        let (mut next, mut raw_tokens) = (range.first, span.tokens);
        for group in groups {
            if !range.covers(&group.range) {
                return None;
            }
            if let Some(raw) = SeqRange::new(next, group.range.first.prev()) {
                expect.push(Span::closed(raw, SpanBody::Raw, 0));
            }
            expect.push(group.span.clone());
            next = group.range.last.next();
            raw_tokens = raw_tokens.saturating_sub(group.raw_tokens);
            saved += group.raw_tokens.saturating_sub(group.span.tokens);
        }
        if let Some(raw) = SeqRange::new(next, range.last) {
            // Who applies a job compares ranges and bodies, not costs: the last piece has those of all.
            expect.push(Span::closed(raw, SpanBody::Raw, raw_tokens));
        }
    }
    job.expect = expect;
    if saved == 0 {
        return Some(job);
    }
    let raw_tokens = job.source_tokens;
    job.source_tokens = raw_tokens.saturating_sub(saved);
    let shown = job.source_tokens;
    if let Work::Replace(spans) = &job.work {
        let after: u64 = spans.iter().map(|span| span.tokens).sum();
        return (after < shown).then_some(job);
    }
    let depth = job.depth().unwrap_or(0);
    let overhead = summary_overhead(accounting, job.range, depth, job.children());
    // The rule of handoffs: a summary that could save less than half is not worth a call.
    if shown < overhead.saturating_add(LEAST_SUMMARY).saturating_mul(2) {
        return None;
    }
    let most = shown.saturating_sub(overhead).saturating_sub(1);
    let mut request = job.request.take().unwrap_or_default();
    if request.max_tokens == 0 || request.max_tokens > most {
        request.max_tokens = most;
    }
    // A ladder aims at a third of the messages, which may be more than what they cost with placeholders.
    let aims_at = match request.target_tokens {
        0 => raw_tokens / 3,
        target => target,
    };
    if aims_at > most {
        request.target_tokens = (most * 4 / 5).max(LEAST_SUMMARY);
    }
    job.request = Some(request);
    Some(job)
}
