#![doc = include_str!("../README.md")]

mod compactor;
mod context;
mod kept;
mod media;
mod memory;
mod messages;
mod tools;

pub use agent_memory;
pub use compactor::{LadderCompactor, RigSummary};
pub use context::context_to_rig;
pub use memory::RigMemory;
pub use messages::{from_rig, to_rig};
pub use rig_core;
pub use tools::{from_rig_tool, from_rig_usage, to_rig_tool, to_rig_usage};
