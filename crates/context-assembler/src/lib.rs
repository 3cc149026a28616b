#![doc = include_str!("../README.md")]

mod accounting;
mod assemble;
mod blocks;
mod choose;
mod context;
mod degrade;
mod policy;
mod render;

pub use accounting::ContextAccounting;
pub use assemble::{Item, Material, assemble};
pub use context::{
    Context, ContextMessage, Degradation, Dropped, Error, ErrorKind, Receipt, Source, Step,
};
pub use policy::{AssemblyPolicy, Budget, Eviction};
pub use render::{message_pointer, render_summary, render_text};
