#![doc = include_str!("../README.md")]

mod known_agents;
mod session_file;

pub use known_agents::{KnownAgents, is_aborted, output_of_command};
pub use session_file::SessionFile;
