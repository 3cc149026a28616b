#![doc = include_str!("../README.md")]

mod calibrated;
mod error;
mod estimator;
#[cfg(feature = "fit")]
#[doc(hidden)]
pub mod fit;
mod id;
mod message;
mod preset;

pub use error::{Error, ErrorKind};
pub use estimator::{
    TokenEstimator, TokenEstimatorExt, default_estimator, estimator, estimator_names,
};
pub use id::EstimatorId;
pub use message::{CountedMessage, MessageParts, Piece, Role};
pub use preset::Preset;
