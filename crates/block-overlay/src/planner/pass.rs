//! The planning round of the planner: reads a view and its log, and plans changes of the view.

use async_trait::async_trait;
use compaction_plan::{
    BoxError, EntryReader, JobSink, Label, PassInput, Planner, SpanReader, ViewSource,
};
use memory_model::{Seq, SeqRange, Span, SpanBody, ViewName};
use turn_map::TrimPolicy;

use crate::planner::BLOCKS;
use crate::planner::desired::desired;
use crate::planner::entry::LightEntry;
use crate::planner::jobs::{Planned, closed_spans};
use crate::planner::policy::BlockPolicy;

static PASSES: [Label; 1] = [BLOCKS];

/// Plans the compacted form of an agent's loops as the view `blocks` of a log. A loop is one run of the agent, from a
/// prompt to its answer.
///
/// The planner divides the log into loops. In the last loop, the first turns are unchanged, the recent turns have
/// shortened tool output, and the turns between are summarized. Each older loop in scope becomes one summary. Loops out
/// of scope are removed from the view. When a new loop begins, a summary of the whole previous loop replaces its block.
/// A summary is planned only if it costs less than the spans of the view that it replaces.
///
/// Each planning round (pass) reads the log only from the first message on that the view shows. It keeps only the first
/// words of each message, about 200 bytes.
#[derive(Debug, Clone, Default)]
pub struct BlockPlanner {
    policy: BlockPolicy,
}

impl BlockPlanner {
    /// Creates a planner that follows `policy`.
    pub fn new(policy: BlockPolicy) -> Self {
        Self { policy }
    }
}

#[async_trait]
impl Planner for BlockPlanner {
    fn view(&self) -> ViewName {
        ViewName::new(BLOCKS.as_str())
    }

    fn fingerprint(&self) -> String {
        // A policy of numbers and names always has a JSON form.
        let policy = serde_json::to_string(&self.policy).unwrap_or_default();
        format!("blocks@1 {policy}")
    }

    fn passes(&self) -> &[Label] {
        &PASSES
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let (policy, head, accounting) = (&self.policy, input.head, input.accounting);
        // Spans of the view, starting with the first one that is not omitted.
        let mut shown: Vec<Span> = Vec::new();
        let mut spans = SpanReader::new(view, SeqRange::new(Seq::FIRST, head));
        while let Some(span) = spans.next().await? {
            if span.body != SpanBody::Omitted || !shown.is_empty() {
                shown.push(span);
            }
        }
        let first = shown.first().map(|span| span.range.first);
        let Some(range) = first.and_then(|first| SeqRange::new(first, head)) else {
            return Ok(());
        };
        let lines = policy.tool_output_max_lines;
        let trim = TrimPolicy::ToolOutputLines { lines };
        let mut light: Vec<LightEntry> = Vec::new();
        let mut entries = EntryReader::new(view, range);
        while let Some(entry) = entries.next().await? {
            light.push(LightEntry::new(&entry, trim, accounting));
        }
        let room = input.room.filter(|room| !room.whole_tail);
        let room = room.map(|room| room.tokens);
        let planned = Planned {
            policy,
            spans: closed_spans(&shown, range.first, head),
            entries: &light,
            accounting,
        };
        let segments = desired(&light, policy, room, accounting);
        jobs.extend(planned.jobs(&segments));
        Ok(())
    }
}
