//! The planning round (pass) over summaries: condenses runs of neighbouring summaries of equal depth into fewer
//! summaries.
//!
//! A condensed summary also covers messages between two summaries if they are too short for a leaf, such as a request
//! of a few words. Otherwise these messages would always separate the two summaries.

use compaction_plan::{
    BoxError, EntryReader, Goal, Job, JobSink, PassInput, Room, SpanReader, ViewSource, Work,
};
use memory_model::{Accounting, Child, Seq, SeqRange, Span, SpanBody, summary_overhead};

use crate::labels::CONDENSED;
use crate::policy::DagPolicy;
use crate::request::{Held, is_request};

/// Plans condensed summaries: summaries of neighbouring summaries of a view.
pub(crate) async fn plan_condensed(
    policy: &DagPolicy,
    input: PassInput<'_>,
    view: &dyn ViewSource,
    jobs: &mut dyn JobSink,
) -> Result<(), BoxError> {
    let mut shrink = input
        .room
        .filter(|_| input.excess() > 0)
        .map(|room| Shrink::new(&input, room));
    // If the view costs too much, the jobs wait until the whole view is read.
    let mut waiting: Vec<Job> = Vec::new();
    let sink: &mut dyn JobSink = match shrink {
        Some(_) => &mut waiting,
        None => &mut *jobs,
    };
    let mut groups = Groups {
        policy,
        accounting: input.accounting,
        jobs: sink,
        group: Group::default(),
    };
    // Spans from the latest short messages that may contain the user's running request.
    let mut held = Held(Vec::new());
    let mut take = |piece: ClassifiedSpan| {
        if let Some(shrink) = &mut shrink {
            shrink.take(&piece, policy.condenses(&piece.span).is_some());
        }
        groups.take(piece);
    };
    let mut after_summary = false;
    let mut spans = SpanReader::new(view, SeqRange::new(Seq::FIRST, input.head));
    while let Some(span) = spans.next().await? {
        let is_short = policy.bridge && after_summary && is_short(&span, policy, input.accounting);
        after_summary = policy.condenses(&span).is_some();
        let mut may_be_request = is_short && policy.keep_request;
        if may_be_request && !held.0.is_empty() {
            may_be_request = has_request(view, &span).await?;
        }
        held.take(ClassifiedSpan { span, is_short }, may_be_request, &mut take);
    }
    let Held(mut held) = held;
    if let Some(request) = held.first_mut() {
        // The running request is not condensed.
        request.is_short = false;
    }
    held.into_iter().for_each(&mut take);
    groups.close();
    if let Some(shrink) = shrink {
        jobs.extend(shrink.jobs(waiting, policy, input.accounting));
    }
    Ok(())
}

/// Returns whether a span consists of messages that are too short for a leaf.
fn is_short(span: &Span, policy: &DagPolicy, accounting: &dyn Accounting) -> bool {
    let Some(range) = span.closed_range() else {
        return false;
    };
    let overhead = || summary_overhead(accounting, range, 0, &[Child::Messages { range }]);
    span.body == SpanBody::Raw && !policy.gains(span.tokens, overhead())
}

/// Returns whether a span contains a message that may be the user's running request.
async fn has_request(view: &dyn ViewSource, span: &Span) -> Result<bool, BoxError> {
    let mut entries = EntryReader::new(view, span.closed_range());
    let mut found = false;
    while let Some(entry) = entries.next().await? {
        found |= is_request(&entry);
    }
    Ok(found)
}

/// A span with the properties that decide whether it is condensed.
#[derive(Debug)]
struct ClassifiedSpan {
    span: Span,
    /// Whether the span consists of messages after a summary that are too short for a leaf.
    is_short: bool,
}

/// Neighbouring summaries that one summary condenses.
#[derive(Debug, Default)]
struct Group {
    /// Summaries, and short messages between the summaries.
    spans: Vec<Span>,
    summaries: usize,
    /// Short messages after the last summary. They join the group only if another summary follows.
    short: Option<Span>,
    depth: u32,
    tokens: u64,
}

impl Group {
    /// Returns the cost of the group in tokens if `span` is added.
    fn tokens_with(&self, span: &Span) -> u64 {
        let short = self.short.as_ref().map_or(0, |short| short.tokens);
        let tokens = self.tokens.saturating_add(short);
        tokens.saturating_add(span.tokens)
    }

    fn push(&mut self, summary: Span) {
        self.tokens = self.tokens_with(&summary);
        self.spans.extend(self.short.take());
        self.spans.push(summary);
        self.summaries += 1;
    }
}

/// Builder of groups of neighbouring summaries of equal depth.
struct Groups<'p> {
    policy: &'p DagPolicy,
    accounting: &'p dyn Accounting,
    jobs: &'p mut dyn JobSink,
    group: Group,
}

impl Groups<'_> {
    fn take(&mut self, ClassifiedSpan { span, is_short }: ClassifiedSpan) {
        if is_short {
            let follows = self.group.summaries > 0;
            self.group.short = follows.then_some(span);
            return;
        }
        let (group, policy) = (&self.group, self.policy);
        let (len, fewest) = (group.summaries, policy.fewest());
        let most = policy.condensed_max.map(|most| most.max(fewest));
        let full = most.is_some_and(|most| len >= most)
            || (len >= fewest && !policy.fits(group.tokens_with(&span)));
        let depth = policy.condenses(&span);
        if depth != Some(group.depth) || full {
            self.close();
        }
        if let Some(depth) = depth {
            self.group.depth = depth;
            self.group.push(span);
        }
    }

    /// Ends the group, and plans a summary of it if it has enough summaries.
    fn close(&mut self) {
        let group = std::mem::take(&mut self.group);
        if group.summaries >= self.policy.fewest() {
            let job = job(&group.spans, group.depth, self.policy, self.accounting);
            self.jobs.extend(job);
        }
    }
}

/// State of a view that costs more than the room for it.
#[derive(Debug)]
struct Shrink {
    excess: u64,
    room: Room,
    goal: Goal,
    /// Current run: neighbouring summaries of any depths, with short messages after them, up to the last span read.
    run: Vec<Span>,
    /// Finished runs, oldest first. The user's running request may be between two runs.
    runs: Vec<Vec<Span>>,
    /// Cost of the messages after the last summary, in tokens.
    tail: u64,
}

impl Shrink {
    fn new(input: &PassInput<'_>, room: Room) -> Self {
        Self {
            excess: input.excess(),
            room,
            goal: input.goal,
            run: Vec::new(),
            runs: Vec::new(),
            tail: 0,
        }
    }

    fn take(&mut self, piece: &ClassifiedSpan, condensable: bool) {
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

    /// Returns the jobs (summaries to write) for a view that costs too much. Returns `jobs` if they save enough tokens.
    /// Otherwise condenses the last summaries, and earlier ones until enough tokens are saved. If the messages after
    /// the summaries alone cost as much as the room, shorter summaries do not help. The result is then empty for
    /// `Goal::Fit`, and `jobs` otherwise.
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

    /// Plans one condensed summary for each run, latest run first, until enough tokens are saved. Runs of a single
    /// summary come last.
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

/// Plans one condensed summary of the last of these neighbours, for a view that costs too much. It covers as few
/// neighbours as necessary to save `excess` tokens if the summary has half their length, or all of them. A single
/// neighbour is condensed alone.
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
