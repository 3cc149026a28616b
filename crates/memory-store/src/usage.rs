//! Sizes of the parts of a store.

use std::collections::BTreeMap;

/// Sizes of the parts of a store, and numbers of their rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of the log: messages, long texts that are stored once, and data of conversations.
    pub log: u64,
    /// Bytes of the summaries.
    pub summaries: u64,
    /// Bytes of the views: spans, their history, and publications.
    pub views: u64,
    /// Bytes of the search indexes and the tables of vectors.
    pub search: u64,
    /// Bytes of all other tables, such as the schema.
    pub other: u64,
    /// Number of long texts that are stored once.
    pub texts: u64,
    /// Number of messages with one of these texts.
    pub uses_of_texts: u64,
    /// Number of summaries by the tier of the escalation that wrote them.
    pub tiers: BTreeMap<String, u64>,
    /// Number of entries of each of the latest months, such as `2026-03`, by the time in the source.
    pub months: BTreeMap<String, u64>,
}
