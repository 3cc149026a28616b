#![doc = include_str!("../README.md")]

mod blocks;
mod branches;
mod chat;
mod claude;
mod cline;
mod codex;
mod conventions;
mod detect;
mod documents;
mod error;
mod format;
mod gemini_cli;
pub mod json_lines;
mod kimi;
mod lines;
mod message_lists;
mod opencode;
mod openhands;
mod options;
mod outline;
mod overflow;
mod pi;
mod plain;
#[cfg(feature = "providers")]
pub mod providers;
mod qwen;
mod raw;
mod registry;
mod report;
mod session;
mod session_file;
mod swe_agent;
mod tau_bench;
mod transcript;

pub use claude::ClaudeCode;
pub use cline::Cline;
pub use codex::Codex;
pub use conventions::KnownAgents;
pub use error::{Error, ErrorKind};
pub use format::{AgentHome, Confidence, Format, Head, Input, Sink};
pub use gemini_cli::GeminiCli;
pub use kimi::KimiCode;
pub use message_lists::MessageLists;
pub use opencode::OpenCode;
pub use openhands::OpenHands;
pub use options::ReadOptions;
pub use pi::Pi;
pub use plain::PlainLines;
pub use qwen::QwenCode;
pub use registry::{Formats, read, read_file};
pub use report::{Report, Warning};
pub use session::{SessionBuilder, is_linked, is_made_id};
pub use session_file::SessionFile;
pub use swe_agent::SweAgent;
pub use tau_bench::TauBench;
pub use transcript::{
    EarlierReading, EntryHead, Origin, ReadEntry, SessionLog, SourceScope, SourceSummary,
    Transcript,
};
