#![doc = include_str!("../README.md")]

mod calibrated;
mod calibration;
mod error;
mod estimator;
#[cfg(feature = "exact")]
mod exact;
#[cfg(feature = "fit")]
#[doc(hidden)]
pub mod fit;
mod id;
mod message;
mod overhead;
mod preset;
mod usage;

pub use calibrated::Calibrated;
pub use calibration::Calibration;
pub use error::{Error, ErrorKind};
pub use estimator::{
    TokenEstimator, TokenEstimatorExt, default_estimator, estimator, estimator_names,
};
#[cfg(feature = "exact")]
pub use exact::Exact;
pub use id::EstimatorId;
pub use message::{CountedMessage, MessageParts, Piece, Role};
pub use preset::Preset;
pub use usage::{ContextTokens, Outcome, Usage, UsageTracker};
