#![doc = include_str!("../README.md")]

mod binary;
mod calibrated;
mod calibration;
mod error;
pub mod estimator;
#[cfg(feature = "exact")]
mod exact;
#[cfg(feature = "fit")]
#[doc(hidden)]
pub mod fit;
mod heuristic;
mod id;
mod media;
pub mod models;
mod overhead;
mod registry;
mod safety_factor;
mod token_estimator;
mod tool;
mod usage;
mod view;

pub use binary::{BinaryKind, BinaryRun, binary_in_json, binary_in_text};
pub use calibrated::Calibrated;
pub use calibration::Calibration;
pub use error::{Error, ErrorKind};
#[cfg(feature = "exact")]
pub use exact::Exact;
pub use heuristic::HeuristicEstimator;
pub use id::EstimatorId;
pub use media::pdf_pages;
pub use registry::{default_estimator, estimator, estimator_names};
pub use safety_factor::SafetyFactor;
pub use token_estimator::{TokenEstimator, TokenEstimatorExt};
pub use tool::ToolView;
pub use usage::{ContextTokens, ResponseStatus, Usage, UsageTracker};
pub use view::{MessageParts, MessageView, PartView, Role};
