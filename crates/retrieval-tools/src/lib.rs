#![doc = include_str!("../README.md")]

mod across;
mod arguments;
mod cursor;
mod describe;
mod error;
mod expand;
mod files;
mod grep;
mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
mod narrowing;
mod nearby;
mod overview;
mod page;
mod piece;
mod recall;
mod recalling;
mod retrieval;
mod schema;
mod searching;
mod set;
mod text;
mod tools;
mod typed;
mod unfold;
mod using;

pub use across::{SessionHit, SessionsAnswer};
pub use describe::Description;
pub use error::{Error, ErrorKind, Result};
pub use expand::{
    DEFAULT_TOKEN_CAP, ExpandAnswer, ExpandArgs, ExpandPolicy, ExpandedChild, ExpandedMessage,
    ExpandedSummary, MAX_CHILDREN, OversizedPolicy, Piece, Target,
};
pub use files::{FileUse, FilesAnswer, FilesArgs, MAX_COMMAND_CHARS, UseKind, UseOutcome};
pub use grep::{
    DEFAULT_LIMIT, EchoCount, GrepAnswer, GrepArgs, GrepHit, HitKind, MAX_AROUND, NearMessage,
    SearchResult, UndatedCount, WiderSearch,
};
pub use limits::RetrievalLimits;
pub use memory_search::{Fallback, HitOrder, SearchMode, SearchScope};
pub use narrowing::Narrowing;
pub use overview::{Overview, ViewOverview};
pub use recall::{DEFAULT_BUDGET, Passage, RecallAnswer, RecallArgs, RecallPolicy};
pub use retrieval::{DESCRIBE, EXPAND, FILES, GREP, RECALL, Retrieval};
pub use schema::{Parameter, ParameterKind, Tool, ToolShape};
pub use set::RetrievalSet;
pub use tools::ToolAnswer;
pub use typed::{DescribeArgs, ToolArguments};
