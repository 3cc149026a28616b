//! The pass: reads the view, and then the summaries that it shows where they cost too much together.

use std::collections::VecDeque;

use memory_model::{Accounting, Child, Seq, SeqRange, Span, SpanBody, Summary};

use super::facts::lines;
use super::policy::{DROP, DropPolicy, request};
use crate::job::{Job, Work};
use crate::planner::{Pass, ReadRequest};

/// Number of summaries that are read at once.
const AT_ONCE: usize = 64;

/// Plans the summaries to write anew. Keeps the spans of summaries, and no text.
#[derive(Debug)]
pub(super) struct DropPass {
    policy: DropPolicy,
    head: Seq,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// The spans of summaries that wait to be read, with what they cover.
    shown: VecDeque<(SeqRange, Span)>,
    /// Cost of all summaries of the view, in tokens.
    tokens: u64,
}

impl DropPass {
    /// A pass over the view up to `head`; `None` for a pass that does nothing.
    pub(super) fn new(policy: DropPolicy, head: Option<Seq>) -> Self {
        Self {
            policy,
            head: head.unwrap_or(Seq::NONE),
            rest: head.and_then(|head| SeqRange::new(Seq::FIRST, head)),
            shown: VecDeque::new(),
            tokens: 0,
        }
    }

    /// The part of `all` tokens that belongs to a summary by its cost, without what rendering adds to its text.
    fn share(&self, all: u64, span: &Span, rendering: u64) -> u64 {
        let share = u128::from(all) * u128::from(span.tokens) / u128::from(self.tokens.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        share.saturating_sub(rendering).max(1)
    }

    /// The job that writes a summary anew; `None` where no line of it can go.
    fn job(&self, range: SeqRange, span: &Span, summary: &Summary, text: u64) -> Option<Job> {
        let rendering = span.tokens.saturating_sub(text);
        let most = self.share(self.policy.max_tokens, span, rendering);
        let target = self.policy.target_tokens.min(self.policy.max_tokens);
        let target = self.share(target, span, rendering);
        let is_one_line = lines(summary.text()) < 2;
        if is_one_line || target >= text {
            return None;
        }
        let id = summary.id.clone();
        Some(Job {
            kind: DROP,
            range,
            expect: vec![span.clone()],
            work: Work::Summarize {
                sources: vec![Child::Summary { range, id }],
                children: Some(summary.children.clone()),
                depth: summary.depth,
            },
            request: Some(request(target, most)),
            source_tokens: span.tokens,
            why: format!(
                "all summaries cost {} tokens together, and {} are kept",
                self.tokens, self.policy.max_tokens
            ),
        })
    }
}

impl Pass for DropPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        if let Some(rest) = self.rest {
            return Some(ReadRequest::Spans(rest));
        }
        if self.tokens <= self.policy.max_tokens {
            return None;
        }
        let (first, _) = self.shown.front()?;
        let (last, _) = self.shown.iter().take(AT_ONCE).next_back()?;
        SeqRange::new(first.first, last.last).map(ReadRequest::Summaries)
    }

    fn feed_spans(&mut self, spans: &[Span], _accounting: &dyn Accounting) -> Vec<Job> {
        for span in spans {
            let range = span.range.up_to(self.head);
            if let (Some(range), SpanBody::Summary { .. }) = (range, &span.body) {
                self.tokens = self.tokens.saturating_add(span.tokens);
                self.shown.push_back((range, span.clone()));
            }
        }
        let last = spans.last().and_then(|span| span.range.last);
        self.rest = last.and_then(|last| SeqRange::new(last.next(), self.head));
        Vec::new()
    }

    fn feed_summaries(&mut self, summaries: &[Summary], accounting: &dyn Accounting) -> Vec<Job> {
        let read = self.shown.len().min(AT_ONCE);
        let read: Vec<(SeqRange, Span)> = self.shown.drain(..read).collect();
        let job = |(range, span): &(SeqRange, Span)| {
            let id = span.body.summary()?;
            let summary = summaries.iter().find(|summary| summary.id == *id)?;
            self.job(*range, span, summary, accounting.text(summary.text()))
        };
        read.iter().filter_map(job).collect()
    }
}
