#![doc = include_str!("../README.md")]

mod accounting;
mod allotment;
mod assemble;
mod blocks;
mod choose;
mod compose;
mod context;
mod degrade;
mod digest;
mod excerpt;
mod fit;
mod forms;
mod group;
mod ids;
mod input;
mod marks;
mod media;
mod messages;
mod policy;
mod preamble;
mod render;
#[cfg(feature = "providers")]
mod requests;
mod shorten;
mod skeleton;
mod unfold;

pub use accounting::ContextAccounting;
pub use assemble::assemble;
pub use context::{
    Context, ContextMessage, Degradation, DegradationStep, Dropped, Error, ErrorKind,
    MessageOrigin, MovedResult, Receipt, RenamedCall, ShortenedSummary,
};
pub use forms::is_ranked;
pub use input::{AssemblyInput, Item, Remark};
pub use marks::render_identity;
pub use messages::{assemble_messages, assemble_messages_with};
pub use policy::{AssemblyPolicy, Budget, Form, InputLimits};
pub use preamble::Preamble;
pub use render::{
    SUMMARY_RENDERING, message_pointer, render_summary, render_text, render_text_without_tokens,
};
