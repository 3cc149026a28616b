#![doc = include_str!("../README.md")]

mod across;
mod anthropic;
mod arguments;
mod codex;
mod cursor;
mod describe;
mod error;
mod expand;
mod files;
mod grep;
mod identity;
mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
mod narrowing;
mod nearby;
mod notes;
mod noting;
#[cfg(feature = "mcp")]
mod overview;
mod page;
mod piece;
mod recall;
mod recalling;
mod renewing;
mod requests;
mod retrieval;
mod room;
mod searching;
mod set;
mod text;
mod tool;
mod tools;
mod unfold;
mod using;

pub use across::{SessionHit, SessionsAnswer};
pub use describe::Description;
pub use error::{Error, ErrorKind, Result};
pub use expand::{
    ExpandAnswer, ExpandArgs, ExpandedChild, ExpandedMessage, ExpandedSummary, Piece, Target,
};
pub use files::{FileUse, FilesAnswer, FilesArgs, UseKind, UseOutcome};
pub use grep::{
    EchoCount, GrepAnswer, GrepArgs, GrepHit, HitKind, NearMessage, UndatedCount, WiderSearch,
};
pub use identity::IdentityFiles;
pub use limits::RetrievalLimits;
pub use memory_search::{Fallback, HitOrder, SearchMode, SearchScope};
pub use narrowing::Narrowing;
pub use notes::{Notes, ToolNames};
pub use recall::{Passage, PassageChange, RecallAnswer, RecallArgs};
pub use requests::{ListedMessage, RequestsAnswer, RequestsArgs};
pub use retrieval::Retrieval;
pub use set::RetrievalSet;
pub use tool::{Tool, ToolAnswer};
