//! A pass of the inner planner, which sees cleared groups as the messages that they are.

use std::collections::{BTreeMap, VecDeque};

use memory_model::{
    Accounting, LogEntry, Seq, SeqRange, Span, SpanBody, Summary, summary_overhead,
};
use turn_map::TrimPolicy;

use crate::job::{Job, Work};
use crate::planner::{Pass, ReadRequest};

/// Number of entries between two cleared groups up to which they are read together.
const NEAR: u32 = 32;

/// Least length of a summary that is worth making, in tokens.
const LEAST_SUMMARY: u64 = 10;

/// A group of messages whose results are cleared in the view.
#[derive(Debug, Clone)]
struct Cleared {
    range: SeqRange,
    /// The span that the view holds.
    span: Span,
    /// Cost of the messages as they are, in tokens, up to `next`.
    raw_tokens: u64,
    /// The first message that was not counted yet.
    next: Seq,
}

/// Whether a span shows cleared results, by whatever policy that this planner may have.
pub(super) fn is_cleared(span: &Span) -> bool {
    let SpanBody::Trimmed(policy) = &span.body else {
        return false;
    };
    let trim = policy.as_str().parse();
    !matches!(trim, Ok(TrimPolicy::ToolOutputLines { .. }) | Err(_))
}

/// Feeds the inner pass a view without cleared spans, and tells its jobs what the view really holds.
#[derive(Debug)]
pub(super) struct LensPass {
    inner: Box<dyn Pass>,
    head: Seq,
    /// The cleared groups that were seen, by their first position.
    cleared: BTreeMap<Seq, Cleared>,
    /// What the inner pass asked for last of the view, and was not fed yet.
    asked: Option<SeqRange>,
    /// Spans that wait: neighbouring messages are shown as one span, however many pages they were read in, and the
    /// messages of cleared groups are read first.
    page: Vec<Span>,
    /// Ranges of cleared groups whose messages are still to be read, in order.
    reads: VecDeque<SeqRange>,
}

impl LensPass {
    pub(super) fn new(inner: Box<dyn Pass>, head: Seq) -> Self {
        Self {
            inner,
            head,
            cleared: BTreeMap::new(),
            asked: None,
            page: Vec::new(),
            reads: VecDeque::new(),
        }
    }

    /// Feeds the spans that wait, once their cleared groups are known.
    fn show(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let page = std::mem::take(&mut self.page);
        let shown = self.shown(&page);
        self.asked = None;
        let jobs = self.inner.feed_spans(&shown, accounting);
        self.rewritten(jobs, accounting)
    }

    /// The rest of what was asked for, where the spans that wait end with messages that may go on in it.
    fn rest(&self) -> Option<SeqRange> {
        let last = self.page.last()?;
        let goes_on = last.body == SpanBody::Raw || is_cleared(last);
        let next = last.range.last.filter(|_| goes_on)?.next();
        SeqRange::new(next, self.asked?.last)
    }

    /// The spans with cleared groups as messages, joined with the messages beside them.
    fn shown(&self, page: &[Span]) -> Vec<Span> {
        let mut shown: Vec<Span> = Vec::with_capacity(page.len());
        for span in page {
            let cleared = self.cleared.get(&span.range.first);
            let cleared = cleared.filter(|_| is_cleared(span));
            let (body, tokens) = match cleared {
                Some(cleared) => (SpanBody::Raw, cleared.raw_tokens),
                None => (span.body.clone(), span.tokens),
            };
            match shown.last_mut() {
                Some(last) if body == SpanBody::Raw && last.body == SpanBody::Raw => {
                    last.range.last = span.range.last;
                    last.tokens = last.tokens.saturating_add(tokens);
                }
                _ => shown.push(Span {
                    range: span.range,
                    body,
                    tokens,
                }),
            }
        }
        shown
    }

    fn rewritten(&self, jobs: Vec<Job>, accounting: &dyn Accounting) -> Vec<Job> {
        let jobs = jobs.into_iter();
        jobs.filter_map(|job| rewrite(job, &self.cleared, accounting))
            .collect()
    }

    /// Adds what an entry costs to the cleared group that it belongs to.
    fn count(&mut self, entry: &LogEntry) {
        let group = self.cleared.range_mut(..=entry.seq).next_back();
        if let Some((_, group)) = group
            && group.range.last >= entry.seq
            && group.next == entry.seq
        {
            group.next = entry.seq.next();
            group.raw_tokens = group.raw_tokens.saturating_add(entry.tokens);
        }
    }
}

impl Pass for LensPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        if let Some(rest) = self.rest() {
            return Some(ReadRequest::Spans(rest));
        }
        if let Some(range) = self.reads.front() {
            return Some(ReadRequest::Entries(*range));
        }
        let read = self.inner.next_read();
        if let Some(ReadRequest::Spans(range)) = read {
            self.asked = Some(range);
        }
        read
    }

    fn feed_spans(&mut self, spans: &[Span], accounting: &dyn Accounting) -> Vec<Job> {
        for span in spans.iter().filter(|span| is_cleared(span)) {
            let Some(range) = span.range.up_to(self.head) else {
                continue;
            };
            if self.cleared.contains_key(&range.first) {
                continue;
            }
            let group = Cleared {
                range,
                span: span.clone(),
                raw_tokens: 0,
                next: range.first,
            };
            self.cleared.insert(range.first, group);
            let near = |read: &mut SeqRange| range.first.0.saturating_sub(read.last.0) <= NEAR;
            let before = self.reads.pop_back_if(near);
            let first = before.map_or(range.first, |read| read.first);
            self.reads.extend(SeqRange::new(first, range.last));
        }
        self.page.extend_from_slice(spans);
        match self.rest().is_none() && self.reads.is_empty() {
            true => self.show(accounting),
            false => Vec::new(),
        }
    }

    fn feed_entries(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        let Some(read) = self.reads.pop_front() else {
            let jobs = self.inner.feed_entries(entries, accounting);
            return self.rewritten(jobs, accounting);
        };
        entries.iter().for_each(|entry| self.count(entry));
        let last = entries.last().map(|entry| entry.seq);
        if let Some(rest) = last.and_then(|last| SeqRange::new(last.next(), read.last)) {
            self.reads.push_front(rest);
        }
        match self.reads.is_empty() {
            true => self.show(accounting),
            false => Vec::new(),
        }
    }

    fn feed_summaries(&mut self, summaries: &[Summary], accounting: &dyn Accounting) -> Vec<Job> {
        let jobs = self.inner.feed_summaries(summaries, accounting);
        self.rewritten(jobs, accounting)
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let jobs = self.inner.finish(accounting);
        self.rewritten(jobs, accounting)
    }
}

/// Returns the job over the spans that the view holds; `None` where it would cut a cleared group, or would not
/// make the view cheaper.
fn rewrite(
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
