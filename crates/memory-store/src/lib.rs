#![doc = include_str!("../README.md")]

mod checks;
mod erase;
mod erasure;
mod error;
mod growth;
pub mod implementors;
mod in_memory;
mod inherit;
mod publish;
mod read;
mod record;
mod segments;
mod store;
mod types;
mod usage;
mod vector;
mod vector_store;
mod verify;
mod violation;
mod work_queue;

pub use erase::erase;
pub use erasure::{ERASED, Erase, Erased, ErasedRange, Erasure, Erasures, PREPARED};
pub use error::{Error, ErrorKind, Result};
pub use in_memory::InMemoryStore;
pub use read::{
    fill_raw_tokens, message_costs, read_conversations, read_entries, read_shown_summaries,
    read_span_page, read_spans,
};
pub use segments::{
    Chunk, IndexSegment, IndexSnapshot, IndexState, IndexStore, IndexedKind, NewIndexSegment,
};
pub use store::{FullStore, Maintain, Store};
pub use types::{
    Append, AppendAt, Appended, Claim, Conversation, ConversationFilter, ConversationPatch,
    ConversationRef, Draft, EntryOutcome, Fence, JobKey, LeaseUpdate, LogRead, NewConversation,
    NewEntry, Order, Origin, Owner, Page, Publication, Publish, Published, Segment, Snapshot,
    State, ViewInfo,
};
pub use usage::Usage;
pub use vector::Vector;
pub use vector_store::{NewVectors, PlacedVector, VectorState, VectorStore};
pub use verify::{Verifier, verify};
pub use violation::{Report, Violation, ViolationKind};
pub use work_queue::{ChangedConversation, WorkQueue};
