//! An estimator with the safety factor and the overhead of a model.

use std::sync::Arc;

use crate::{EstimatorId, MessageView, SafetyFactor, TokenEstimator, ToolView};

/// Wraps an estimator. Counts are the wrapped estimator's, but the safety factor and the overhead of tools depend on
/// the model.
#[derive(Debug)]
pub(super) struct ModelEstimator {
    pub(super) estimator: Arc<dyn TokenEstimator>,
    /// Factor by which the wrapped estimator's safety factor is multiplied.
    pub(super) safety_factor: SafetyFactor,
    /// Overhead that replaces the wrapped estimator's; `None` to keep it.
    pub(super) tools_overhead: Option<u64>,
}

impl TokenEstimator for ModelEstimator {
    fn id(&self) -> EstimatorId {
        self.estimator.id()
    }

    fn text(&self, text: &str) -> u64 {
        self.estimator.text(text)
    }

    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        self.estimator.fits(text, limit)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        self.estimator.message(message)
    }

    fn request_overhead(&self) -> u64 {
        self.estimator.request_overhead()
    }

    fn tool(&self, tool: &ToolView<'_>) -> u64 {
        self.estimator.tool(tool)
    }

    fn tools_overhead(&self) -> u64 {
        self.tools_overhead
            .unwrap_or_else(|| self.estimator.tools_overhead())
    }

    fn safety_factor(&self) -> SafetyFactor {
        let thousandths = self.estimator.safety_factor().thousandths();
        let product = self.safety_factor.multiply(u64::from(thousandths));
        SafetyFactor::from_thousandths(u32::try_from(product).unwrap_or(u32::MAX))
    }
}
