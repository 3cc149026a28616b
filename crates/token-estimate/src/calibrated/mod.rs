//! The calibrated estimator: what a tokenizer would do, told from the shapes of words, numbers, marks and scripts.

pub(crate) mod class;
mod coefficients;
pub(crate) mod machine;
pub(crate) mod model;

use model::Model;

static O200K: Model = Model::new(&coefficients::o200k::COEFFICIENTS);
static CL100K: Model = Model::new(&coefficients::cl100k::COEFFICIENTS);
