//! Functions for implementations of [`Store`](crate::Store): the checks of each method, the growth of a log, the hashes
//! over records, and the first state of new conversations and their views. Callers of a store do not need these
//! functions.

pub use crate::checks::{check_append, lease_lost, no_conversation};
pub use crate::erasure::{erased_parts, plan_erasure, summaries_to_erase};
pub use crate::growth::{Growth, Placed, hashed_bodies};
pub use crate::inherit::{Inherited, SummaryScope, ViewCut, created};
pub use crate::publish::{
    KnownSummary, check_one_view, check_references, check_shape, spans_cost, unfit,
};
pub use crate::record::{
    KnownEntry, conversation_hash, family_hash, summary_record_hash, views_hash,
};
pub use crate::types::{publication_hash, publication_record_hash, rest_of};
