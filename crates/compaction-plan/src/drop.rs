//! Summaries without their least relevant lines: a planner around any other planner.

use std::sync::Arc;

use memory_model::{Summary, ViewName};

use crate::details::{Details, WrittenText};
use crate::job::Request;
use crate::label::Label;
use crate::planner::{Goal, Pass, PassInput, Planner, Tail};
use facts::kept;
use pass::DropPass;
use policy::request;

mod facts;
mod pass;
mod policy;

pub use policy::{DROP, DROP_RULE, DropPolicy};

/// Plans what another planner plans, and then leaves out lines of the summaries that the view shows, where these cost more
/// together than the policy says.
///
/// A job has one source, the summary that is shown, and its summary unfolds to what that one unfolds to. Where a view only
/// has to fit its room, nothing is left out.
#[derive(Debug, Clone)]
pub struct DroppingPlanner {
    inner: Arc<dyn Planner>,
    policy: DropPolicy,
    passes: Vec<Label>,
}

impl DroppingPlanner {
    /// Creates a planner around another one.
    pub fn new(inner: Arc<dyn Planner>, policy: DropPolicy) -> Self {
        let mut passes = inner.passes().to_vec();
        passes.push(DROP);
        Self {
            inner,
            policy,
            passes,
        }
    }
}

impl Planner for DroppingPlanner {
    fn view(&self) -> ViewName {
        self.inner.view()
    }

    fn fingerprint(&self) -> String {
        format!("drop@1 {} over {}", self.policy, self.inner.fingerprint())
    }

    fn passes(&self) -> &[Label] {
        &self.passes
    }

    fn max_iterations(&self) -> Option<u32> {
        self.inner.max_iterations()
    }

    fn tail(&self, pass: &Label) -> Tail {
        match *pass == DROP {
            true => Tail::NONE,
            false => self.inner.tail(pass),
        }
    }

    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass> {
        if *input.pass != DROP {
            return self.inner.begin(input);
        }
        let head = (input.goal != Goal::Fit).then_some(input.head);
        Box::new(DropPass::new(self.policy, head))
    }

    fn details(&self, written: &WrittenText<'_>) -> Details {
        let request = written.job.request.as_ref();
        match request.is_some_and(|request| request.drop_lines) {
            true => kept(written),
            false => self.inner.details(written),
        }
    }

    /// Of a summary of its own: to leave out lines again, so that its text costs no more than the whole summary does now.
    fn request_again(&self, summary: &Summary) -> Option<Request> {
        let rule = format!(" details={DROP_RULE}");
        match summary.recipe.as_str().ends_with(&rule) {
            true => Some(request(summary.tokens, summary.tokens)),
            false => self.inner.request_again(summary),
        }
    }
}
