//! The jobs (changes of the view) that turn its current form into the target form.

use compaction_plan::{Job, Label, Request, Work};
use memory_model::{
    Accounting, Child, Seq, SeqRange, Span, SpanBody, TrimPolicyId, summary_overhead,
};
use turn_map::TrimPolicy;

use crate::context::Shown;
use crate::planner::desired::Segment;
use crate::planner::entry::LightEntry;
use crate::planner::policy::{BlockPolicy, Digest};
use crate::planner::{OMIT, SUMMARIZE, TRIM, UNFOLD};

/// Data from which the changes of the view (jobs) are made.
pub(crate) struct Planned<'p> {
    pub(crate) policy: &'p BlockPolicy,
    /// Spans of the view from the first read entry on. The last span ends at the end of the log.
    pub(crate) spans: Vec<Span>,
    pub(crate) entries: &'p [LightEntry],
    pub(crate) accounting: &'p dyn Accounting,
}

impl Planned<'_> {
    /// Returns the changes of the view (jobs) that show each segment in its target form, in order.
    pub(crate) fn jobs(&self, segments: &[Segment]) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut divided = false;
        for segment in segments {
            let Some(range) = self.range(segment) else {
                continue;
            };
            let spans = self.touching(range);
            let crossing = spans.iter().find_map(|span| {
                let whole = span.closed_range()?;
                (!span.body.is_divisible() && !range.covers(&whole)).then_some((*span, whole))
            });
            match crossing {
                Some((span, whole)) => {
                    if jobs.last().is_none_or(|job| job.range != whole) {
                        jobs.push(self.unfold(span, whole));
                        divided = true;
                    }
                }
                None => jobs.extend(self.job(segment, range, &spans)),
            }
        }
        // Spans that the segments divide are first shown as messages again. The next pass makes the view smaller.
        match divided || self.shrinks(&jobs) {
            true => jobs,
            false => Vec::new(),
        }
    }

    /// Returns whether the changes of the view (jobs) together make it cheaper. Showing messages unchanged again may
    /// cost more than their former form. Then the other changes must save more than this.
    fn shrinks(&self, jobs: &[Job]) -> bool {
        let before = jobs.iter().map(|job| job.source_tokens);
        let after = jobs.iter().map(|job| match &job.work {
            Work::Replace(spans) => spans.iter().map(|span| span.tokens).sum(),
            _ => {
                let asked = job.request.as_ref().map_or(0, |r| r.target_tokens);
                let most = asked.min(self.tokens(job.range) / 2);
                most + summary_overhead(self.accounting, job.range, 0, job.sources())
            }
        });
        let sum = |costs: &mut dyn Iterator<Item = u64>| costs.fold(0, u64::saturating_add);
        sum(&mut { after }) < sum(&mut { before })
    }

    fn range(&self, segment: &Segment) -> Option<SeqRange> {
        let first = self.entries.get(segment.at.start)?.seq;
        let last = self.entries.get(segment.at.end.checked_sub(1)?)?.seq;
        SeqRange::new(first, last)
    }

    /// Returns the spans that overlap with the range.
    fn touching(&self, range: SeqRange) -> Vec<&Span> {
        let touches = |span: &Span| {
            let whole = span.closed_range();
            whole.is_some_and(|whole| whole.intersect(&range).is_some())
        };
        let from = self
            .spans
            .partition_point(|span| span.range.last.is_some_and(|last| last < range.first));
        self.spans
            .iter()
            .skip(from)
            .take_while(|span| touches(span))
            .collect()
    }

    /// Returns the spans, cut to the range, with their new costs.
    fn cut(&self, spans: &[&Span], range: SeqRange) -> Vec<Span> {
        let cut = spans.iter().filter_map(|span| {
            let part = span.closed_range()?.intersect(&range)?;
            let tokens = match span.body {
                SpanBody::Raw => self.tokens(part),
                SpanBody::Omitted => 0,
                _ => span.tokens,
            };
            Some(Span::closed(part, span.body.clone(), tokens))
        });
        cut.collect()
    }

    fn tokens(&self, range: SeqRange) -> u64 {
        let from = self
            .entries
            .partition_point(|entry| entry.seq < range.first);
        let entries = self.entries.iter().skip(from);
        let inside = entries.take_while(|entry| entry.seq <= range.last);
        inside
            .map(|entry| entry.tokens)
            .fold(0, u64::saturating_add)
    }

    /// Returns the job that shows the messages of a span unchanged again, because the segments divide the span.
    fn unfold(&self, span: &Span, range: SeqRange) -> Job {
        let raw = Span::closed(range, SpanBody::Raw, self.tokens(range));
        let expect = vec![span.clone()];
        let why = "turns are kept or summarized differently now";
        job(UNFOLD, range, expect, Work::Replace(vec![raw]), why)
    }

    fn job(&self, segment: &Segment, range: SeqRange, spans: &[&Span]) -> Option<Job> {
        let expect = self.cut(spans, range);
        let replace = |kind: Label, body: SpanBody, tokens: u64, why: &str| {
            let shown = expect.iter().all(|span| match body.is_divisible() {
                true => span.body == body,
                false => span.body == body && span.closed_range() == Some(range),
            });
            let work = Work::Replace(vec![Span::closed(range, body, tokens)]);
            (!shown).then(|| job(kind, range, expect.clone(), work, why))
        };
        match segment.shown {
            Shown::Raw => {
                let why = "the turns are kept as they are";
                replace(UNFOLD, SpanBody::Raw, self.tokens(range), why)
            }
            Shown::Omitted => {
                let why = "the loop is out of scope, or its lines do not fit into the summary";
                replace(OMIT, SpanBody::Omitted, 0, why)
            }
            Shown::Trimmed => {
                let lines = self.policy.tool_output_max_lines;
                let trim = TrimPolicy::ToolOutputLines { lines };
                let body = SpanBody::Trimmed(TrimPolicyId::new(trim.to_string()));
                replace(
                    TRIM,
                    body,
                    segment.tokens,
                    "recent turns show the ends of tool output",
                )
            }
            Shown::Summarized => self.summarize(segment, range, expect),
        }
    }

    fn summarize(&self, segment: &Segment, range: SeqRange, expect: Vec<Span>) -> Option<Job> {
        let one = expect.first().filter(|_| expect.len() == 1);
        if one.is_some_and(|span| span.body.summary().is_some()) {
            return None;
        }
        let flat = vec![Child::Messages { range }];
        let rolling = self.policy.digest == Digest::Rolling;
        let sources = match rolling {
            true => sources(&expect)?,
            false => flat.clone(),
        };
        let overhead = summary_overhead(self.accounting, range, 0, &sources);
        let shown: u64 = expect.iter().map(|span| span.tokens).sum();
        if shown <= segment.tokens.saturating_add(overhead) {
            return None;
        }
        let work = Work::Summarize {
            sources,
            children: rolling.then_some(flat),
            depth: 0,
        };
        let why = "turns between the first and the recent ones, or an older loop, are summarized";
        // The summary must cost less than the spans that it replaces, which may already be a short summary.
        let most = shown.saturating_sub(overhead).saturating_sub(1);
        let target = self.policy.max_summary_tokens.min(most).max(1);
        let request = Request {
            target_tokens: target,
            max_tokens: most.max(1),
            ..Request::default()
        };
        Some(Job {
            request: Some(request),
            ..job(SUMMARIZE, range, expect, work, why)
        })
    }
}

fn job(kind: Label, range: SeqRange, expect: Vec<Span>, work: Work, why: &str) -> Job {
    Job {
        kind,
        range,
        source_tokens: expect.iter().map(|span| span.tokens).sum(),
        expect,
        work,
        request: None,
        why: why.to_owned(),
    }
}

/// Returns the sources of a rolling summary: the earlier summaries, and the messages of all other spans.
fn sources(spans: &[Span]) -> Option<Vec<Child>> {
    let mut sources: Vec<Child> = Vec::new();
    for span in spans {
        let range = span.closed_range()?;
        match (span.body.summary().cloned(), sources.last_mut()) {
            (Some(id), _) => sources.push(Child::Summary { range, id }),
            (None, Some(Child::Messages { range: before })) => {
                *before = SeqRange::new(before.first, range.last)?;
            }
            (None, _) => sources.push(Child::Messages { range }),
        }
    }
    Some(sources)
}

/// Returns the spans from `first` to `head`, cut at both ends. Indivisible spans are kept whole.
pub(crate) fn closed_spans(spans: &[Span], first: Seq, head: Seq) -> Vec<Span> {
    let spans = spans.iter().filter_map(|span| {
        let whole = span.range.up_to(head)?;
        let range = match span.body.is_divisible() {
            true => SeqRange::new(whole.first.max(first), whole.last)?,
            false => whole,
        };
        (range.last >= first).then(|| Span::closed(range, span.body.clone(), span.tokens))
    });
    spans.collect()
}
