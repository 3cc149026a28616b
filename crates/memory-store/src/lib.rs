#![doc = include_str!("../README.md")]

mod calls;
mod checks;
mod erase;
mod erasure;
mod error;
pub mod implementors;
mod in_memory;
mod index;
mod indexed;
mod inherit;
mod publish;
mod read;
mod record;
mod scan;
mod segments;
mod store;
mod types;
mod vector_store;
mod vectors;
mod verify;
mod violation;

pub use erase::{erase, open_erased_spans};
pub use erasure::{ERASED, Erase, Erased, ErasedRange, Erasure, Erasures, PREPARED};
pub use error::{Error, ErrorKind, Result};
pub use in_memory::InMemoryStore;
pub use index::{
    INDEX, IndexCheck, IndexProgress, SegmentSearch, check_index, extend_index, mend_index,
    rebuild_index,
};
pub use indexed::IndexedSearch;
pub use read::{fill_raw_tokens, message_costs, read_conversations, read_entries, read_spans};
pub use scan::{PROSE_SCAN, REGEX_SCAN, SCAN, ScanSearch, WORDS_SCAN};
pub use segments::{
    IndexSegment, IndexSnapshot, IndexState, IndexStore, IndexedKind, NewIndexSegment,
};
pub use store::{FullStore, Maintain, Store};
pub use types::{
    Append, AppendAt, Appended, Claim, Conversation, ConversationFilter, ConversationPatch,
    ConversationRef, Draft, EntryOutcome, Fence, JobKey, LeaseUpdate, LogRead, NewConversation,
    NewEntry, Order, Origin, Owner, Page, Publication, Publish, Published, Segment, Snapshot,
    State, ViewInfo,
};
pub use vector_store::{NewVectors, PlacedVector, VectorState, VectorStore};
pub use vectors::{VectorCheck, VectorProgress, check_vectors, extend_vectors};
pub use verify::{Verifier, verify};
pub use violation::{Report, Violation, ViolationKind};
