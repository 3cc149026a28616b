//! Copies of one conversation of another store.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, ConversationId, Seq, SeqRange, Span, SpanStart, Summary, SummaryId};

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
    /// they are made of. The copy is a root, and its views begin at version 0. Earlier versions, states, drafts and
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
            views.insert(view.name, copied_view(&spans, snapshot.saved));
        }
        let summaries = read_trees(store, conversation, shown).await?;
        info.id = ID;
        info.family = ID;
        info.origin = Origin::Root;
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

/// Returns a view with these spans, which cost `saved` tokens less than the messages.
fn copied_view(spans: &[Span], saved: i64) -> ViewRecord {
    let mut rows: Vec<SpanStart> = spans.iter().map(SpanStart::from).collect();
    // A view ends with an open span, which may begin behind the log.
    if let Some(last) = spans.last().and_then(Span::closed_range) {
        rows.push(SpanStart {
            first: last.last.next(),
            ..SpanStart::FIRST
        });
    }
    let mut view = ViewRecord::new();
    if !rows.is_empty() {
        (view.rows, view.saved) = (rows, saved);
    }
    view
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
