//! Finds the estimator for a model.
//!
//! The function [`estimator`](fn@crate::estimator) finds an estimator by its own name.

use std::sync::Arc;

use crate::{Error, TokenEstimator, models};

/// Returns the estimator for a model of the built-in table, such as `claude-sonnet-4-5`.
///
/// If this crate has the model's tokenizer, the estimator is exact with the feature `exact`, and otherwise the
/// calibrated estimator for this tokenizer. For any other model it is
/// [`Calibrated::Unknown`](crate::Calibrated::Unknown), which usually overestimates.
///
/// [`safety_factor`](TokenEstimator::safety_factor) is the estimator's factor times the factor in the model's row.
/// [`tools_overhead`](TokenEstimator::tools_overhead) is the value in the row, if the row has one. The
/// [`id`](TokenEstimator::id) is the id of the estimator without the model, because it determines the counts of texts
/// and messages. An estimator that is looked up by this id does not have the model's factor and overhead.
///
/// [`models::get`] describes how names are matched. For models in your own table use
/// [`ModelInfo::estimator`](models::ModelInfo::estimator).
///
/// ```
/// let estimator = token_estimate::estimator::for_model("anthropic/claude-sonnet-4-5-20250929")?;
/// assert_eq!(estimator.id().as_str(), "calibrated-unknown@5");
/// assert_eq!(estimator.tools_overhead(), 588);
/// # Ok::<(), token_estimate::Error>(())
/// ```
///
/// # Errors
///
/// [`UnknownModel`](crate::ErrorKind::UnknownModel) if the table has no model with this name. The message lists the
/// nearest names.
pub fn for_model(name: &str) -> Result<Arc<dyn TokenEstimator>, Error> {
    Ok(models::get(name)?.estimator())
}
