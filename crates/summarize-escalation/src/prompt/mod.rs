//! The prompts that a summarizer with a model sends.
//!
//! A [`PromptSet`] is data: texts with typed [`Slot`]s. [`PromptSet::standard`] contains a role, the facts to keep and
//! to drop, the form of the answer, the context before, then the source; the other sets ask for sections. The source is
//! between tags that it cannot close, with long tool payloads clipped to [`CLIP_CHARS`] and without the data of images
//! and files.

mod clip;
mod data;
mod fixed;
mod render;
mod set;
mod sets;
mod source;
mod strip;

pub use clip::{CLIP_CHARS, Clip};
pub use render::render;
pub use set::{AnswerFormat, InvalidTemplate, PromptSet, Slot, Template};
pub use sets::PROMPT_VERSION;
pub use strip::strip_analysis_block;

pub(crate) use data::tags;
pub(crate) use fixed::{by_length, fixed_lines};
pub(crate) use source::{piece_text, plain};
