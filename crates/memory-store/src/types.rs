//! Types of the arguments and return values of a store's methods.

mod append;
mod conversation;
mod lease;
mod pages;
mod publication;
mod snapshot;

pub use append::{Append, AppendAt, Appended, EntryOutcome, NewEntry};
pub(crate) use conversation::segments_of;
pub use conversation::{
    Conversation, ConversationFilter, ConversationPatch, ConversationRef, NewConversation, Origin,
    Segment, State,
};
pub use lease::{Claim, Draft, Fence, JobKey, LeaseUpdate, Owner};
pub use pages::{LogRead, Order, Page, rest_of};
pub use publication::{Publication, Publish, Published, publication_hash, publication_record_hash};
pub use snapshot::{Snapshot, ViewInfo};
