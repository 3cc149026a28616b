//! Copies of one conversation of another store.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    Child, ConversationId, Hash, Seq, SeqRange, Span, SpanStart, SpliceRows, Summary, SummaryId,
};

use super::{InMemoryStore, Inner, Record, ViewRecord};
use crate::checks::no_conversation;
use crate::error::Result;
use crate::read::{read_entries, read_spans};
use crate::store::Store;
use crate::types::{ConversationRef, Origin, Segment};

/// Number of the copied conversation.
const ID: ConversationId = ConversationId(1);

impl InMemoryStore {
    /// Returns a store with a copy of one conversation: its log with the shared part, its views, and all summaries that
    /// they are made of. The copy is a root, and each of its views has one version. Earlier versions, states, drafts and
    /// search indexes are not copied.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist, and the errors of reading the store.
    pub async fn copy_of<S: Store + ?Sized>(
        store: &S,
        conversation: ConversationId,
    ) -> Result<Self> {
        let found = store
            .conversation(&ConversationRef::Id(conversation))
            .await?;
        let mut info = found.ok_or_else(|| no_conversation(conversation))?;
        let whole = SeqRange::new(Seq::FIRST, info.head);
        let log = read_entries(store, conversation, whole).await?;
        let mut views = BTreeMap::new();
        let mut shown = Vec::new();
        for view in store.views(conversation).await? {
            let snapshot = store.snapshot(conversation, &view.name).await?;
            let spans = read_spans(store, &snapshot, whole).await?;
            shown.extend(spans.iter().filter_map(|span| span.body.summary()).cloned());
            let rows = copied_rows(&spans);
            if let Some(whole) = whole.filter(|_| !rows.added.is_empty()) {
                let mut view_record = ViewRecord::new();
                view_record.publish(whole, rows, snapshot.saved.into(), info.updated_at);
                views.insert(view.name, view_record);
            }
        }
        let summaries = read_trees(store, conversation, shown).await?;
        info.id = ID;
        info.family = ID;
        info.origin = Origin::Root;
        let hashes = log.iter().map(|entry| entry.hash);
        info.chain = hashes.fold(Hash::ZERO, Hash::chain);
        info.segments = vec![Segment {
            first: Seq::FIRST,
            last: None,
            source: ID,
        }];
        let external = log
            .iter()
            .filter_map(|entry| Some((entry.message.external_id.clone()?, entry.seq)));
        let index = summaries.iter().enumerate();
        let record = Record {
            external: external.collect(),
            clocked: BTreeSet::new(),
            views,
            summary_index: index.map(|(at, one)| (one.id.clone(), at)).collect(),
            summaries,
            jobs: BTreeMap::new(),
            fences: 0,
            states: BTreeMap::new(),
            erasures: Vec::new(),
            erased_summaries: BTreeSet::new(),
            index: Vec::new(),
            vectors: BTreeMap::new(),
            log,
            info,
        };
        let copy = Self::new();
        *copy.lock() = Inner {
            keys: BTreeMap::from([(record.info.key.clone(), ID)]),
            conversations: vec![record],
            ..Inner::default()
        };
        Ok(copy)
    }
}

/// Returns the change that gives a new view these spans.
fn copied_rows(spans: &[Span]) -> SpliceRows {
    let mut added: Vec<SpanStart> = spans.iter().map(SpanStart::from).collect();
    // A view ends with an open span, which may begin behind the log.
    if let Some(last) = spans.last().and_then(Span::closed_range) {
        added.push(SpanStart {
            first: last.last.next(),
            ..SpanStart::FIRST
        });
    }
    let removed = match added.first() {
        Some(first) if *first == SpanStart::FIRST => {
            added.remove(0);
            Vec::new()
        }
        _ => vec![SpanStart::FIRST],
    };
    SpliceRows { removed, added }
}

/// Reads summaries with all summaries that they were made from or unfold to.
async fn read_trees<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    mut next: Vec<SummaryId>,
) -> Result<Vec<Summary>> {
    let mut known: BTreeSet<SummaryId> = next.iter().cloned().collect();
    let mut summaries = Vec::new();
    while !next.is_empty() {
        let found = store.summaries(conversation, &next).await?;
        next.clear();
        for summary in found.into_iter().flatten() {
            let below = summary.children.iter().chain(&summary.sources);
            for id in below.filter_map(Child::summary) {
                if known.insert(id.clone()) {
                    next.push(id.clone());
                }
            }
            summaries.push(summary);
        }
    }
    Ok(summaries)
}
