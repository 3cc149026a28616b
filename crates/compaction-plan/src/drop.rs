//! Summaries without their least relevant lines: a planner around any other planner.

use std::fmt;
use std::sync::Arc;

use memory_model::{Summary, ViewName};
use serde::{Deserialize, Serialize};

use crate::details::{Details, WrittenText};
use crate::job::Request;
use crate::label::Label;
use crate::planner::{Goal, Pass, PassInput, Planner, Tail};
use facts::kept;
use pass::DropPass;

mod facts;
mod pass;

/// Name of the pass that leaves out lines of summaries, and of its jobs.
pub const DROP: Label = Label::from_static("drop");

/// Name and version of the rule by which summaries without some of their lines keep facts. It is in their recipe.
pub const DROP_RULE: &str = "drop-lines@1";

/// How much the summaries of a view may cost together, as contexts render them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropPolicy {
    /// Largest cost that needs no job, in tokens. Default 20,000.
    pub max_tokens: u64,
    /// Cost that jobs aim at, in tokens; more than `max_tokens` counts as that. Default 10,000. The further it
    /// is below `max_tokens`, the more seldom lines are chosen.
    pub target_tokens: u64,
}

impl Default for DropPolicy {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            target_tokens: 10_000,
        }
    }
}

impl fmt::Display for DropPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max={} target={}", self.max_tokens, self.target_tokens)
    }
}

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

/// A request to leave out lines until the text costs about `target` tokens, and at most `most`.
fn request(target: u64, most: u64) -> Request {
    Request {
        target_tokens: target,
        max_tokens: most,
        details: Some(DROP_RULE.to_owned()),
        drop_lines: true,
        ..Request::default()
    }
}
