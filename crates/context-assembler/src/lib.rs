#![doc = include_str!("../README.md")]

mod accounting;
mod assemble;
mod blocks;
mod choose;
mod context;
mod degrade;
mod fit;
mod group;
mod ids;
mod input;
mod marks;
mod messages;
mod policy;
mod preamble;
mod render;

pub use accounting::ContextAccounting;
pub use assemble::{assemble, assemble_with_preamble};
pub use context::{
    Context, ContextMessage, Degradation, DegradationStep, Dropped, Error, ErrorKind,
    MessageOrigin, MovedResult, Receipt, RenamedCall,
};
pub use input::{AssemblyInput, Item};
pub use marks::render_identity;
pub use messages::{assemble_messages, assemble_messages_with};
pub use policy::{AssemblyPolicy, Budget, Eviction};
pub use preamble::Preamble;
pub use render::{
    SUMMARY_RENDERING, message_pointer, render_summary, render_text, render_text_without_tokens,
};
