//! What clearing saves.

use compaction_plan::{Plan, Work};
use serde::Serialize;

use crate::CLEAR;

/// What the jobs of a plan that clear results save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClearFigures {
    /// Number of groups of calls and results that are cleared.
    pub groups: u64,
    /// Number of messages in these groups.
    pub messages: u64,
    /// Cost of the groups in the view, in tokens.
    pub tokens_before: u64,
    /// Cost of the groups with placeholders, in tokens.
    pub tokens_after: u64,
}

impl ClearFigures {
    /// Returns the figures of a plan.
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

    /// Number of tokens that are saved.
    pub fn saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_after)
    }
}
