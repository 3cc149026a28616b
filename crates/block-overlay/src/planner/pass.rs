//! The planner and its pass: it reads the view, then the log from the first loop that is not omitted.

use compaction_plan::{Job, Label, Pass, PassInput, Planner, ReadRequest};
use memory_model::{Accounting, LogEntry, Seq, SeqRange, Span, SpanBody, ViewName};
use turn_map::TrimPolicy;

use crate::planner::BLOCKS;
use crate::planner::desired::desired;
use crate::planner::entry::LightEntry;
use crate::planner::jobs::{Planned, closed_spans};
use crate::planner::policy::BlockPolicy;

static PASSES: [Label; 1] = [BLOCKS];

/// Plans blocks as the view `blocks` of a log.
///
/// The log is cut into loops. Of the newest one the first turns stay raw, the recent ones are trimmed, and
/// those between are a summary; each older loop in scope is one summary; what is older is omitted.
/// When a newer loop begins, the block of the one before is replaced by a summary of the whole loop. A
/// summary is planned only where it costs less than what the view shows.
///
/// A pass reads the log from the first loop in scope on, so its cost follows the loops in scope. It keeps
/// of each message at most 200 bytes of text.
#[derive(Debug, Clone, Default)]
pub struct BlockPlanner {
    policy: BlockPolicy,
}

impl BlockPlanner {
    /// Creates a planner with this policy.
    pub fn new(policy: BlockPolicy) -> Self {
        Self { policy }
    }
}

impl Planner for BlockPlanner {
    fn view(&self) -> ViewName {
        ViewName::new(BLOCKS.as_str())
    }

    fn fingerprint(&self) -> String {
        // A policy of plain numbers and names always has a JSON form.
        let policy = serde_json::to_string(&self.policy).unwrap_or_default();
        format!("blocks@1 {policy}")
    }

    fn passes(&self) -> &[Label] {
        &PASSES
    }

    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass> {
        let room = input.room.filter(|room| !room.whole_tail);
        let rest = SeqRange::new(Seq::FIRST, input.head);
        Box::new(BlockPass {
            policy: self.policy.clone(),
            room: room.map(|room| room.tokens),
            head: input.head,
            rest: rest.map(ReadRequest::Spans),
            spans: Vec::new(),
            entries: Vec::new(),
        })
    }
}

#[derive(Debug)]
struct BlockPass {
    policy: BlockPolicy,
    room: Option<u64>,
    head: Seq,
    /// What was not fed yet.
    rest: Option<ReadRequest>,
    /// The spans from the first one that is not omitted on.
    spans: Vec<Span>,
    entries: Vec<LightEntry>,
}

impl Pass for BlockPass {
    fn next_read(&mut self) -> Option<ReadRequest> {
        self.rest
    }

    fn feed_spans(&mut self, spans: &[Span], _: &dyn Accounting) -> Vec<Job> {
        for span in spans {
            if span.body != SpanBody::Omitted || !self.spans.is_empty() {
                self.spans.push(span.clone());
            }
        }
        let next = spans.last().and_then(|span| span.range.last);
        let next = next.and_then(|last| SeqRange::new(last.next(), self.head));
        self.rest = match (next, self.spans.first()) {
            (Some(rest), _) => Some(ReadRequest::Spans(rest)),
            (None, Some(first)) => {
                SeqRange::new(first.range.first, self.head).map(ReadRequest::Entries)
            }
            (None, None) => None,
        };
        Vec::new()
    }

    fn feed_entries(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job> {
        let lines = self.policy.tool_output_max_lines;
        let trim = TrimPolicy::ToolOutputLines { lines };
        let light = entries
            .iter()
            .map(|entry| LightEntry::new(entry, trim, accounting));
        self.entries.extend(light);
        let next = entries
            .last()
            .and_then(|last| SeqRange::new(last.seq.next(), self.head));
        self.rest = next.map(ReadRequest::Entries);
        Vec::new()
    }

    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job> {
        let Some(first) = self.entries.first().map(|entry| entry.seq) else {
            return Vec::new();
        };
        let segments = desired(&self.entries, &self.policy, self.room, accounting);
        let planned = Planned {
            policy: &self.policy,
            spans: closed_spans(&self.spans, first, self.head),
            entries: &self.entries,
            accounting,
        };
        planned.jobs(&segments)
    }
}
