//! Verification: is everything that was ever said still there, and does everything add up?

mod log;
mod summaries;
mod views;

use std::fmt;
use std::sync::Arc;

use memory_model::{Accounting, ConversationId, Seq};
use serde::Serialize;
use token_estimate::EstimatorId;

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;
use crate::types::{Conversation, ConversationRef, Origin, Segment, fork_segments};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// An entry of the log is missing.
    EntryMissing,
    /// An entry is where another belongs, or there twice.
    EntryMisplaced,
    /// An entry cannot be read.
    EntryUnreadable,
    /// An entry is not what was stored: its hash does not match its content.
    EntryChanged,
    /// The chain over a log's hashes does not match the log.
    ChainBroken,
    /// An entry is not found by its external id.
    IndexWrong,
    /// A conversation's segments or family are not what its origin gives.
    FamilyWrong,
    /// A token figure is not what the conversation's estimator gives.
    EstimatorMixed,
    /// A sum of token figures is wrong.
    SumWrong,
    /// A view's spans do not cover every position exactly once.
    SpansOverlap,
    /// A view's spans are not what its history of publications gives.
    ViewDiffers,
    /// The history of publications was changed or does not follow the rules.
    HistoryChanged,
    /// A view shows a summary that is missing or covers something else.
    SpanWrong,
    /// A summary is not what was stored.
    SummaryChanged,
    /// A summary's sources are not what it was made from.
    SourceChanged,
    /// A summary's children do not tile its range.
    ChildRangeWrong,
    /// A summary is not deeper than its children.
    Cycle,
    /// A summary's child is missing from the conversation, or belongs to another.
    ForeignLineage,
    /// The database's own structure is damaged: pages, indices, keys, triggers.
    Database,
    /// Anything else that contradicts itself.
    Other,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What.
    pub kind: ViolationKind,
    /// A sentence that names the object.
    pub message: String,
}

impl Violation {
    /// A violation; `message` is a sentence that names the object.
    pub fn new(kind: ViolationKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What a verification looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Log entries read.
    pub messages: u64,
    /// Summaries checked.
    pub summaries: u64,
    /// Views replayed.
    pub views: u64,
    /// What is wrong; empty when everything is right.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether everything is right.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    fn add(&mut self, kind: ViolationKind, message: impl Into<String>) {
        self.violations.push(Violation::new(kind, message));
    }
}

/// Verifies one conversation.
///
/// Reads the log once and checks that it is dense, that every entry hashes to what was recorded
/// and is found by its external id, that the chain over the hashes and all token figures are
/// right; that the segments are what the parent's give; that each summary's children tile its
/// range, exist, and hash to its source hash; and that each view follows from its publications,
/// covers every position once, and shows only what exists. By induction every summary then expands
/// to exactly its messages.
///
/// The cost is that of reading everything once. Other writers may go on meanwhile: what they add
/// is not looked at.
///
/// `accounting` gives the rules of the estimator that the conversation is recorded with.
///
/// # Errors
/// `NotFound`; and when the store cannot be read at all. What is wrong *in* the store is not an
/// error but a violation.
pub async fn verify<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    accounting: &(dyn Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync),
) -> Result<Report> {
    let mut report = Report::default();
    // In this order, what is read later holds all that the earlier refers to.
    let views = store.views(conversation).await?;
    let summaries = summaries::load(store, conversation, &mut report).await?;
    let found = lookup(store, conversation).await?.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("there is no conversation {conversation}"),
        )
    })?;
    let rules = accounting(&found.estimator);
    if rules.is_none() {
        let message = format!(
            "conversation {} is counted with {}, which is not known here: its token figures were \
             not checked",
            found.key, found.estimator
        );
        report.add(ViolationKind::EstimatorMixed, message);
    }
    let rules = rules.as_deref();
    family(store, &found, &mut report).await?;
    let log = log::verify(store, &found, rules, &mut report).await?;
    summaries::verify(&found, &summaries, &log, rules, &mut report);
    for view in views {
        report.views += 1;
        views::verify(store, &found, &view, &log, &summaries, &mut report).await?;
    }
    Ok(report)
}

async fn lookup<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Result<Option<Conversation>> {
    store.conversation(&ConversationRef::Id(conversation)).await
}

/// Checks a conversation's segments and tree against its parent's.
async fn family<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    report: &mut Report,
) -> Result<()> {
    let Conversation { id, key, .. } = conversation;
    let own = vec![Segment {
        first: Seq::FIRST,
        last: None,
        source: *id,
    }];
    let parent = match conversation.origin.parent() {
        None => None,
        Some(parent) => {
            let found = lookup(store, parent).await?;
            if found.is_none() {
                let message = format!("{key}: its parent, conversation {parent}, is missing");
                report.add(ViolationKind::FamilyWrong, message);
                return Ok(());
            }
            found
        }
    };
    let segments = match (&conversation.origin, &parent) {
        (Origin::Fork { at, .. }, Some(parent)) => {
            if *at > parent.head {
                let message = format!(
                    "{key}: it was forked at {at}, but the log of {} ends at {}",
                    parent.key, parent.head
                );
                report.add(ViolationKind::FamilyWrong, message);
            }
            fork_segments(&parent.segments, *at, *id)
        }
        _ => own,
    };
    if segments != conversation.segments {
        let message = format!("{key}: its segments are not what its origin gives");
        report.add(ViolationKind::FamilyWrong, message);
    }
    if conversation.tree != parent.map_or(*id, |parent| parent.tree) {
        let message = format!("{key}: it is not of its parent's family");
        report.add(ViolationKind::FamilyWrong, message);
    }
    Ok(())
}
