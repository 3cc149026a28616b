//! The planner around a planner.

use std::sync::Arc;

use compaction_plan::{Details, Goal, Label, Pass, PassInput, Planner, Request, Tail, WrittenText};
use memory_model::{Summary, ViewName};
use turn_map::{ClearPolicy, TrimPolicy};

use crate::clear_pass::ClearPass;
use crate::lens::LensPass;
use crate::{CLEAR, CLEAR_TO_FIT};

/// Plans what another planner plans, and then shows old results as placeholders where that planner left the
/// messages as they are.
///
/// The inner planner sees cleared groups as messages, so it compacts them as it would without this planner. What
/// it would put in their place is planned only where it costs less than they cost now.
#[derive(Debug, Clone)]
pub struct ClearingPlanner {
    inner: Arc<dyn Planner>,
    policy: ClearPolicy,
    passes: Vec<Label>,
}

/// Error returned for a policy that shortens results by lines: planners of blocks do that themselves, and the
/// two cannot be told apart in a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "old results cannot be cleared by {0}: use a policy that leaves out characters or whole results"
)]
pub struct UnsupportedTrim(pub TrimPolicy);

impl ClearingPlanner {
    /// Creates a planner around another one.
    ///
    /// # Errors
    /// For a policy that shortens results by [`TrimPolicy::ToolOutputLines`].
    pub fn new(inner: Arc<dyn Planner>, policy: ClearPolicy) -> Result<Self, UnsupportedTrim> {
        let trim = policy.trim();
        if matches!(trim, TrimPolicy::ToolOutputLines { .. }) {
            return Err(UnsupportedTrim(trim));
        }
        let mut passes = vec![CLEAR_TO_FIT];
        passes.extend(inner.passes().iter().cloned());
        passes.push(CLEAR);
        Ok(Self {
            inner,
            policy,
            passes,
        })
    }

    /// The policy that says which results are cleared.
    pub fn policy(&self) -> &ClearPolicy {
        &self.policy
    }
}

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

    fn tail(&self, pass: &Label) -> Tail {
        match *pass == CLEAR || *pass == CLEAR_TO_FIT {
            true => Tail::NONE,
            false => self.inner.tail(pass),
        }
    }

    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass> {
        let is_idle = *input.pass == CLEAR_TO_FIT && input.goal != Goal::Fit;
        if is_idle || *input.pass == CLEAR || *input.pass == CLEAR_TO_FIT {
            let head = (!is_idle).then_some(input.head);
            return Box::new(ClearPass::new(self.policy.clone(), head));
        }
        Box::new(LensPass::new(self.inner.begin(input), input.head))
    }

    fn details(&self, written: &WrittenText<'_>) -> Details {
        self.inner.details(written)
    }

    fn request_again(&self, summary: &Summary) -> Option<Request> {
        self.inner.request_again(summary)
    }
}
