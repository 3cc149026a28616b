//! The pass: reads the spans, then the messages since the last summary, and cuts.

use compaction_plan::{Job, Pass, ReadRequest, Request, Work};
use memory_model::{
    Accounting, Child, LogEntry, Purpose, Seq, SeqRange, Span, SpanBody, summary_overhead,
};

use crate::boundary::{Boundary, Costs, Recent};
use crate::labels::{HANDOFF, TURN_PREFIX};
use crate::policy::HandoffPolicy;

/// A pass over a view of handoffs.
#[derive(Debug)]
pub(crate) struct HandoffPass {
    policy: HandoffPolicy,
    /// Largest cost of what stays, in tokens.
    most: Option<u64>,
    /// The rule of what is added to summaries.
    rule: String,
    head: Seq,
    /// The first message that is kept, whatever the policy keeps.
    kept_from: Option<Seq>,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// The view's spans up to the head.
    spans: Vec<Span>,
    /// The messages behind the last summary; `None` until all spans are there.
    recent: Option<Recent>,
}

impl HandoffPass {
    pub(crate) fn new(policy: HandoffPolicy, most: Option<u64>, rule: String, head: Seq) -> Self {
        Self {
            policy,
            most,
            rule,
            head,
            kept_from: None,
            rest: SeqRange::new(Seq::FIRST, head),
            spans: Vec::new(),
            recent: None,
        }
    }

    pub(crate) fn with_kept_from(mut self, first: Option<Seq>) -> Self {
        self.kept_from = first;
        self
    }

    /// The first message behind the last summary.
    fn origin(&self) -> Seq {
        let last = self
            .spans
            .iter()
            .rfind(|span| span.body.summary().is_some());
        let last = last.and_then(|span| span.range.last);
        last.map_or(Seq::FIRST, Seq::next)
    }

    /// The jobs of a cut: at most two, one behind the other. Where one of them would be too short for a summary of its own,
    /// one summary covers both.
    fn jobs(&self, cut: Boundary, costs: &Costs, accounting: &dyn Accounting) -> Vec<Job> {
        let job = |first, last, purpose| {
            let range = SeqRange::new(first, last)?;
            self.job(range, costs, purpose, accounting)
        };
        let before = |seq: Seq| job(Seq::FIRST, seq.prev(), Purpose::Replace);
        let prefix = cut.prefix.and_then(|range| {
            let prefix = job(range.first, range.last, Purpose::TurnPrefix)?;
            let history = cut.history.map(|_| before(range.first));
            // Without messages before the turn, the summary before it stays as it is.
            Some((history.unwrap_or_default(), prefix, cut.history.is_some()))
        });
        match prefix {
            Some((None, prefix, false)) => vec![prefix],
            Some((Some(history), prefix, _)) => vec![history, prefix],
            _ => before(cut.kept).into_iter().collect(),
        }
    }

    /// The job that puts one summary in the place of a range; `None` where no shorter one is to be expected.
    fn job(
        &self,
        range: SeqRange,
        costs: &Costs,
        purpose: Purpose,
        accounting: &dyn Accounting,
    ) -> Option<Job> {
        let spans = self.spans.iter();
        let expect: Vec<Span> = spans.filter_map(|span| part(span, range, costs)).collect();
        let sources = sources(&expect)?;
        let children = vec![Child::Messages { range }];
        let cost = |summaries: bool| {
            let spans = expect
                .iter()
                .filter(|span| span.body.summary().is_some() == summaries);
            spans.fold(0_u64, |sum, span| sum.saturating_add(span.tokens))
        };
        let (before, new) = (cost(true), cost(false));
        let source_tokens = before.saturating_add(new);
        let overhead = summary_overhead(accounting, range, 0, &children);
        // Ten tokens are the least that a summary aims at.
        let worth = source_tokens >= overhead.saturating_add(10).saturating_mul(2);
        if !worth && self.kept_from.is_none() {
            return None;
        }
        let (kind, most) = match purpose {
            Purpose::TurnPrefix => (TURN_PREFIX, self.policy.prefix_tokens),
            _ => (HANDOFF, self.policy.summary_tokens),
        };
        // A third of the messages, as of a leaf; what was kept before is kept, as far as there is room. A fifth of
        // the room is for a model that writes more than it was asked for, and for the list of files.
        let target = before
            .saturating_add(new / 3)
            .clamp(10, (most * 4 / 5).max(10));
        let request = Request {
            purpose,
            target_tokens: target,
            max_tokens: most.max(10),
            details: Some(self.rule.clone()),
            prompts: self.policy.prompts.clone(),
            ..Request::default()
        };
        Some(Job {
            why: format!("{new} tokens of messages are older than what is kept"),
            kind,
            range,
            work: Work::Summarize {
                children: (sources != children).then_some(children),
                sources,
                depth: 0,
            },
            expect,
            request: Some(request),
            source_tokens,
        })
    }
}

impl Pass for HandoffPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        if let Some(rest) = self.rest {
            return Some(ReadRequest::Spans(rest));
        }
        let origin = self.origin();
        let recent = self.recent.get_or_insert_with(|| Recent::new(origin));
        SeqRange::new(recent.next(), self.head).map(ReadRequest::Entries)
    }

    fn feed_spans(&mut self, spans: &[Span], _accounting: &dyn Accounting) -> Vec<Job> {
        self.spans.extend(spans.iter().cloned());
        let next = spans.last().and_then(|span| span.range.last);
        let rest = self.rest.zip(next);
        self.rest = rest.and_then(|(rest, last)| SeqRange::new(last.next(), rest.last));
        Vec::new()
    }

    fn feed_entries(&mut self, entries: &[LogEntry], _accounting: &dyn Accounting) -> Vec<Job> {
        if let Some(recent) = &mut self.recent {
            entries.iter().for_each(|entry| recent.push(entry));
        }
        Vec::new()
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let Some(recent) = self.recent.take() else {
            return Vec::new();
        };
        // Shortened messages and those left out are whole spans, which nothing cuts.
        let solid: Vec<SeqRange> = self
            .spans
            .iter()
            .filter(|span| matches!(span.body, SpanBody::Trimmed(_)))
            .filter_map(Span::closed_range)
            .collect();
        let cut = match self.kept_from {
            Some(first) => recent.cut_at(first, &solid),
            None => recent.cut(&self.policy, self.most, &solid),
        };
        let Some((cut, costs)) = cut else {
            return Vec::new();
        };
        let covered = [cut.history, cut.prefix];
        let new: u64 = covered
            .into_iter()
            .flatten()
            .map(|range| costs.of(range))
            .sum();
        match new >= self.policy.min_tokens || self.kept_from.is_some() {
            true => self.jobs(cut, &costs, accounting),
            false => Vec::new(),
        }
    }
}

/// The part of a span inside a range, with the cost of its messages where only a part of it is.
fn part(span: &Span, range: SeqRange, costs: &Costs) -> Option<Span> {
    let whole = span.range.up_to(range.last.max(span.range.first))?;
    let part = whole.intersect(&range)?;
    let tokens = match Some(part) == span.closed_range() {
        true => span.tokens,
        false => costs.of(part),
    };
    Some(Span::closed(part, span.body.clone(), tokens))
}

/// What a summarizer sees: summaries and runs of messages.
fn sources(spans: &[Span]) -> Option<Vec<Child>> {
    let mut sources: Vec<Child> = Vec::new();
    for span in spans {
        let range = span.closed_range()?;
        match (span.body.summary(), sources.last_mut()) {
            (Some(id), _) => sources.push(Child::Summary {
                range,
                id: id.clone(),
            }),
            (None, Some(Child::Messages { range: last })) => {
                *last = SeqRange::new(last.first, range.last)?;
            }
            (None, _) => sources.push(Child::Messages { range }),
        }
    }
    Some(sources)
}
