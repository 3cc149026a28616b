//! The prompts that a summarizer with a model sends.
//!
//! A [`PromptSet`] is data: texts with typed [`Slot`]s. The prompts of [`PromptSet::standard`] contain, in this order,
//! a role, the facts to keep and to drop, the form of the answer, the summary before, and the source. The other sets
//! ask for sections. The source is between tags that its text cannot close. Long tool arguments and results are clipped
//! to [`CLIP_CHARS`] characters, and the data of images and files is left out.

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
