//! The prompts that a summarizer with a model sends.
//!
//! A [`PromptSet`] is data: texts with typed [`Slot`]s. [`PromptSet::standard`] has anna's structure
//! (a role, what to keep and what to drop, the form of the answer, the context before, then the
//! source); the others ask for the sections of the systems that they are named after. The source is
//! data, too: it stands between tags that it cannot close, with long tool payloads clipped to
//! [`CLIP_CHARS`] and never any image or file data.

mod set;
mod sets;
mod source;
mod strip;

pub use set::{Answer, PromptSet, Slot, Template};
pub use source::{CLIP_CHARS, Clip, Shown};
pub use strip::strip_analysis_block;

pub(crate) use set::{by_length, fixed_lines};
pub(crate) use source::{minute, piece_text, plain, tags};

use crate::SummaryRequest;

/// Names the standard prompts in recipes; raised whenever a word of them changes.
pub const PROMPT_VERSION: &str = "prompt@1";

/// A prompt for a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// What the model is and has to do.
    pub system: String,
    /// The source, and the context before it.
    pub user: String,
    /// Where the provider should stop, in tokens: twice the target and at least 256, so that it is
    /// the ladder that judges an answer that is too long, and not a cut in mid-sentence.
    pub max_tokens: u64,
    /// The longest answer, in tokens, that fits beside this prompt into the model's window; `None`
    /// where no window is set. A client must not ask for more, whatever it asks for otherwise.
    pub output_room: Option<u64>,
}

impl Prompt {
    /// The limit to name to a provider: `max_tokens`, or at least `least` (for the reasoning that
    /// some models count in), within `output_room`.
    pub fn output_limit(&self, least: u64) -> u64 {
        let limit = self.max_tokens.max(least);
        self.output_room.map_or(limit, |room| limit.min(room))
    }
}

/// The standard prompt for a request.
pub fn render(request: &SummaryRequest<'_>) -> Prompt {
    PromptSet::standard().render(request)
}
