#![doc = include_str!("../README.md")]

mod cursor;
mod describe;
mod error;
mod expand;
mod grep;
mod limits;
mod page;
mod piece;
mod retrieval;
mod text;
mod tools;

pub use describe::Description;
pub use error::{Error, ErrorKind, Result};
pub use expand::{
    DEFAULT_TOKEN_CAP, ExpandAnswer, ExpandArgs, ExpandPolicy, ExpandedChild, ExpandedMessage,
    ExpandedSummary, MAX_CHILDREN, OversizedPolicy, Piece, Target,
};
pub use grep::{DEFAULT_LIMIT, GrepAnswer, GrepArgs, GrepHit, HitKind};
pub use limits::RetrievalLimits;
pub use memory_search::SearchScope;
pub use retrieval::Retrieval;
pub use tools::{DESCRIBE, EXPAND, GREP, ToolAnswer, ToolDefinition};
