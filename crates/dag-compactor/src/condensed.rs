//! The pass over summaries: runs of equal depth become fewer summaries.

use compaction_plan::{Goal, Job, Pass, PassInput, ReadRequest, Room, Work};
use memory_model::{Accounting, Child, Seq, SeqRange, Span, SpanBody, summary_overhead};

use crate::labels::CONDENSED;
use crate::policy::DagPolicy;

/// A pass over the summaries of a view, fed span by span.
#[derive(Debug)]
pub(crate) struct CondensedPass {
    policy: DagPolicy,
    /// The part of the view that was not fed yet.
    rest: Option<SeqRange>,
    /// Neighbouring summaries of equal depth.
    group: Group,
    /// Jobs that wait for the end of the view, where the view costs too much.
    jobs: Vec<Job>,
    /// Figures of a view that costs too much; `None` where it fits.
    shrink: Option<Shrink>,
}

/// Neighbouring summaries that become one.
#[derive(Debug, Default)]
struct Group {
    spans: Vec<Span>,
    depth: u32,
    tokens: u64,
}

/// A view that costs more than its room.
#[derive(Debug)]
struct Shrink {
    excess: u64,
    room: Room,
    goal: Goal,
    /// Neighbouring summaries of any depths, up to the span that was fed last.
    run: Vec<Span>,
    /// The newest finished run of two or more summaries, or the newest single summary.
    newest: Vec<Span>,
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
            newest: Vec::new(),
            tail: 0,
        };
        Self {
            policy,
            rest: SeqRange::new(Seq::FIRST, input.head),
            group: Group::default(),
            jobs: Vec::new(),
            shrink: input.room.filter(|_| input.excess() > 0).map(shrink),
        }
    }

    /// The depth of a summary that may be condensed.
    fn depth(&self, span: &Span) -> Option<u32> {
        match &span.body {
            SpanBody::Summary { depth, .. }
                if self.policy.max_depth.is_none_or(|most| *depth < most) =>
            {
                Some(*depth)
            }
            _ => None,
        }
    }

    fn take(&mut self, span: &Span, accounting: &dyn Accounting) {
        let found = self.depth(span);
        let group = &self.group;
        let (len, fewest) = (group.spans.len(), self.policy.fewest());
        let most = self.policy.condensed_max.map(|most| most.max(fewest));
        let full = most.is_some_and(|most| len >= most)
            || (len >= fewest && !self.policy.fits(group.tokens.saturating_add(span.tokens)));
        if found != Some(group.depth) || full {
            self.close(accounting);
        }
        if let Some(depth) = found {
            self.group.depth = depth;
            self.group.tokens = self.group.tokens.saturating_add(span.tokens);
            self.group.spans.push(span.clone());
        }
        if let Some(shrink) = &mut self.shrink {
            shrink.take(span, found.is_some());
        }
    }

    /// Ends the group: a job, if it is as long as the policy asks.
    fn close(&mut self, accounting: &dyn Accounting) {
        let group = std::mem::take(&mut self.group);
        if group.spans.len() >= self.policy.fewest() {
            let job = job(&group.spans, group.depth, &self.policy, accounting);
            self.jobs.extend(job);
        }
    }
}

impl Shrink {
    fn take(&mut self, span: &Span, condensable: bool) {
        self.tail = match span.body {
            SpanBody::Raw => span.tokens,
            _ => 0,
        };
        match condensable {
            true => self.run.push(span.clone()),
            false => self.end_run(),
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.len() >= 2 || (run.len() == 1 && self.newest.len() < 2) {
            self.newest = run;
        }
    }

    /// The jobs of a view that costs too much: `jobs` where they save enough, or else one condensed
    /// summary of the newest neighbours. Where the messages behind the summaries do not fit by
    /// themselves, shorter summaries do not help.
    fn jobs(mut self, jobs: Vec<Job>, policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
        self.end_run();
        let saved: u64 = jobs.iter().map(|job| job.source_tokens / 2).sum();
        let helps = self.tail < self.room.tokens;
        if !helps && self.goal == Goal::Fit {
            return Vec::new();
        }
        if helps && saved < self.excess {
            let squeezed = squeeze(&self.newest, self.excess, policy, accounting);
            return squeezed.map_or(jobs, |job| vec![job]);
        }
        jobs
    }
}

impl Pass for CondensedPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        self.rest.map(ReadRequest::Spans)
    }

    fn feed_spans(&mut self, spans: &[Span], accounting: &dyn Accounting) -> Vec<Job> {
        self.rest = rest_after(self.rest, spans);
        for span in spans {
            self.take(span, accounting);
        }
        match self.shrink {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut self.jobs),
        }
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
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
    let (mut count, mut tokens) = (0_usize, 0_u64);
    for span in neighbours.iter().rev() {
        if count >= 2 && tokens / 2 >= excess {
            break;
        }
        count += 1;
        tokens = tokens.saturating_add(span.tokens);
    }
    let group = neighbours.get(neighbours.len() - count..)?;
    let depth = |span: &Span| match span.body {
        SpanBody::Summary { depth, .. } => depth,
        _ => 0,
    };
    let deepest = group.iter().map(depth).max()?;
    job(group, deepest, policy, accounting)
}

fn job(group: &[Span], depth: u32, policy: &DagPolicy, accounting: &dyn Accounting) -> Option<Job> {
    let first = group.first()?.range.first;
    let range = SeqRange::new(first, group.last()?.range.last?)?;
    let children: Vec<Child> = group
        .iter()
        .filter_map(|span| {
            Some(Child::Summary {
                range: span.closed_range()?,
                id: span.body.summary()?.clone(),
            })
        })
        .collect();
    let source_tokens = group
        .iter()
        .map(|span| span.tokens)
        .fold(0, u64::saturating_add);
    let equal = group.iter().all(
        |span| matches!(&span.body, SpanBody::Summary { depth: found, .. } if *found == depth),
    );
    let depth = depth.saturating_add(1);
    let overhead = summary_overhead(accounting, range, depth, &children);
    policy.gains(source_tokens, overhead).then(|| Job {
        kind: CONDENSED,
        range,
        expect: group.to_vec(),
        why: format!(
            "{} neighbouring summaries {} depth {} cost {source_tokens} tokens",
            group.len(),
            if equal { "of" } else { "up to" },
            depth - 1
        ),
        work: Work::summarize(children, depth),
        request: None,
        source_tokens,
    })
}
