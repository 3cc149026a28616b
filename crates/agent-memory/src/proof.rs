//! Receipts of logs and certificates of views, to be kept outside of a database, and comparisons with them.

#[cfg(feature = "import")]
mod transcript;

use std::collections::BTreeMap;

use memory_model::{
    ConversationId, FieldHasher, Hash, Seq, SeqRange, SessionKey, SpanBody, ViewName, ViewVersion,
};
use memory_store::{
    Erasures, ErrorKind as StoreErrorKind, Violation, ViolationKind, message_costs,
    read_shown_summaries, read_spans,
};
use serde::{Deserialize, Serialize};
use token_estimate::EstimatorId;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::Memory;
use crate::session::Session;

#[cfg(feature = "import")]
pub use self::transcript::{TranscriptCheck, check_transcript};

/// Receipt of a session's log: its end, the hash of its entries, and its erasures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Receipt {
    /// Name and version of the format: [`Receipt::FORMAT`].
    pub format: String,
    /// Key of the session.
    pub session: SessionKey,
    /// Number of the conversation in its store.
    pub conversation: ConversationId,
    /// Last position of the log. `Seq(0)` if the log is empty.
    pub head: Seq,
    /// Chain hash over all entries that the session shows, with those that a fork shares with its parent.
    pub hash: Hash,
    /// Number of erasures of words of the session.
    pub erasures: u64,
    /// Positions with erased words, in order.
    pub erased: Vec<SeqRange>,
    /// Time of the receipt.
    pub at: String,
}

impl Receipt {
    /// Name and version of the format of receipts.
    pub const FORMAT: &'static str = "agent-memory receipt 1";

    /// Makes a receipt of a session's log.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn of(session: &Session) -> Result<Self> {
        let log = session.info().await?.conversation;
        let hash = match log.own_first() {
            Seq::FIRST => log.chain,
            _ => extended(Hash::ZERO, session, log.range()).await?,
        };
        Ok(Self {
            format: Self::FORMAT.to_owned(),
            session: log.key,
            conversation: log.id,
            head: log.head,
            hash,
            erasures: log.erasures,
            erased: erased_positions(&session.erasures().await?),
            at: session.memory().inner.clock.now().to_string(),
        })
    }
}

/// Compares receipts with the stored logs, which may have grown. Reads the log of a session once for all its receipts,
/// and reports one violation for it. Does not check the stored logs themselves: see [`Memory::verify`].
///
/// # Errors
/// `Store` if the store fails. A log that cannot be read is a violation.
pub async fn check_receipts(memory: &Memory, receipts: &[Receipt]) -> Result<Vec<Violation>> {
    let mut by_session: BTreeMap<&SessionKey, Vec<&Receipt>> = BTreeMap::new();
    for receipt in receipts {
        by_session
            .entry(&receipt.session)
            .or_default()
            .push(receipt);
    }
    let mut violations = Vec::new();
    for (key, mut receipts) in by_session {
        receipts.sort_by_key(|receipt| receipt.head);
        violations.extend(check_session(memory, key, &receipts).await?);
    }
    Ok(violations)
}

/// Compares receipts of one session, sorted by their heads, with the stored log. Returns the first violation.
async fn check_session(
    memory: &Memory,
    key: &SessionKey,
    receipts: &[&Receipt],
) -> Result<Option<Violation>> {
    let Some(latest) = receipts.last() else {
        return Ok(None);
    };
    let violation = |kind, message| Ok(Some(Violation::new(kind, message)));
    let Some(session) = memory.find_session(key.clone()).await? else {
        let message = format!(
            "{key}: the session is missing since the receipt of {}",
            latest.at
        );
        return violation(ViolationKind::SessionMissing, message);
    };
    let log = session.info().await?.conversation;
    if let Some(lost) = SeqRange::new(log.head.next(), latest.head) {
        let message = format!(
            "{key}: entries {lost} are missing since the receipt of {}: the database lost its write-ahead log (the \
             file -wal), or is an older copy",
            latest.at
        );
        return violation(ViolationKind::LogShortened, message);
    }
    let mut chain = Hash::ZERO;
    let mut read = Seq::NONE;
    for receipt in receipts {
        let added = SeqRange::new(read.next(), receipt.head);
        match extended(chain, &session, added).await {
            Ok(hash) if hash == receipt.hash => (chain, read) = (hash, receipt.head),
            Err(error) if error.kind() != ErrorKind::Store(StoreErrorKind::Corrupt) => {
                return Err(error);
            }
            _ => {
                let message = format!(
                    "{key}: entries 1-{} are not those of the receipt of {}",
                    receipt.head, receipt.at
                );
                return violation(ViolationKind::LogReplaced, message);
            }
        }
    }
    let erased = erased_positions(&session.erasures().await?);
    let is_erased = |was: &SeqRange| erased.iter().any(|range| range.covers(was));
    let is_undone = |receipt: &&&Receipt| {
        log.erasures < receipt.erasures || !receipt.erased.iter().all(is_erased)
    };
    if let Some(receipt) = receipts.iter().find(is_undone) {
        let message = format!(
            "{key}: an erasure is missing since the receipt of {}, so erased words may be back: the database is an \
             older copy, or was changed",
            receipt.at
        );
        return violation(ViolationKind::ErasureMissing, message);
    }
    Ok(None)
}

/// Certificate of a compaction: a version of a session's view, tied to the entries of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Certificate {
    /// Name and version of the format: [`Certificate::FORMAT`].
    pub format: String,
    /// Receipt of the log that the view compacts.
    pub log: Receipt,
    /// Id of the estimator that counted the tokens.
    pub estimator: EstimatorId,
    /// Name of the view.
    pub view: ViewName,
    /// Version of the view.
    pub version: ViewVersion,
    /// Chain hash over the publications of the view through this version.
    pub history: Hash,
    /// Spans of the view up to the end of the log, in order.
    pub spans: Vec<CertifiedSpan>,
    /// Hash over the canonical JSON (RFC 8785) of `spans`.
    pub partition: Hash,
    /// Budget that the view keeps, in tokens: its spans, messages included, cost at most this. `None` if no budget was
    /// asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Command that shows this version of the view.
    pub replay: String,
    /// Ed25519 public key of the signature, in hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Ed25519 signature over [`Certificate::signed_text`], in hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A span of a certified view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CertifiedSpan {
    /// Kind of the span: `raw`, `summary`, `trimmed` or `omitted`.
    pub kind: String,
    /// First position of the span.
    pub first: Seq,
    /// Last position of the span, at most the end of the log.
    pub last: Seq,
    /// Cost of the summary or of the shortened messages, in tokens; 0 for other spans.
    pub tokens: u64,
    /// Id of the policy that shortened the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The summary that the span shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<CertifiedSummary>,
}

/// A summary in a certified view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CertifiedSummary {
    /// Id of the summary.
    pub id: String,
    /// Hash of the summary. It covers the text, the children, and the hashes of the sources.
    pub hash: Hash,
    /// Recipe by which the summary was made.
    pub recipe: String,
    /// Id of the rendering for which the cost was counted.
    pub rendering: String,
    /// Name of the model that wrote the summary.
    pub model: Option<String>,
}

impl Certificate {
    /// Name and version of the format of certificates.
    pub const FORMAT: &'static str = "agent-memory certificate 1";

    /// Makes an unsigned certificate of the current version of a session's view. `replay` is a command that shows this
    /// version.
    ///
    /// # Errors
    /// - `BudgetTooSmall` if the view costs more than the budget.
    /// - `Store` if the store fails.
    pub async fn of(
        session: &Session,
        budget: Option<u64>,
        replay: impl FnOnce(ViewVersion) -> String,
    ) -> Result<Self> {
        let log = Receipt::of(session).await?;
        let view = session.snapshot().await?;
        let mut certificate = Self::at(session, log, view.view, view.version).await?;
        if let Some(budget) = budget {
            let needed = certificate.cost(session).await?;
            if needed > budget {
                let message = format!(
                    "the view of {} costs {needed} tokens, more than the budget of {budget}: compact the session first",
                    session.key()
                );
                return Err(Error::new(ErrorKind::BudgetTooSmall { needed }, message));
            }
        }
        certificate.budget = budget;
        certificate.replay = replay(view.version);
        Ok(certificate)
    }

    /// Returns the cost of the spans, in tokens.
    async fn cost(&self, session: &Session) -> Result<u64> {
        let shown = self.spans.iter().filter(|span| span.kind == "raw");
        let shown = shown.filter_map(|span| SeqRange::new(span.first, span.last));
        let shown: Vec<SeqRange> = shown.collect();
        let store = &*session.memory().inner.store;
        let messages = message_costs(store, session.id(), &shown).await?;
        let spans = self.spans.iter().map(|span| span.tokens);
        Ok(spans.chain(messages).sum())
    }

    async fn at(
        session: &Session,
        log: Receipt,
        view: ViewName,
        version: ViewVersion,
    ) -> Result<Self> {
        let store = &*session.memory().inner.store;
        let mut snapshot = store.snapshot(session.id(), &view).await?;
        snapshot.version = version;
        let shown = read_spans(store, &snapshot, SeqRange::new(Seq::FIRST, log.head)).await?;
        let mut summaries = read_shown_summaries(store, session.id(), &shown)
            .await?
            .into_iter();
        let spans = shown.iter().filter_map(|span| {
            let range = span.range.up_to(log.head)?;
            let (kind, policy) = match &span.body {
                SpanBody::Raw => ("raw", None),
                SpanBody::Summary { .. } => ("summary", None),
                SpanBody::Trimmed(policy) => ("trimmed", Some(policy.as_str().to_owned())),
                SpanBody::Omitted => ("omitted", None),
            };
            let summary = span.body.summary().and_then(|_| summaries.next().flatten());
            Some(CertifiedSpan {
                kind: kind.to_owned(),
                first: range.first,
                last: range.last,
                tokens: span.tokens,
                policy,
                summary: summary.map(|summary| CertifiedSummary {
                    id: summary.id.as_str().to_owned(),
                    hash: summary.hash,
                    recipe: summary.recipe.as_str().to_owned(),
                    rendering: summary.rendering.as_str().to_owned(),
                    model: summary.model,
                }),
            })
        });
        let spans: Vec<CertifiedSpan> = spans.collect();
        let before = ViewVersion(version.0.saturating_sub(1));
        let published = store.publications(session.id(), &view, before, 1).await?;
        let published = published.items.first();
        let published = published.filter(|published| published.version == version);
        Ok(Self {
            format: Self::FORMAT.to_owned(),
            log,
            estimator: session.info().await?.conversation.estimator,
            view,
            version,
            history: published.map_or(Hash::ZERO, |published| published.hash),
            partition: partition_hash(&spans)?,
            spans,
            budget: None,
            replay: String::new(),
            public_key: None,
            signature: None,
        })
    }

    /// Compares the certificate with the stored log and view. Later entries and versions are permitted. Does not check
    /// the signature.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn check(&self, memory: &Memory) -> Result<Vec<Violation>> {
        let mut violations = check_receipts(memory, std::slice::from_ref(&self.log)).await?;
        let Some(session) = memory.find_session(self.log.session.clone()).await? else {
            return Ok(violations);
        };
        let name = format!("{}: view {}", self.log.session, self.view);
        let mut differs = |message: String| {
            violations.push(Violation::new(ViolationKind::CertificateDiffers, message));
        };
        let store = &*memory.inner.store;
        let newest = store.snapshot(session.id(), &self.view).await?.version;
        if self.version > newest {
            differs(format!(
                "{name} has version {newest}, but version {} is certified: the database is an older copy",
                self.version
            ));
            return Ok(violations);
        }
        let log = self.log.clone();
        let stored = Self::at(&session, log, self.view.clone(), self.version).await?;
        let name = format!("{name} version {}", self.version);
        if self.history != stored.history {
            differs(format!("{name} has another history than is certified"));
        }
        if self.estimator != stored.estimator {
            differs(format!("{name} is not counted with {}", self.estimator));
        }
        if self.partition != partition_hash(&self.spans)? {
            differs(format!(
                "{name}: the certified hash is not that of the certified spans"
            ));
        }
        if self.spans != stored.spans {
            let mut pairs = self.spans.iter().zip(&stored.spans);
            let at = pairs.find(|(certified, stored)| certified != stored);
            let at = at.map_or_else(String::new, |(span, _)| {
                format!(" from the span {}-{} on", span.first, span.last)
            });
            differs(format!("{name} shows other spans than are certified{at}"));
        }
        if let Some(budget) = self.budget {
            let cost = stored.cost(&session).await?;
            if cost > budget {
                differs(format!(
                    "{name} costs {cost} tokens, more than the certified budget of {budget}"
                ));
            }
        }
        Ok(violations)
    }

    /// Returns the text that a signature covers: the certificate without its signature, in canonical JSON (RFC 8785).
    ///
    /// # Errors
    /// `Invalid` if the certificate cannot be written as JSON.
    pub fn signed_text(&self) -> Result<String> {
        let unsigned = Self {
            signature: None,
            ..self.clone()
        };
        canonical_json(&unsigned)
    }
}

/// Returns the hash over the spans of a view.
fn partition_hash(spans: &[CertifiedSpan]) -> Result<Hash> {
    let mut hasher = FieldHasher::new("agent-memory partition 1");
    hasher.bytes(canonical_json(&spans)?.as_bytes());
    Ok(hasher.finish())
}

/// Returns a value in canonical JSON: sorted keys without white space. All numbers of certificates are integers.
fn canonical_json<T: Serialize>(value: &T) -> Result<String> {
    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Sorted {
        Object(BTreeMap<String, Sorted>),
        List(Vec<Sorted>),
        Other(serde_json::Value),
    }
    let sorted: Sorted = serde_json::from_value(serde_json::to_value(value)?)?;
    Ok(serde_json::to_string(&sorted)?)
}

/// Returns a chain hash after the entries of a range of a session.
async fn extended(mut chain: Hash, session: &Session, added: Option<SeqRange>) -> Result<Hash> {
    let mut rest = added;
    while let Some(range) = rest {
        let page = session.entries_in(range).await?;
        let hashes = page.items.iter().map(|entry| entry.hash);
        chain = hashes.fold(chain, Hash::chain);
        rest = page.next;
    }
    Ok(chain)
}

/// Returns the positions of erased entries, as ranges that neither overlap nor touch.
fn erased_positions(erasures: &Erasures) -> Vec<SeqRange> {
    let mut ranges: Vec<SeqRange> = Vec::new();
    for erasure in &erasures.entries {
        let next = erasure.range;
        let last = ranges.pop_if(|last| next.first <= last.last.next());
        let joined = last.and_then(|last| SeqRange::new(last.first, last.last.max(next.last)));
        ranges.push(joined.unwrap_or(next));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_has_sorted_keys_and_no_white_space() {
        let value = serde_json::json!({"b": [1, {"z": null, "a": "ü\n\u{1}"}], "a": true});
        assert_eq!(
            canonical_json(&value).unwrap(),
            "{\"a\":true,\"b\":[1,{\"a\":\"ü\\n\\u0001\",\"z\":null}]}"
        );
    }
}
