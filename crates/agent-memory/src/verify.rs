//! Verification that a database and its conversations are consistent.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory_model::{Accounting, ConversationId, SessionKey};
use memory_search::{check_index, check_vectors};
use memory_store::{
    Conversation, ConversationFilter, ConversationRef, Report, Verifier, Violation, ViolationKind,
    read_conversations, verify,
};
use serde::Serialize;
use token_estimate::EstimatorId;

use crate::error::Result;
use crate::memory::Memory;

/// Maximum number of conversations in one read from the store.
const PAGE: usize = 256;

/// Report of a verification: the numbers of checked items, and the violations that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of conversations that were checked.
    pub conversations: u64,
    /// Number of log entries that were read, including notes.
    pub messages: u64,
    /// Number of notes among the log entries.
    #[serde(skip)]
    pub notes: u64,
    /// Number of summaries that were checked.
    pub summaries: u64,
    /// Number of views that were checked by repeating all of their recorded changes.
    pub views: u64,
    /// Violations that were found; empty if all data is valid.
    pub violations: Vec<Violation>,
}

impl VerifyReport {
    /// Returns whether no violation was found.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    /// Adds a violation for an item that is too damaged to be read.
    fn add_unreadable(&mut self, what: &str, error: &dyn std::error::Error) {
        let message = format!("{what} cannot be read: {error}");
        self.violations
            .push(Violation::new(ViolationKind::Database, message));
    }

    fn add(&mut self, report: Report) {
        self.conversations += 1;
        self.messages += report.messages;
        self.notes += report.notes;
        self.summaries += report.summaries;
        self.views += report.views;
        self.violations.extend(report.violations);
    }
}

impl Memory {
    /// Checks that the database and all conversations are consistent, including archived ones. Entries and summaries
    /// that forks share are read and counted once.
    ///
    /// # Errors
    /// `Store` if the store cannot be read at all. Damaged content is not an error: it is a violation in the report.
    pub async fn verify(&self) -> Result<VerifyReport> {
        loop {
            let before = self.erasure_counts().await?;
            let verified = self.verify_once().await?;
            // A read before an erasure and a read after it may contradict each other, so the verification is repeated.
            if verified.is_ok() || self.erasure_counts().await? == before {
                return Ok(verified);
            }
        }
    }

    /// Returns the number of erasures of each conversation; an empty list if the conversations cannot be read.
    async fn erasure_counts(&self) -> Result<Vec<(ConversationId, u64)>> {
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let all = match read_conversations(&*self.inner.store, &filter).await {
            Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => Vec::new(),
            all => all?,
        };
        let counts = all.iter().map(|one| (one.id, one.erasures));
        Ok(counts.collect())
    }

    async fn verify_once(&self) -> Result<VerifyReport> {
        let mut verified = VerifyReport {
            violations: self.inner.store.check().await?,
            ..VerifyReport::default()
        };
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut families: BTreeMap<ConversationId, Vec<(ConversationId, SessionKey)>> =
            BTreeMap::new();
        let mut after = None;
        loop {
            let page = match self.inner.store.list(&filter, after, PAGE).await {
                Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                    verified.add_unreadable("the conversations", &error);
                    break;
                }
                page => page?,
            };
            for conversation in page.items {
                let family = families.entry(conversation.family).or_default();
                family.push((conversation.id, conversation.key));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let accountings = self.accountings();
        for family in families.into_values() {
            let mut verifier = Verifier::new(&*self.inner.store, &accountings);
            for (id, key) in family {
                match verifier.verify(id).await {
                    Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                        verified.conversations += 1;
                        verified.add_unreadable(key.as_str(), &error);
                    }
                    report => verified.add(report?),
                }
                match check_index(&*self.inner.store, id).await {
                    Ok(index) => {
                        let damage = index.damage.into_iter();
                        let damage =
                            damage.map(|one| Violation::new(ViolationKind::SearchIndex, one));
                        verified.violations.extend(damage);
                    }
                    Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                        let message = format!("the search index of {key}: {error}");
                        let kind = ViolationKind::SearchIndex;
                        verified.violations.push(Violation::new(kind, message));
                    }
                    Err(error) => return Err(error.into()),
                }
                if let Some(embedder) = &self.inner.embedder {
                    let vectors = check_vectors(&*self.inner.store, id, &**embedder).await?;
                    let damage = vectors.damage.into_iter();
                    let damage = damage.map(|one| Violation::new(ViolationKind::SearchIndex, one));
                    verified.violations.extend(damage);
                }
            }
        }
        Ok(verified)
    }

    /// Returns a function that finds the token accounting for an estimator's id.
    fn accountings(&self) -> impl Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync {
        |id: &EstimatorId| {
            self.accounting(id)
                .map(|accounting| Arc::new(accounting) as Arc<dyn Accounting>)
        }
    }

    /// Verifies one conversation.
    pub(crate) async fn verify_one(&self, conversation: &Conversation) -> Result<VerifyReport> {
        let accountings = self.accountings();
        let store = &*self.inner.store;
        let mut erasures = conversation.erasures;
        loop {
            let mut verified = VerifyReport::default();
            verified.add(verify(store, conversation.id, &accountings).await?);
            let id = ConversationRef::Id(conversation.id);
            let now = store.conversation(&id).await?.map(|now| now.erasures);
            if verified.is_ok() || now.is_none_or(|now| now == erasures) {
                return Ok(verified);
            }
            // A read before an erasure and a read after it may contradict each other, so the verification is repeated.
            erasures = now.unwrap_or(erasures);
        }
    }
}
