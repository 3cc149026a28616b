//! One planning round: reads the spans of the view and the messages since the last summary, and selects the cut.

use compaction_plan::{
    BoxError, EntryReader, Job, JobSink, PassInput, Request, SpanReader, ViewSource, Work,
};
use memory_model::{Accounting, Child, Purpose, Seq, SeqRange, Span, SpanBody, summary_overhead};

use crate::boundary::{Boundary, Costs, Recent};
use crate::labels::{HANDOFF, TURN_PREFIX};
use crate::policy::HandoffPolicy;

/// Plans the handoffs of a view and adds them to `jobs`. `most` is the maximum cost of the kept messages, in tokens.
/// `rule` names the rule for the details that are added to summaries. If `kept_from` is given, the messages from that
/// position on are kept, regardless of the policy.
pub(crate) async fn plan_handoffs(
    policy: &HandoffPolicy,
    (most, rule, kept_from): (Option<u64>, &str, Option<Seq>),
    input: PassInput<'_>,
    view: &dyn ViewSource,
    jobs: &mut dyn JobSink,
) -> Result<(), BoxError> {
    let mut spans: Vec<Span> = Vec::new();
    let mut all = SpanReader::new(view, SeqRange::new(Seq::FIRST, input.head));
    while let Some(span) = all.next().await? {
        spans.push(span);
    }
    let last = spans.iter().rfind(|span| span.body.summary().is_some());
    let last = last.and_then(|span| span.range.last);
    let origin = last.map_or(Seq::FIRST, Seq::next);
    let mut recent = Recent::new(origin);
    let mut entries = EntryReader::new(view, SeqRange::new(origin, input.head));
    while let Some(entry) = entries.next().await? {
        recent.push(&entry);
    }

    // A cut never divides a trimmed span.
    let solid = spans
        .iter()
        .filter(|span| matches!(span.body, SpanBody::Trimmed(_)));
    let solid: Vec<SeqRange> = solid.filter_map(Span::closed_range).collect();
    let cut = match kept_from {
        Some(first) => recent.cut_at(first, &solid),
        None => recent.cut(policy, most, &solid),
    };
    let Some((cut, costs)) = cut else {
        return Ok(());
    };
    let covered = [cut.history, cut.prefix].into_iter().flatten();
    let new: u64 = covered.map(|range| costs.of(range)).sum();
    if new >= policy.min_tokens || kept_from.is_some() {
        let handoff = Handoff {
            policy,
            rule,
            is_forced: kept_from.is_some(),
            spans: &spans,
            costs: &costs,
            accounting: input.accounting,
        };
        jobs.extend(handoff.jobs(cut));
    }
    Ok(())
}

/// Inputs from which the summaries of a handoff are planned.
struct Handoff<'p> {
    policy: &'p HandoffPolicy,
    rule: &'p str,
    /// Whether a summary is planned even if it saves few tokens.
    is_forced: bool,
    /// Spans of the view up to the last position of the log.
    spans: &'p [Span],
    costs: &'p Costs,
    accounting: &'p dyn Accounting,
}

impl Handoff<'_> {
    /// Returns the jobs (summaries to write) for a cut: one, or two in order. If one of two summaries would be too
    /// short, a single summary covers both ranges.
    fn jobs(&self, cut: Boundary) -> Vec<Job> {
        let job = |first, last, purpose| {
            let range = SeqRange::new(first, last)?;
            self.job(range, purpose)
        };
        let before = |seq: Seq| job(Seq::FIRST, seq.prev(), Purpose::Replace);
        let prefix = cut.prefix.and_then(|range| {
            let prefix = job(range.first, range.last, Purpose::TurnPrefix)?;
            let history = cut.history.map(|_| before(range.first));
            // If no messages precede the turn, the previous summary stays unchanged.
            Some((history.unwrap_or_default(), prefix, cut.history.is_some()))
        });
        match prefix {
            Some((None, prefix, false)) => vec![prefix],
            Some((Some(history), prefix, _)) => vec![history, prefix],
            _ => before(cut.kept).into_iter().collect(),
        }
    }

    /// Returns the job (change of the view) that replaces a range by one summary; `None` if the summary is not expected
    /// to be shorter.
    fn job(&self, range: SeqRange, purpose: Purpose) -> Option<Job> {
        let spans = self.spans.iter();
        let expect: Vec<Span> = spans
            .filter_map(|span| part(span, range, self.costs))
            .collect();
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
        let overhead = summary_overhead(self.accounting, range, 0, &children);
        // A summary has a target length of at least ten tokens.
        let worth = source_tokens >= overhead.saturating_add(10).saturating_mul(2);
        if !worth && !self.is_forced {
            return None;
        }
        let kind = match purpose {
            Purpose::TurnPrefix => TURN_PREFIX,
            _ => HANDOFF,
        };
        let request = Request {
            details: Some(self.rule.to_owned()),
            ..self.policy.request(purpose, before, new)
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

/// Returns the part of a span inside a range; `None` if they do not overlap. A part of a divided span has the cost of
/// its messages.
fn part(span: &Span, range: SeqRange, costs: &Costs) -> Option<Span> {
    let whole = span.range.up_to(range.last.max(span.range.first))?;
    let part = whole.intersect(&range)?;
    let tokens = match Some(part) == span.closed_range() {
        true => span.tokens,
        false => costs.of(part),
    };
    Some(Span::closed(part, span.body.clone(), tokens))
}

/// Returns the sources of a summary: summaries, and runs of consecutive messages. `None` if a span is open.
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
