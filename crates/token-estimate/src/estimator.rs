//! The estimator of a model.
//!
//! The function [`estimator`](fn@crate::estimator) finds an estimator by its own name.

use std::sync::Arc;

use crate::{Error, TokenEstimator, models};

/// Returns the estimator for a model of the built-in table, such as `claude-sonnet-4-5`.
///
/// If this crate has the model's tokenizer, the estimator counts exactly with the feature `exact`; without the feature
/// it is the calibrated estimator for that tokenizer. Any other model gets
/// [`Calibrated::Unknown`](crate::Calibrated::Unknown), which is a guess on the safe side. In all cases
/// [`safety_factor`](TokenEstimator::safety_factor) is the estimator's factor times the factor of the model's row, and
/// [`tools_overhead`](TokenEstimator::tools_overhead) is the row's, if it has one. The [`id`](TokenEstimator::id) is
/// the estimator's, since it determines the counts of texts and messages: an estimator looked up by this id lacks the
/// model's factor and overhead.
///
/// [`models::get`] describes how names are matched. For models in your own table use
/// [`ModelInfo::estimator`](models::ModelInfo::estimator).
///
/// ```
/// let estimator = token_estimate::estimator::for_model("anthropic/claude-sonnet-4-5-20250929")?;
/// assert_eq!(estimator.id().as_str(), "calibrated-unknown@4");
/// assert_eq!(estimator.tools_overhead(), 588);
/// # Ok::<(), token_estimate::Error>(())
/// ```
///
/// # Errors
///
/// [`UnknownModel`](crate::ErrorKind::UnknownModel) if the table has no such name; the message lists the nearest names.
pub fn for_model(name: &str) -> Result<Arc<dyn TokenEstimator>, Error> {
    Ok(models::get(name)?.estimator())
}
