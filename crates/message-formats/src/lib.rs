#![doc = include_str!("../README.md")]

mod blocks;
mod chat;
mod claude;
mod conventions;
mod detect;
mod error;
mod format;
pub mod json_lines;
mod lines;
mod options;
mod pi;
mod plain;
#[cfg(feature = "providers")]
pub mod providers;
mod raw;
mod registry;
mod report;
mod session;
mod session_file;
mod transcript;

pub use claude::ClaudeCode;
pub use conventions::KnownAgents;
pub use error::{Error, ErrorKind};
pub use format::{Confidence, Format, Head, Input, Sink};
pub use options::ReadOptions;
pub use pi::Pi;
pub use plain::PlainLines;
pub use registry::{Formats, read, read_file};
pub use report::{Report, Warning};
pub use session::{SessionBuilder, is_linked, is_made_id};
pub use session_file::SessionFile;
pub use transcript::{EarlierReading, Origin, SessionLog, SourceScope, SourceSummary, Transcript};
