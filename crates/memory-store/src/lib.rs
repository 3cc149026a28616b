#![doc = include_str!("../README.md")]

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod in_memory;
mod inherit;
pub mod plain;
mod publish;
mod record;
mod search;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod types;
mod verify;

pub use error::{Error, ErrorKind, Result};
pub use in_memory::InMemoryStore;
pub use inherit::{Inherited, Kin, ViewCut};
pub use publish::{KnownSummary, check_references, check_shape, spans_cost};
pub use record::{KnownEntry, conversation_hash, family_hash, summary_record_hash, views_hash};
pub use search::{Cursor, Found, Hit, Hits, Query, SCAN, Scope, scan};
pub use store::{FullStore, Maintain, Search, Store, fill_raw_tokens};
pub use types::{
    Append, AppendAt, Appended, Claim, Conversation, ConversationFilter, ConversationPatch,
    ConversationRef, Draft, EntryOutcome, Fence, JobKey, JobOutcome, LogRead, NewConversation,
    NewEntry, Order, Origin, Owner, Page, Publication, Publish, Published, Segment, Snapshot,
    State, ViewInfo, fork_segments, publication_hash, rest_of,
};
pub use verify::{Report, Verifier, Violation, ViolationKind, verify};
