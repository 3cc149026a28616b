//! The prompts that a summarizer with a model sends.
//!
//! A [`PromptSet`] is data: texts with typed [`Slot`]s. [`PromptSet::standard`] names a role, what to
//! keep and what to drop, the form of the answer, the context before, then the source; the presets
//! ask for the sections of the systems that they are named after. The source stands between tags
//! that it cannot close, with long tool payloads clipped to [`CLIP_CHARS`] and without the data of
//! images and files.

mod fixed;
mod set;
mod sets;
mod source;
mod strip;

pub use set::{Answer, InvalidTemplate, PromptSet, Slot, Template};
pub use source::{CLIP_CHARS, Clip, Shown};
pub use strip::strip_analysis_block;

pub(crate) use fixed::{by_length, fixed_lines};
pub(crate) use source::{piece_text, plain, tags};

use model_client::ChatPrompt;

use crate::request::SummaryRequest;
pub use sets::PROMPT_VERSION;

/// Returns the standard prompt for a request.
pub fn render(request: &SummaryRequest<'_>) -> ChatPrompt {
    PromptSet::standard().render(request)
}
