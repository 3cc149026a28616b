#![doc = include_str!("../README.md")]

mod kept;
mod messages;
mod requests;
mod tools;
mod usage;

pub use agent_memory;
pub use agent_memory::models::GenAi;
pub use genai;
pub use messages::{from_genai, to_genai};
pub use requests::{chat_request, reply};
pub use tools::{to_genai_tools, tool_definition};
pub use usage::{from_genai_usage, to_genai_usage};
