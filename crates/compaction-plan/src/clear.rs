//! A planner that wraps another planner and replaces old tool results by placeholders.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{RawJson, Seq, Summary, ViewName};
use serde::Serialize;
use turn_map::ClearPolicy;

use crate::details::{Details, WrittenText};
use crate::job::{Plan, Request, Work};
use crate::label::Label;
use crate::planner::{Goal, PassInput, Planner};
use crate::source::{BoxError, JobSink, ViewSource};
use lens::Lens;

mod lens;
mod pass;

pub use pass::CLEAR;

/// Name of the pass (planning round) that replaces old tool results by placeholders, before the passes of the inner
/// planner. The pass changes the view (the compacted log) only for the goal [`Goal::Fit`].
pub const CLEAR_TO_FIT: Label = Label::from_static("clear_to_fit");

/// Plans the same changes of the view (the compacted log) as an inner planner. Then replaces old tool results by
/// placeholders in the messages that the inner planner left unchanged.
///
/// The inner planner sees the original messages instead of placeholders, so it compacts them like other messages. A
/// summary of messages with placeholders is planned only if it makes the view cheaper.
#[derive(Debug, Clone)]
pub struct ClearingPlanner {
    inner: Arc<dyn Planner>,
    policy: ClearPolicy,
    passes: Vec<Label>,
}

impl ClearingPlanner {
    /// Creates a planner that runs `inner`, and clears old tool results by `policy`.
    pub fn new(inner: Arc<dyn Planner>, policy: ClearPolicy) -> Self {
        let mut passes = vec![CLEAR_TO_FIT];
        passes.extend(inner.passes().iter().cloned());
        passes.push(CLEAR);
        Self {
            inner,
            policy,
            passes,
        }
    }
}

#[async_trait]
impl Planner for ClearingPlanner {
    fn view(&self) -> ViewName {
        self.inner.view()
    }

    fn fingerprint(&self) -> String {
        format!("clear@1 {} over {}", self.policy, self.inner.fingerprint())
    }

    fn passes(&self) -> &[Label] {
        &self.passes
    }

    fn max_iterations(&self) -> Option<u32> {
        self.inner.max_iterations()
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        if *input.pass == CLEAR || *input.pass == CLEAR_TO_FIT {
            let is_idle = *input.pass == CLEAR_TO_FIT && input.goal != Goal::Fit;
            return match is_idle {
                true => Ok(()),
                false => pass::plan(&self.policy, input, view, jobs).await,
            };
        }
        let lens = Lens::new(view, input.head);
        let mut rewrite = |job| jobs.extend(lens.rewrite(job, input.accounting));
        self.inner.plan(input, &lens, &mut rewrite).await
    }

    fn details(&self, written: &WrittenText<'_>) -> Details {
        self.inner.details(written)
    }

    fn keeping(
        &self,
        kept_from: Seq,
        facts: &BTreeMap<String, RawJson>,
    ) -> Option<Box<dyn Planner>> {
        self.inner.keeping(kept_from, facts)
    }

    fn request_again(&self, summary: &Summary) -> Option<Request> {
        self.inner.request_again(summary)
    }
}

/// Number and cost of the tool results that a plan replaces by placeholders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClearFigures {
    /// Number of cleared groups. A group is a message with tool calls and the results.
    pub groups: u64,
    /// Number of messages in the cleared groups.
    pub messages: u64,
    /// Cost of the cleared groups before the plan, in tokens.
    pub tokens_before: u64,
    /// Cost of the cleared groups after the plan, with placeholders, in tokens.
    pub tokens_after: u64,
}

impl ClearFigures {
    /// Adds up the tool results that a plan replaces by placeholders, over all jobs of the plan.
    pub fn of(plan: &Plan) -> Self {
        let mut figures = Self::default();
        for job in plan.jobs.iter().filter(|job| job.kind == CLEAR) {
            let Work::Replace(spans) = &job.work else {
                continue;
            };
            figures.groups += 1;
            figures.messages += job.range.len();
            figures.tokens_before = figures.tokens_before.saturating_add(job.source_tokens);
            let after = spans.iter().map(|span| span.tokens);
            figures.tokens_after = after.fold(figures.tokens_after, u64::saturating_add);
        }
        figures
    }

    /// Returns the number of tokens that clearing saves.
    pub fn saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_after)
    }
}
