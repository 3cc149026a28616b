//! A view for the inner planner, with the original messages instead of placeholders.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use memory_model::{
    Accounting, LogEntry, Seq, SeqRange, Span, SpanBody, Summary, summary_overhead,
};
use turn_map::TrimPolicy;

use crate::job::{Job, Work};
use crate::source::{BoxError, EntryReader, Tail, ViewSource};

/// Maximum number of entries between two cleared groups for which both groups are read with one request. A cleared
/// group is a group of messages for whose tool results the view shows placeholders.
const NEAR: u32 = 32;

/// Minimum length of a useful summary, in tokens.
const LEAST_SUMMARY: u64 = 10;

/// A group of messages with tool results for which the view shows placeholders.
#[derive(Debug, Clone)]
struct Cleared {
    range: SeqRange,
    /// The span of the view that shows the placeholders.
    span: Span,
    /// Cost of the original messages, in tokens.
    raw_tokens: u64,
}

/// Returns whether a span shows cleared tool results, under any policy of this planner.
pub(super) fn is_cleared(span: &Span) -> bool {
    let SpanBody::Trimmed(policy) = &span.body else {
        return false;
    };
    let trim = policy.as_str().parse();
    !matches!(trim, Ok(TrimPolicy::ToolOutputLines { .. }) | Err(_))
}

/// Reads a view, and returns cleared groups as their original messages.
#[derive(Debug)]
pub(super) struct Lens<'v> {
    view: &'v dyn ViewSource,
    head: Seq,
    /// Cleared groups that were read, by the position of their first message.
    cleared: Mutex<BTreeMap<Seq, Cleared>>,
}

impl<'v> Lens<'v> {
    pub(super) fn new(view: &'v dyn ViewSource, head: Seq) -> Self {
        Self {
            view,
            head,
            cleared: Mutex::default(),
        }
    }

    fn cleared(&self) -> MutexGuard<'_, BTreeMap<Seq, Cleared>> {
        self.cleared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a job of the inner planner with [`Job::expect`] replaced by the spans of the real view, which has
    /// placeholders. `None` if the job covers only a part of a group with placeholders, or if it saves too few tokens
    /// because the placeholders are already short.
    pub(super) fn rewrite(&self, mut job: Job, accounting: &dyn Accounting) -> Option<Job> {
        let cleared = self.cleared();
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
                // When a job is applied, ranges and bodies of spans are compared, but not their costs. So the last raw
                // span gets the cost of all.
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
        // The same rule as for handoffs: a summary that saves less than half is not worth a model call.
        if shown < overhead.saturating_add(LEAST_SUMMARY).saturating_mul(2) {
            return None;
        }
        let most = shown.saturating_sub(overhead).saturating_sub(1);
        let mut request = job.request.take().unwrap_or_default();
        if request.max_tokens == 0 || request.max_tokens > most {
            request.max_tokens = most;
        }
        // By default, a summary has a third of the messages' length, which may be more than their cost with
        // placeholders.
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

    /// Reads the costs of the original messages for the cleared groups among the spans. Groups near each other are read
    /// together.
    async fn read_cleared(&self, spans: &[Span]) -> Result<(), BoxError> {
        let mut groups: Vec<Cleared> = Vec::new();
        let mut reads: Vec<SeqRange> = Vec::new();
        for span in spans.iter().filter(|span| is_cleared(span)) {
            let Some(range) = span.range.up_to(self.head) else {
                continue;
            };
            if self.cleared().contains_key(&range.first) {
                continue;
            }
            groups.push(Cleared {
                range,
                span: span.clone(),
                raw_tokens: 0,
            });
            let near = |read: &mut SeqRange| range.first.0.saturating_sub(read.last.0) <= NEAR;
            let first = reads.pop_if(near).map_or(range.first, |read| read.first);
            reads.extend(SeqRange::new(first, range.last));
        }
        for read in reads {
            let mut entries = EntryReader::new(self.view, read);
            while let Some(entry) = entries.next().await? {
                let behind = groups.partition_point(|group| group.range.first <= entry.seq);
                let group = behind.checked_sub(1).and_then(|at| groups.get_mut(at));
                if let Some(group) = group.filter(|group| entry.seq <= group.range.last) {
                    group.raw_tokens = group.raw_tokens.saturating_add(entry.tokens);
                }
            }
        }
        let groups = groups.into_iter().map(|group| (group.range.first, group));
        self.cleared().extend(groups);
        Ok(())
    }
}

#[async_trait]
impl ViewSource for Lens<'_> {
    /// Returns neighbouring messages as one span, even if the spans are on several pages.
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError> {
        let mut page = self.view.spans(range).await?;
        let goes_on = |span: &&Span| span.body == SpanBody::Raw || is_cleared(span);
        while let Some(last) = page.last().filter(goes_on).and_then(|span| span.range.last)
            && let Some(rest) = SeqRange::new(last.next(), range.last)
        {
            let more = self.view.spans(rest).await?;
            if more.is_empty() {
                break;
            }
            page.extend(more);
        }
        self.read_cleared(&page).await?;
        let cleared = self.cleared();
        let mut shown: Vec<Span> = Vec::with_capacity(page.len());
        for mut span in page {
            if is_cleared(&span)
                && let Some(group) = cleared.get(&span.range.first)
            {
                (span.body, span.tokens) = (SpanBody::Raw, group.raw_tokens);
            }
            match shown.last_mut() {
                Some(last) if span.body == SpanBody::Raw && last.body == SpanBody::Raw => {
                    last.range.last = span.range.last;
                    last.tokens = last.tokens.saturating_add(span.tokens);
                }
                _ => shown.push(span),
            }
        }
        Ok(shown)
    }

    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        self.view.entries(range).await
    }

    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        self.view.newest(tail).await
    }

    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError> {
        self.view.summaries(range).await
    }
}
