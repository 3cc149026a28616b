#![doc = include_str!("../README.md")]

mod checks;
mod error;
mod in_memory;
mod indexed;
mod inherit;
pub mod plain;
mod publish;
mod read;
mod record;
mod scan;
mod store;
mod types;
mod verify;
mod violation;

pub use checks::{check_append, check_fork, no_conversation};
pub use error::{Error, ErrorKind, Result};
pub use in_memory::InMemoryStore;
pub use indexed::IndexedSearch;
pub use inherit::{Inherited, SummaryScope, ViewCut};
pub use publish::{KnownSummary, check_one_view, check_references, check_shape, spans_cost};
pub use read::{fill_raw_tokens, message_costs, read_conversations, read_entries, read_spans};
pub use record::{KnownEntry, conversation_hash, family_hash, summary_record_hash, views_hash};
pub use scan::{SCAN, ScanSearch};
pub use store::{FullStore, Maintain, Store};
pub use types::{
    Append, AppendAt, Appended, Claim, Conversation, ConversationFilter, ConversationPatch,
    ConversationRef, Draft, EntryOutcome, Fence, JobKey, LeaseUpdate, LogRead, NewConversation,
    NewEntry, Order, Origin, Owner, Page, Publication, Publish, Published, Segment, Snapshot,
    State, ViewInfo, fork_segments, publication_hash, rest_of,
};
pub use verify::{Verifier, verify};
pub use violation::{Report, Violation, ViolationKind};
