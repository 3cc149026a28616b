#![doc = include_str!("../README.md")]

mod arguments;
mod call_ids;
mod error;
mod failed;
mod fields;
mod limits;
mod media;
mod prepare;
mod provider;
mod reply;
mod shape;
mod turns;
mod unknown;

pub mod anthropic;
pub mod gemini;
pub mod openai;
pub mod responses;

pub use call_ids::{CallIds, chat_call_id, original_call_id, wire_call_id};
pub use error::{Error, ErrorKind};
pub use limits::{Known, LIMITS, RequestLimits, bytes, within, within_known};
pub use shape::Provider;
pub use turns::CONTINUED;
