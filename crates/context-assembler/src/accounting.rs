//! What things cost when rendered.

use std::sync::Arc;

use memory_model::{Accounting, CountedParts, Part, Role, Summary};
use token_estimate::{EstimatorId, TokenEstimator};

use crate::context::ContextMessage;
use crate::render::render_summary;

/// The accounting of contexts: an estimator, applied to what is really rendered.
#[derive(Debug, Clone)]
pub struct ContextAccounting {
    estimator: Arc<dyn TokenEstimator>,
}

impl ContextAccounting {
    /// Accounts with this estimator.
    pub fn new(estimator: Arc<dyn TokenEstimator>) -> Self {
        Self { estimator }
    }

    /// The estimator.
    pub fn token_estimator(&self) -> &Arc<dyn TokenEstimator> {
        &self.estimator
    }
}

impl Accounting for ContextAccounting {
    fn estimator(&self) -> EstimatorId {
        self.estimator.id()
    }

    fn text(&self, text: &str) -> u64 {
        self.estimator.text(text)
    }

    fn parts(&self, role: Role, parts: &[Part]) -> u64 {
        self.estimator.message(&CountedParts { role, parts })
    }

    fn summary(&self, summary: &Summary) -> u64 {
        render_summary(summary)
            .iter()
            .map(|message| cost(self, message))
            .sum()
    }
}

/// What a rendered message costs, in tokens.
pub(crate) fn cost(accounting: &dyn Accounting, message: &ContextMessage) -> u64 {
    accounting.parts(message.role, &message.parts)
}
