//! The planner: leaves first, then condensed summaries.

use std::sync::Arc;

use async_trait::async_trait;
use compaction_plan::{BoxError, JobSink, Label, PassInput, Planner, Tail, ViewSource};
use memory_model::{LogEntry, Seq, ViewName};
use turn_map::{AtomBuilder, CutPolicy, TurnBoundary, TurnMap};

use crate::condensed::plan_condensed;
use crate::labels::{CONDENSED, LEAF};
use crate::leaf::plan_leaves;
use crate::policy::DagPolicy;
use crate::request::RequestRule;

static PASSES: [Label; 2] = [LEAF, CONDENSED];

/// Plans summaries of messages, and summaries of summaries, in the view `dag`. Together they form a directed acyclic
/// graph (DAG).
///
/// Messages before the fresh tail, which is the latest part of the log, are summarized chunk by chunk. These summaries
/// are the leaves. Neighbouring summaries of equal depth are summarized again, into condensed summaries. No leaf
/// separates a tool call from its result, and no leaf contains the request that the user still waits for.
#[derive(Debug, Clone, Default)]
pub struct DagPlanner {
    policy: DagPolicy,
}

impl DagPlanner {
    /// Creates a planner that follows `policy`.
    pub fn new(policy: DagPolicy) -> Self {
        Self { policy }
    }

    /// Returns the policy that the planner follows.
    pub fn policy(&self) -> &DagPolicy {
        &self.policy
    }
}

#[async_trait]
impl Planner for DagPlanner {
    fn view(&self) -> ViewName {
        ViewName::new("dag")
    }

    fn fingerprint(&self) -> String {
        // A policy consists of plain numbers, which always have a JSON form.
        format!(
            "dag@1 {}",
            serde_json::to_string(&self.policy).unwrap_or_default()
        )
    }

    fn passes(&self) -> &[Label] {
        &PASSES
    }

    fn max_iterations(&self) -> Option<u32> {
        self.policy.max_iterations
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let mut policy = self.policy.within(input.room);
        if *input.pass == CONDENSED {
            return plan_condensed(&policy, input, view, jobs).await;
        }
        if input.excess() > 0 {
            // A requested leaf is made for any number of messages.
            policy.leaf_min_messages = 1;
        }
        let newest = Tail::messages(policy.fresh_tail.messages);
        let newest = view.newest(newest).await?;
        let tail = tail_start(&newest, input.head, &policy);
        let rule = RequestRule::new(&self.policy, input.room, &newest, tail);
        plan_leaves(&policy, (rule, tail), input, view, jobs).await
    }
}

/// Returns the position at which the fresh tail begins. Entries from this position on are not compacted.
fn tail_start(newest: &[Arc<LogEntry>], head: Seq, policy: &DagPolicy) -> Seq {
    let Some(first) = newest.first().map(|entry| entry.seq) else {
        return head.next();
    };
    let origin = first.0 as usize;
    let mut builder = AtomBuilder::starting_at(origin);
    newest.iter().for_each(|entry| builder.push(&**entry));
    let atoms = builder.finish();
    let log_tokens = newest.last().map_or(0, |entry| entry.running);
    let max_tokens = policy.fresh_tail.limit(log_tokens);
    let turns = TurnMap::starting_at(origin, TurnBoundary::Role);
    let cut = CutPolicy::FreshTail {
        messages: policy.fresh_tail.messages,
        max_tokens,
    };
    let cost = |position: usize| {
        position
            .checked_sub(origin)
            .and_then(|index| newest.get(index))
            .map_or(0, |entry| entry.tokens)
    };
    let position = cut.cuts(&atoms, &turns, cost).tail().position();
    Seq(u32::try_from(position).unwrap_or(u32::MAX))
}
