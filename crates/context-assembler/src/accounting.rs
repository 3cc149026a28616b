//! The cost of rendered messages.

use std::sync::Arc;

use memory_model::{Accounting, RenderingId, Summary};
use token_estimate::TokenEstimator;

use crate::context::ContextMessage;
use crate::render::{SUMMARY_RENDERING, render_summary};

/// Counts the tokens of messages in the form in which a context renders them, with an estimator.
#[derive(Debug, Clone)]
pub struct ContextAccounting {
    estimator: Arc<dyn TokenEstimator>,
}

impl ContextAccounting {
    /// Creates an accounting that uses `estimator`.
    pub fn new(estimator: Arc<dyn TokenEstimator>) -> Self {
        Self { estimator }
    }
}

impl Accounting for ContextAccounting {
    fn estimator(&self) -> &dyn TokenEstimator {
        &self.estimator
    }

    fn rendering(&self) -> RenderingId {
        RenderingId::new(SUMMARY_RENDERING)
    }

    fn summary(&self, summary: &Summary) -> u64 {
        render_summary(summary)
            .iter()
            .map(|message| cost(self, message))
            .sum()
    }
}

/// Returns the cost of a rendered message, in tokens.
pub(crate) fn cost(accounting: &dyn Accounting, message: &ContextMessage) -> u64 {
    accounting.parts(message.role, &message.parts)
}
