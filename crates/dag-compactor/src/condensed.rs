//! The pass over summaries: runs of equal depth become fewer summaries.
//!
//! Messages between two summaries that are too short for a leaf, such as a request of a few words,
//! would keep their neighbours apart forever. They go into the condensed summary.

use std::collections::VecDeque;

use compaction_plan::{Goal, Job, Pass, PassInput, ReadRequest, Room, Work};
use memory_model::{Accounting, Child, LogEntry, Seq, SeqRange, Span, SpanBody, summary_overhead};

use crate::labels::CONDENSED;
use crate::policy::DagPolicy;
use crate::request::is_request;

/// A pass over the summaries of a view, fed span by span.
#[derive(Debug)]
pub(crate) struct CondensedPass {
    policy: DagPolicy,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// Spans that were fed and not looked at yet.
    fed: VecDeque<Span>,
    /// Whether the span that was looked at last is a summary that may be condensed.
    after_summary: bool,
    /// Short messages behind others, whose entries are read before anything behind them is looked at.
    reading: Option<Reading>,
    /// Short messages that may hold the user's running request, and everything behind them: it is an
    /// earlier request where a newer one is behind it, which is known only at the end.
    held: Vec<Piece>,
    /// Neighbouring summaries of equal depth.
    group: Group,
    /// Jobs that wait for the end of the view, where the view costs too much.
    jobs: Vec<Job>,
    /// Figures of a view that costs too much; `None` where it fits.
    shrink: Option<Shrink>,
}

/// A span as far as condensed summaries depend on it.
#[derive(Debug)]
struct Piece {
    span: Span,
    /// Whether it holds messages behind a summary that are too short for a leaf.
    is_short: bool,
}

/// Short messages whose entries are being read.
#[derive(Debug)]
struct Reading {
    span: Span,
    /// What was not read yet.
    rest: Option<SeqRange>,
    /// Whether one that was read may be the user's running request.
    may_be_request: bool,
}

/// Neighbouring summaries that become one.
#[derive(Debug, Default)]
struct Group {
    /// Summaries, and short messages between them.
    spans: Vec<Span>,
    summaries: usize,
    /// Short messages behind the last summary, which the group takes with the next summary.
    short: Option<Span>,
    depth: u32,
    tokens: u64,
}

impl Group {
    /// Cost of the group with one more span, in tokens.
    fn tokens_with(&self, span: &Span) -> u64 {
        let short = self.short.as_ref().map_or(0, |short| short.tokens);
        let tokens = self.tokens.saturating_add(short);
        tokens.saturating_add(span.tokens)
    }

    fn push(&mut self, summary: &Span) {
        self.tokens = self.tokens_with(summary);
        self.spans.extend(self.short.take());
        self.spans.push(summary.clone());
        self.summaries += 1;
    }
}

/// A view that costs more than its room.
#[derive(Debug)]
struct Shrink {
    excess: u64,
    room: Room,
    goal: Goal,
    /// Neighbouring summaries of any depths, up to the span that was fed last, and short messages
    /// behind them.
    run: Vec<Span>,
    /// The finished runs, oldest first. The user's request may stand between two of them.
    runs: Vec<Vec<Span>>,
    /// Cost of the messages behind the last summary, in tokens.
    tail: u64,
}

impl CondensedPass {
    pub(crate) fn new(policy: DagPolicy, input: &PassInput<'_>) -> Self {
        let shrink = |room| Shrink {
            excess: input.excess(),
            room,
            goal: input.goal,
            run: Vec::new(),
            runs: Vec::new(),
            tail: 0,
        };
        Self {
            policy,
            rest: SeqRange::new(Seq::FIRST, input.head),
            fed: VecDeque::new(),
            after_summary: false,
            reading: None,
            held: Vec::new(),
            group: Group::default(),
            jobs: Vec::new(),
            shrink: input.room.filter(|_| input.excess() > 0).map(shrink),
        }
    }

    /// The depth of a summary that may be condensed.
    fn depth(&self, span: &Span) -> Option<u32> {
        let most = self.policy.max_depth;
        summary_depth(span).filter(|depth| most.is_none_or(|most| *depth < most))
    }

    /// Whether a span holds messages behind a summary that are too short for a leaf.
    fn is_short(&self, span: &Span, accounting: &dyn Accounting) -> bool {
        let Some(range) = span.closed_range() else {
            return false;
        };
        let overhead = || summary_overhead(accounting, range, 0, &[Child::Messages { range }]);
        self.policy.bridge
            && self.after_summary
            && span.body == SpanBody::Raw
            && !self.policy.gains(span.tokens, overhead())
    }

    /// Looks at the spans that were fed, up to one whose entries must be read.
    fn look_at_fed(&mut self, accounting: &dyn Accounting) {
        while self.reading.is_none()
            && let Some(span) = self.fed.pop_front()
        {
            let is_short = self.is_short(&span, accounting);
            self.after_summary = self.depth(&span).is_some();
            let may_be_request = is_short && self.policy.keep_request;
            if may_be_request && !self.held.is_empty() {
                self.reading = Some(Reading {
                    rest: span.closed_range(),
                    span,
                    may_be_request: false,
                });
            } else {
                self.step(Piece { span, is_short }, may_be_request, accounting);
            }
        }
    }

    fn step(&mut self, piece: Piece, may_be_request: bool, accounting: &dyn Accounting) {
        if may_be_request {
            // What was held is older: ordinary messages.
            self.take_held(accounting);
        }
        match may_be_request || !self.held.is_empty() {
            true => self.held.push(piece),
            false => self.take(&piece, accounting),
        }
    }

    fn take_held(&mut self, accounting: &dyn Accounting) {
        for piece in std::mem::take(&mut self.held) {
            self.take(&piece, accounting);
        }
    }

    fn take(&mut self, piece: &Piece, accounting: &dyn Accounting) {
        let span = &piece.span;
        let found = self.depth(span);
        if piece.is_short {
            let follows = self.group.summaries > 0;
            self.group.short = follows.then(|| span.clone());
        } else {
            let group = &self.group;
            let (len, fewest) = (group.summaries, self.policy.fewest());
            let most = self.policy.condensed_max.map(|most| most.max(fewest));
            let full = most.is_some_and(|most| len >= most)
                || (len >= fewest && !self.policy.fits(group.tokens_with(span)));
            if found != Some(group.depth) || full {
                self.close(accounting);
            }
            if let Some(depth) = found {
                self.group.depth = depth;
                self.group.push(span);
            }
        }
        if let Some(shrink) = &mut self.shrink {
            shrink.take(piece, found.is_some());
        }
    }

    /// The jobs that nothing to come changes.
    fn ready_jobs(&mut self) -> Vec<Job> {
        match self.shrink {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut self.jobs),
        }
    }

    /// Ends the group: a job, if it is as long as the policy asks.
    fn close(&mut self, accounting: &dyn Accounting) {
        let group = std::mem::take(&mut self.group);
        if group.summaries >= self.policy.fewest() {
            let job = job(&group.spans, group.depth, &self.policy, accounting);
            self.jobs.extend(job);
        }
    }
}

impl Shrink {
    fn take(&mut self, piece: &Piece, condensable: bool) {
        let span = &piece.span;
        self.tail = match span.body {
            SpanBody::Raw => span.tokens,
            _ => 0,
        };
        match condensable || (piece.is_short && !self.run.is_empty()) {
            true => self.run.push(span.clone()),
            false => self.end_run(),
        }
    }

    fn end_run(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        // A run begins and ends with a summary.
        while run.last().is_some_and(|span| span.body == SpanBody::Raw) {
            run.pop();
        }
        if !run.is_empty() {
            self.runs.push(run);
        }
    }

    /// The jobs of a view that costs too much: `jobs` where they save enough, or else a condensed
    /// summary of the newest neighbours, and of earlier ones as far as that does not save enough. Where
    /// the messages behind the summaries do not fit by themselves, shorter summaries do not help.
    fn jobs(mut self, jobs: Vec<Job>, policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
        self.end_run();
        let saved: u64 = jobs.iter().map(|job| job.source_tokens / 2).sum();
        let helps = self.tail < self.room.tokens;
        if !helps && self.goal == Goal::Fit {
            return Vec::new();
        }
        if helps && saved < self.excess {
            let squeezed = self.squeeze(policy, accounting);
            return if squeezed.is_empty() { jobs } else { squeezed };
        }
        jobs
    }

    /// One condensed summary for each run, the newest first, until they save enough; of summaries
    /// without neighbours only where the others do not.
    fn squeeze(&self, policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
        let (neighbours, single): (Vec<_>, Vec<_>) =
            self.runs.iter().rev().partition(|run| run.len() >= 2);
        let (mut jobs, mut left) = (Vec::new(), self.excess);
        for run in neighbours.into_iter().chain(single) {
            if left == 0 {
                break;
            }
            if let Some(job) = squeeze(run, left, policy, accounting) {
                left = left.saturating_sub(job.source_tokens / 2);
                jobs.push(job);
            }
        }
        jobs.sort_by_key(|job| job.range);
        jobs
    }
}

impl Pass for CondensedPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        match &self.reading {
            Some(reading) => reading.rest.map(ReadRequest::Entries),
            None => self.rest.map(ReadRequest::Spans),
        }
    }

    fn feed_spans(&mut self, spans: &[Span], accounting: &dyn Accounting) -> Vec<Job> {
        self.rest = rest_after(self.rest, spans);
        self.fed.extend(spans.iter().cloned());
        self.look_at_fed(accounting);
        self.ready_jobs()
    }

    fn feed_entries(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        if let Some(mut reading) = self.reading.take() {
            reading.may_be_request |= entries.iter().any(is_request);
            let last = entries.last().map(|entry| entry.seq);
            let rest = |range: SeqRange| SeqRange::new(last?.next(), range.last);
            reading.rest = reading.rest.and_then(rest);
            if reading.rest.is_some() {
                self.reading = Some(reading);
            } else {
                let (span, is_short) = (reading.span, true);
                self.step(Piece { span, is_short }, reading.may_be_request, accounting);
                self.look_at_fed(accounting);
            }
        }
        self.ready_jobs()
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        if let Some(request) = self.held.first_mut() {
            // The running request stays as it is.
            request.is_short = false;
        }
        self.take_held(accounting);
        self.close(accounting);
        let jobs = std::mem::take(&mut self.jobs);
        match self.shrink.take() {
            Some(shrink) => shrink.jobs(jobs, &self.policy, accounting),
            None => jobs,
        }
    }
}

/// The rest of a range of spans after a page of them.
pub(crate) fn rest_after(range: Option<SeqRange>, page: &[Span]) -> Option<SeqRange> {
    let last = page.last()?.range.last?;
    SeqRange::new(last.next(), range?.last)
}

/// One condensed summary of the newest of these neighbours: as few of them as save `excess` tokens
/// when the summary is half as long, or all of them; of the newest alone where it has no neighbour.
/// For a view that costs too much when condensing neighbours of equal depth would not save enough.
fn squeeze(
    neighbours: &[Span],
    excess: u64,
    policy: &DagPolicy,
    accounting: &dyn Accounting,
) -> Option<Job> {
    let (mut count, mut summaries, mut tokens) = (0_usize, 0_usize, 0_u64);
    let mut begins_with_summary = false;
    for span in neighbours.iter().rev() {
        if begins_with_summary && summaries >= 2 && tokens / 2 >= excess {
            break;
        }
        count += 1;
        begins_with_summary = span.body != SpanBody::Raw;
        summaries += usize::from(begins_with_summary);
        tokens = tokens.saturating_add(span.tokens);
    }
    let group = neighbours.get(neighbours.len() - count..)?;
    let deepest = group.iter().filter_map(summary_depth).max()?;
    job(group, deepest, policy, accounting)
}

fn summary_depth(span: &Span) -> Option<u32> {
    match span.body {
        SpanBody::Summary { depth, .. } => Some(depth),
        _ => None,
    }
}

fn job(group: &[Span], depth: u32, policy: &DagPolicy, accounting: &dyn Accounting) -> Option<Job> {
    let first = group.first()?.range.first;
    let range = SeqRange::new(first, group.last()?.range.last?)?;
    let children: Vec<Child> = group
        .iter()
        .filter_map(|span| {
            let range = span.closed_range()?;
            Some(match span.body.summary() {
                Some(id) => Child::Summary {
                    range,
                    id: id.clone(),
                },
                None => Child::Messages { range },
            })
        })
        .collect();
    let source_tokens = group
        .iter()
        .map(|span| span.tokens)
        .fold(0, u64::saturating_add);
    let depths = || group.iter().filter_map(summary_depth);
    let equal = depths().all(|found| found == depth);
    let messages = match depths().count() < group.len() {
        true => " with short messages between them",
        false => "",
    };
    let depth = depth.saturating_add(1);
    let overhead = summary_overhead(accounting, range, depth, &children);
    policy.gains(source_tokens, overhead).then(|| Job {
        kind: CONDENSED,
        range,
        expect: group.to_vec(),
        why: format!(
            "{} neighbouring summaries {} depth {}{messages} cost {source_tokens} tokens",
            depths().count(),
            if equal { "of" } else { "up to" },
            depth - 1
        ),
        work: Work::summarize(children, depth),
        request: None,
        source_tokens,
    })
}
