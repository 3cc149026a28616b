//! The planner: leaves first, then condensed summaries.

use std::collections::VecDeque;

use memory_model::{
    Accounting, Body, Job, LogEntry, Pass, PassInput, PassKind, Planner, Seq, SeqRange, Span,
    ViewName,
};
use turn_map::{AtomBuilder, CutPolicy, GroupingPolicy, TurnBoundary, TurnMap};

use crate::condensed;
use crate::leaf::{LeafRun, Run};
use crate::policy::DagPolicy;

/// Maximum number of messages in a tail of turns, notes not counted: anna's later generation's.
const MOST_TURN_MESSAGES: usize = 120;

/// Plans a DAG of summaries in the view `dag`.
///
/// Messages outside the fresh tail become leaves, chunk by chunk; neighbouring summaries of equal
/// depth become condensed summaries. No chunk splits a tool call from its result.
#[derive(Debug, Clone, Default)]
pub struct DagPlanner {
    policy: DagPolicy,
}

impl DagPlanner {
    /// A planner with this policy.
    pub fn new(policy: DagPolicy) -> Self {
        Self { policy }
    }

    /// The policy.
    pub fn policy(&self) -> &DagPolicy {
        &self.policy
    }
}

impl Planner for DagPlanner {
    fn view(&self) -> ViewName {
        ViewName::new("dag")
    }

    fn fingerprint(&self) -> String {
        // A policy of plain numbers always has a JSON form.
        format!(
            "dag@1 {}",
            serde_json::to_string(&self.policy).unwrap_or_default()
        )
    }

    fn passes(&self) -> &[PassKind] {
        &[PassKind::Leaf, PassKind::Condensed]
    }

    fn max_iterations(&self) -> Option<u32> {
        self.policy.max_iterations
    }

    fn window(&self) -> usize {
        match self.policy.fresh_turns {
            Some(_) => MOST_TURN_MESSAGES,
            None => self.policy.fresh_tail.messages,
        }
    }

    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass> {
        let mut policy = self.policy.within(input.room);
        let excess = input.excess();
        match input.kind {
            PassKind::Condensed => {
                let mut jobs = condensed::jobs(input.spans, &policy, input.accounting);
                let saved: u64 = jobs.iter().map(|job| job.source_tokens / 2).sum();
                // Where the messages behind the summaries cost too much by themselves, shorter
                // summaries do not help.
                let tail = input.spans.last().filter(|span| span.body == Body::Raw);
                let tail = tail.map_or(0, |span| span.tokens);
                let helps = input.room.is_some_and(|room| tail < room.tokens);
                if helps
                    && saved < excess
                    && let Some(job) =
                        condensed::squeeze(input.spans, excess, &policy, input.accounting)
                {
                    jobs = vec![job];
                }
                Box::new(Ready { jobs })
            }
            PassKind::Leaf => {
                if excess > 0 {
                    // However few messages there are, a leaf of them is better than none.
                    policy.leaf_min_messages = 1;
                }
                let tail = tail_start(&input, &policy);
                let runs = runs(input.spans, tail)
                    .into_iter()
                    .map(LeafRun::new)
                    .collect();
                Box::new(Leaves { policy, runs })
            }
        }
    }
}

/// Where the fresh tail begins: nothing from there on is compacted.
fn tail_start(input: &PassInput<'_>, policy: &DagPolicy) -> Seq {
    let Some(first) = input.newest.first().map(|entry| entry.seq) else {
        return input.head.next();
    };
    let origin = first.0 as usize;
    let mut builder = AtomBuilder::starting_at(origin, GroupingPolicy::default());
    for entry in input.newest {
        builder.push(entry);
    }
    let atoms = builder.finish();
    let log_tokens = input.newest.last().map_or(0, |entry| entry.running);
    let max_tokens = policy.fresh_tail.limit(log_tokens);
    let mut turns = TurnMap::starting_at(origin, TurnBoundary::Role);
    let cut = match policy.fresh_turns {
        Some(newest) => {
            input.newest.iter().for_each(|entry| turns.push(entry));
            CutPolicy::FreshTurns {
                turns: newest,
                max_messages: MOST_TURN_MESSAGES,
                budget_percent: 0,
                max_tokens,
            }
        }
        None => CutPolicy::FreshTail {
            messages: policy.fresh_tail.messages,
            max_tokens,
        },
    };
    let cost = |position: usize| {
        position
            .checked_sub(origin)
            .and_then(|index| input.newest.get(index))
            .map_or(0, |entry| entry.tokens)
    };
    let position = cut.cuts(&atoms, &turns, cost).tail().position();
    Seq(u32::try_from(position).unwrap_or(u32::MAX))
}

/// The stretches of messages before the tail.
fn runs(spans: &[Span], tail: Seq) -> Vec<Run> {
    let mut runs = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        if span.body != Body::Raw || span.range.first >= tail {
            continue;
        }
        let last = span
            .range
            .last
            .map_or(tail.prev(), |last| last.min(tail.prev()));
        let Some(range) = SeqRange::new(span.range.first, last) else {
            continue;
        };
        let summary = |index: Option<usize>| {
            let body = index
                .and_then(|index| spans.get(index))
                .map(|span| &span.body);
            matches!(body, Some(Body::Summary { .. }))
        };
        let whole = span.range.last == Some(last);
        let bridged = whole && summary(index.checked_sub(1)) && summary(Some(index + 1));
        runs.push(Run { range, bridged });
    }
    runs
}

/// A pass whose jobs follow from the spans alone.
#[derive(Debug)]
struct Ready {
    jobs: Vec<Job>,
}

impl Pass for Ready {
    fn wants(&self) -> Option<SeqRange> {
        None
    }

    fn feed(&mut self, _entries: &[LogEntry], _accounting: &dyn Accounting) -> Vec<Job> {
        Vec::new()
    }

    fn finish(&mut self, _accounting: &dyn Accounting) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }
}

/// A pass over runs of messages.
#[derive(Debug)]
struct Leaves {
    policy: DagPolicy,
    runs: VecDeque<LeafRun>,
}

impl Pass for Leaves {
    fn wants(&self) -> Option<SeqRange> {
        self.runs.iter().find_map(LeafRun::wants)
    }

    fn feed(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        let mut jobs = Vec::new();
        for entry in entries {
            // A run that has all its entries is done before the next one begins.
            while let Some(front) = self.runs.front() {
                match front.wants() {
                    Some(range) if range.first == entry.seq => break,
                    Some(_) => return jobs,
                    None => {
                        let Some(run) = self.runs.pop_front() else {
                            break;
                        };
                        jobs.extend(run.finish(&self.policy, accounting));
                    }
                }
            }
            if let Some(run) = self.runs.front_mut() {
                run.feed(entry, &self.policy, accounting, &mut jobs);
            }
        }
        jobs
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let runs = std::mem::take(&mut self.runs);
        runs.into_iter()
            .flat_map(|run| run.finish(&self.policy, accounting))
            .collect()
    }
}
