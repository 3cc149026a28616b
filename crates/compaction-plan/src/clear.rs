//! A planner around another one that shows old results as placeholders.

use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{Summary, ViewName};
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

/// Name of the pass that clears tool results before the inner planner's passes. It plans jobs only if the view must fit
/// its [`Room`](crate::Room).
pub const CLEAR_TO_FIT: Label = Label::from_static("clear_to_fit");

/// Plans the jobs of another planner, and then shows old results as placeholders in the messages that this planner left
/// unchanged.
///
/// The inner planner sees cleared groups as messages, so it compacts them as it would without this planner. A job of
/// the inner planner over cleared groups is planned only if it makes the view cheaper.
#[derive(Debug, Clone)]
pub struct ClearingPlanner {
    inner: Arc<dyn Planner>,
    policy: ClearPolicy,
    passes: Vec<Label>,
}

impl ClearingPlanner {
    /// Creates a planner that runs `inner` and clears tool results by `policy`.
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

    fn request_again(&self, summary: &Summary) -> Option<Request> {
        self.inner.request_again(summary)
    }
}

/// Number and cost of the tool results that the jobs of a plan replace by placeholders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClearFigures {
    /// Number of groups of tool calls and results that are cleared.
    pub groups: u64,
    /// Number of messages in the cleared groups.
    pub messages: u64,
    /// Cost of the cleared groups in the view before the plan, in tokens.
    pub tokens_before: u64,
    /// Cost of the cleared groups after the plan, with placeholders instead of results, in tokens.
    pub tokens_after: u64,
}

impl ClearFigures {
    /// Counts the jobs of a plan that clear results.
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

    /// Returns the number of tokens by which clearing makes the view cheaper.
    pub fn saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_after)
    }
}
