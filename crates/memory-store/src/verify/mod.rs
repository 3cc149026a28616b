//! Verification: checks that every stored message is present and unchanged, and that all stored numbers, costs and
//! hashes agree.

mod log;
mod scope;
mod summaries;
mod views;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use memory_model::{Accounting, ConversationId, Seq, SeqRange, Summary, SummaryId};
use token_estimate::EstimatorId;

use self::scope::Family;
use crate::checks::no_conversation;
use crate::erasure::Erasures;
use crate::error::Result;
use crate::inherit::SummaryScope;
use crate::store::Store;
use crate::types::{Conversation, ConversationRef, Origin, segments_of};
use crate::violation::{Report, ViolationKind};

/// Function that returns the counting rules of a conversation's estimator. Returns `None` for an unknown estimator.
type Rules<'a> = dyn Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync + 'a;

/// Verifies several conversations one after the other. Data that they share is read only once.
///
/// Verify parents before their forks. Verifying a family (a root and all conversations forked or spawned from it) then
/// costs as much as reading all its stored data once, for any number of forks. The verifier remembers the hashes and
/// sums of verified conversations, about 50 bytes for an entry and 100 bytes for a summary. Use one verifier for a
/// family, and drop it afterwards.
pub struct Verifier<'a, S: ?Sized> {
    store: &'a S,
    accounting: &'a Rules<'a>,
    family: Family,
}

impl<S: ?Sized> fmt::Debug for Verifier<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl<'a, S: Store + ?Sized> Verifier<'a, S> {
    /// Creates a verifier that has not read any conversation yet. `accounting` returns the rules by which a
    /// conversation's estimator counts costs, or `None` for an unknown estimator.
    pub fn new(store: &'a S, accounting: &'a Rules<'a>) -> Self {
        Self {
            store,
            accounting,
            family: Family::default(),
        }
    }

    /// Verifies a conversation as the function [`verify`] does. Data that the conversation shares with an already
    /// verified conversation is not read or counted again.
    ///
    /// # Errors
    /// The errors of [`verify`].
    pub async fn verify(&mut self, conversation: ConversationId) -> Result<Report> {
        let store = self.store;
        let mut report = Report::default();
        // Later reads contain everything to which earlier reads refer, because of this order.
        let views = store.views(conversation).await?;
        let summaries = summaries::load(store, conversation, &mut report).await?;
        let found = lookup(store, conversation)
            .await?
            .ok_or_else(|| no_conversation(conversation))?;
        let rules = (self.accounting)(&found.estimator);
        if rules.is_none() {
            let message = format!(
                "conversation {} is counted with {}, which is not known here: its token figures were \
                 not checked",
                found.key, found.estimator
            );
            report.add(ViolationKind::EstimatorMixed, message);
        }
        let rules = rules.as_deref();
        let erasures = store.erasures(conversation).await?;
        family(store, &found, &mut report).await?;
        self.ancestors(&found, rules, &erasures, &mut report)
            .await?;

        self.family.put(conversation, fork_point(&found));
        let before = self.family.scope(conversation, found.head);
        let start = before.running(found.own_first().prev());
        let part = log::Part::own(&found, start);
        let known = log::verify(store, &found, part, rules, &erasures, &mut report).await?;
        self.family.put_log(conversation, known);
        for summary in summaries.values() {
            self.family.put_summary(conversation, summary);
        }
        let scope = self.family.scope(conversation, found.head);
        summaries::verify(&found, &summaries, &scope, rules, &erasures, &mut report);
        drop(summaries);
        for view in views {
            report.views += 1;
            views::verify(store, &found, &view, &scope, &mut report).await?;
        }
        Ok(report)
    }

    /// Reads and checks the logs and summaries of the ancestors that a fork sees, unless they were read before.
    async fn ancestors(
        &mut self,
        found: &Conversation,
        rules: Option<&dyn Accounting>,
        erasures: &Erasures,
        report: &mut Report,
    ) -> Result<()> {
        let mut missing = Vec::new();
        let mut scope = SummaryScope::own(found.id);
        let mut next = fork_point(found);
        while let Some((parent, at)) = next {
            if parent >= scope.conversation || self.family.contains(parent) {
                break;
            }
            scope = scope.parent(parent, at);
            // A missing ancestor was already reported with its fork.
            let Some(ancestor) = lookup(self.store, parent).await? else {
                break;
            };
            next = fork_point(&ancestor);
            missing.push((scope, ancestor));
        }
        while let Some((scope, ancestor)) = missing.pop() {
            self.family.put(ancestor.id, fork_point(&ancestor));
            let last = scope.last.unwrap_or(ancestor.head);
            let summaries = summaries::load(self.store, ancestor.id, report).await?;
            if let Some(shared) = SeqRange::new(ancestor.own_first(), last) {
                let before = self.family.scope(ancestor.id, last);
                let start = before.running(ancestor.own_first().prev());
                let part = log::Part::shared(shared, start);
                let known = log::verify(self.store, found, part, rules, erasures, report).await?;
                self.family.put_log(ancestor.id, known);
            }
            let seen: BTreeMap<SummaryId, Summary> = summaries
                .into_iter()
                .filter(|(_, summary)| scope.sees(summary.range))
                .collect();
            for summary in seen.values() {
                self.family.put_summary(ancestor.id, summary);
            }
            let scope = self.family.scope(ancestor.id, last);
            summaries::verify(&ancestor, &seen, &scope, rules, erasures, report);
        }
        Ok(())
    }
}

/// Returns the parent and the last shared position of a fork. Returns `None` for other conversations.
fn fork_point(conversation: &Conversation) -> Option<(ConversationId, Seq)> {
    match conversation.origin {
        Origin::Fork { parent, at } => Some((parent, at)),
        Origin::Root | Origin::Spawn { .. } => None,
    }
}

/// Verifies one conversation, including the part of its ancestors' data that the conversation sees. Returns a report
/// with all contradictions.
///
/// Checks the log: positions have no gap, every entry has the recorded hash and is found by its external id, the chain
/// hash and all costs in tokens are right, and the segments match the parent's. Checks each summary: its children exist
/// and cover exactly its range, and its sources exist and have the recorded hash. Checks each view: the view follows
/// from its publications, covers every position once, and shows only existing summaries. By induction every summary
/// then expands to exactly its messages.
///
/// The cost is that of reading all data of the conversation once. Other writers may continue meanwhile. Their additions
/// are not checked. To verify several conversations of a family, use a [`Verifier`].
///
/// `accounting` returns the rules by which the conversation's estimator counts costs, or `None` for an unknown
/// estimator.
///
/// # Errors
/// `NotFound` if the conversation does not exist, or any error of a store that cannot be read at all. A contradiction
/// in the stored data is reported as a violation and is not an error.
pub async fn verify<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    accounting: &Rules<'_>,
) -> Result<Report> {
    Verifier::new(store, accounting).verify(conversation).await
}

async fn lookup<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Result<Option<Conversation>> {
    store.conversation(&ConversationRef::Id(conversation)).await
}

/// Checks that a conversation's segments and family match its parent's.
async fn family<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    report: &mut Report,
) -> Result<()> {
    let Conversation { id, key, .. } = conversation;
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
    if let (Origin::Fork { at, .. }, Some(parent)) = (&conversation.origin, &parent)
        && *at > parent.head
    {
        let message = format!(
            "{key}: it was forked at {at}, but the log of {} ends at {}",
            parent.key, parent.head
        );
        report.add(ViolationKind::FamilyWrong, message);
    }
    if segments_of(&conversation.origin, parent.as_ref(), *id) != conversation.segments {
        let message = format!("{key}: its segments do not match its origin");
        report.add(ViolationKind::FamilyWrong, message);
    }
    if conversation.family != parent.map_or(*id, |parent| parent.family) {
        let message = format!("{key}: it is not in its parent's family");
        report.add(ViolationKind::FamilyWrong, message);
    }
    Ok(())
}
