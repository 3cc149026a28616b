//! The prompts that a summarizer with a model sends.
//!
//! A [`PromptSet`] is data: texts with typed [`Slot`]s. The prompts of [`PromptSet::standard`] contain, in this order,
//! a role, the facts to keep and to drop, the form of the answer, the summary before, and the source. The other sets
//! ask for sections. The source is between tags that its text cannot close.
//!
//! Only conversation is shown: no notes, no reasoning, no reminders of programs, and no messages without words; the
//! opening tag counts the messages that are left out. A text that a program put into a user's message, such as the
//! template of a slash command, is one line. A pasted document has at most [`DOCUMENT_CHARS`] characters. Of the arguments
//! and results of tool calls, the longest are shortened until there is room for the prompt, none below [`LEAST_CHARS`]
//! characters. The data of images and files is left out.

mod clip;
mod data;
mod fixed;
mod ranked;
mod render;
mod retry;
mod said;
mod set;
mod sets;
mod source;
mod strip;

pub use clip::{Clip, DOCUMENT_CHARS, LEAST_CHARS, ROOM_TOKENS};
pub use render::render;
pub use set::{AnswerFormat, InvalidTemplate, PromptSet, Slot, Template};
pub use sets::PROMPT_VERSION;
pub use strip::strip_analysis_block;

pub(crate) use data::tags;
pub(crate) use fixed::{by_length, fixed_lines};
pub(crate) use render::{LEAST_ANSWER, Length, Rendered};
pub(crate) use source::{piece_texts, plain};
