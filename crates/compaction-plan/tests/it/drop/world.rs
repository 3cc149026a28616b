//! A view of summaries and messages, and the plans over it.

use std::sync::Arc;

use compaction_plan::{Goal, Job, Label, PassInput, Planner, ReadRequest};
use context_assembler::ContextAccounting;
use memory_model::{
    Accounting, Child, Hash, Recipe, Seq, SeqRange, Span, SpanBody, SpanRange, Summary,
};
use token_estimate::HeuristicEstimator;

pub(crate) fn accounting() -> ContextAccounting {
    ContextAccounting::new(Arc::new(HeuristicEstimator::Bytes4))
}

pub(crate) struct World {
    pub(crate) summaries: Vec<Summary>,
    pub(crate) spans: Vec<Span>,
    head: Seq,
}

impl World {
    /// One summary of ten messages for each list of lines; an empty one leaves its messages as they are.
    pub(crate) fn new(texts: &[Vec<String>]) -> Self {
        let (mut summaries, mut spans, mut next) = (Vec::new(), Vec::new(), 1);
        for lines in texts {
            let range = SeqRange::new(Seq(next), Seq(next + 9)).unwrap();
            next += 10;
            if lines.is_empty() {
                spans.push(Span::closed(range, SpanBody::Raw, 400));
                continue;
            }
            let sources = vec![Child::Messages { range }];
            let text = lines.join("\n");
            let mut summary =
                Summary::new(range, 0, sources, Hash::ZERO, Recipe::new("test"), text);
            summary.tokens = accounting().summary(&summary);
            let (id, depth) = (summary.id.clone(), summary.depth);
            let body = SpanBody::Summary { id, depth };
            spans.push(Span::closed(range, body, summary.tokens));
            summaries.push(summary);
        }
        let range = SpanRange {
            first: Seq(next),
            last: None,
        };
        spans.push(Span {
            range,
            body: SpanBody::Raw,
            tokens: 50,
        });
        Self {
            summaries,
            spans,
            head: Seq(next),
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.summaries.iter().map(|summary| summary.tokens).sum()
    }

    /// The jobs of a pass; spans are fed in pages, and summaries are served by `stored`. Counts what was read.
    pub(crate) fn plan(
        &self,
        planner: &dyn Planner,
        pass: &Label,
        (page, goal): (usize, Goal),
        stored: impl Fn(&Summary) -> bool,
    ) -> (Vec<Job>, usize) {
        let accounting = accounting();
        let mut pass = planner.begin(PassInput {
            pass,
            head: self.head,
            tokens: self.spans.iter().map(|span| span.tokens).sum(),
            newest: &[],
            room: None,
            goal,
            accounting: &accounting,
        });
        let (mut jobs, mut read) = (Vec::new(), 0);
        while let Some(want) = pass.next_read() {
            jobs.extend(match want {
                ReadRequest::Spans(range) => {
                    let touches = |span: &&Span| {
                        span.range.first <= range.last
                            && span.range.last.is_none_or(|last| last >= range.first)
                    };
                    let some = self.spans.iter().filter(touches).take(page);
                    let some: Vec<Span> = some.cloned().collect();
                    assert!(!some.is_empty(), "{range} is beyond the view");
                    pass.feed_spans(&some, &accounting)
                }
                ReadRequest::Summaries(range) => {
                    let inside = |summary: &&Summary| range.covers(&summary.range);
                    let some = self.summaries.iter().filter(inside);
                    let some: Vec<Summary> = some.filter(|s| stored(s)).cloned().collect();
                    read += some.len();
                    pass.feed_summaries(&some, &accounting)
                }
                want => panic!("{want:?}"),
            });
        }
        jobs.extend(pass.finish(&accounting));
        (jobs, read)
    }
}
