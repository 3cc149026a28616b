#![doc = include_str!("../README.md")]

mod blocks;
mod branches;
mod claude;
mod codex;
mod conventions;
mod detect;
mod error;
mod format;
mod gemini_cli;
mod gemini_parts;
pub mod json_lines;
mod lines;
mod options;
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
mod transcript;

pub use claude::ClaudeCode;
pub use codex::Codex;
pub use conventions::KnownAgents;
pub use error::{Error, ErrorKind};
pub use format::{Confidence, Format, Head, Input, Sink};
pub use gemini_cli::GeminiCli;
pub use options::ReadOptions;
pub use pi::Pi;
pub use plain::PlainLines;
pub use qwen::QwenCode;
pub use registry::{Formats, read, read_file};
pub use report::{Report, Warning};
pub use session::{SessionBuilder, is_linked, is_made_id};
pub use session_file::SessionFile;
pub use transcript::{EarlierReading, Origin, SessionLog, SourceScope, SourceSummary, Transcript};
