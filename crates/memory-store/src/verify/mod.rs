//! Verification: checks that every stored message is present and unchanged, and that all figures agree.

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

/// Returns the rules of the estimator of a conversation; `None` if it is unknown.
type Rules<'a> = dyn Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync + 'a;

/// Verifies conversations one after the other, and reads the data that they share only once.
///
/// Verifying a family, parents before their forks, costs as much as reading all stored data once, for any number of
/// forks. The verifier remembers the hashes and sums of verified conversations (about 50 bytes an entry and 100 bytes a
/// summary): use one verifier for a family and drop it afterwards.
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
    /// Creates a verifier that has read no conversation.
    pub fn new(store: &'a S, accounting: &'a Rules<'a>) -> Self {
        Self {
            store,
            accounting,
            family: Family::default(),
        }
    }

    /// Verifies a conversation as [`verify`] does. Data that it shares with an already verified conversation is not
    /// read or counted again.
    ///
    /// # Errors
    /// The errors of [`verify`].
    pub async fn verify(&mut self, conversation: ConversationId) -> Result<Report> {
        let store = self.store;
        let mut report = Report::default();
        // In this order, the later reads contain everything that the earlier ones refer to.
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

    /// Reads and checks the part of its ancestors that a fork sees, as far as it was not read before.
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
            // That it is missing was reported with its fork.
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

/// The parent and the last shared position of a fork.
fn fork_point(conversation: &Conversation) -> Option<(ConversationId, Seq)> {
    match conversation.origin {
        Origin::Fork { parent, at } => Some((parent, at)),
        Origin::Root | Origin::Spawn { .. } => None,
    }
}

/// Verifies one conversation, with the part of its ancestors' data that it sees.
///
/// Reads the log once and checks it: positions have no gap, every entry has the recorded hash and is found by its
/// external id, the chain over the hashes and all costs in tokens are right, and the segments match the parent's.
/// Checks each summary: its children exist and tile its range, and its sources exist and have its source hash. Checks
/// each view: it follows from its publications, covers every position once, and shows only existing summaries. By
/// induction every summary then expands to exactly its messages.
///
/// It costs as much as reading everything once. Other writers may continue meanwhile; their additions are not checked.
/// To verify several conversations of a family use a [`Verifier`].
///
/// `accounting` returns the rules by which the conversation's estimator counts costs.
///
/// # Errors
/// `NotFound` if the conversation does not exist; any error of a store that cannot be read at all. A contradiction *in*
/// the store is a violation, not an error.
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

/// Checks a conversation's segments and tree against its parent's.
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
