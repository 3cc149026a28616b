//! The reference store: plain collections, protected by one lock.
//!
//! It is written for readability. Database stores are tested against it.

mod copy;
mod erase;
mod index;
mod jobs;
mod publish;
mod store;
mod vectors;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use memory_model::{
    Clock, ConversationId, Hash, LogEntry, Seq, SeqRange, SessionKey, SpanStart, SpliceRows,
    Summary, SummaryId, SystemClock, Timestamp, ViewName, ViewVersion,
};

use crate::checks::no_conversation;
use crate::erasure::Erasure;
use crate::error::{Error, ErrorKind, Result};
use crate::inherit::{Inherited, SummaryScope, ViewCut};
use crate::publish::spans_cost;
use crate::record::KnownEntry;
use crate::segments::{Chunk, IndexSegment};
use crate::store::Maintain;
use crate::types::{
    Conversation, Draft, JobKey, Origin, Owner, Publication, State, publication_hash,
};
use crate::vector::Vector;
use crate::violation::Violation;

/// Maximum number of conversations in a store, so that a number fits the upper half of a signed 64-bit row id.
const MAX_CONVERSATIONS: u32 = i32::MAX as u32;

/// A store in memory. It is the reference for all other stores, and is suitable for tests and short sessions.
#[derive(Debug)]
pub struct InMemoryStore {
    inner: Mutex<Inner>,
    /// Clock that decides when leases end.
    clock: Arc<dyn Clock>,
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// Id of the latest index segment.
    index_segments: u64,
    conversations: Vec<Record>,
    keys: BTreeMap<SessionKey, ConversationId>,
}

#[derive(Debug)]
struct Record {
    info: Conversation,
    /// The conversation's own log, which begins at position `info.own_first()`.
    log: Vec<LogEntry>,
    /// Positions in the own log, by external id.
    external: BTreeMap<String, Seq>,
    /// Positions of entries in the own log for which the caller gave no time.
    clocked: BTreeSet<Seq>,
    views: BTreeMap<ViewName, ViewRecord>,
    summaries: Vec<Summary>,
    /// Index of each own summary in `summaries`, by id.
    summary_index: BTreeMap<SummaryId, usize>,
    jobs: BTreeMap<JobKey, Job>,
    /// Number of the latest fence. The next grant of a lease gets the next number.
    fences: u64,
    states: BTreeMap<String, State>,
    /// Erasures in the conversation's own log.
    erasures: Vec<Erasure>,
    /// Ids of the conversation's own summaries whose words were erased.
    erased_summaries: BTreeSet<SummaryId>,
    /// Index segments over the own log and own summaries, each with its chunks.
    index: Vec<(IndexSegment, Vec<Chunk>)>,
    /// Vectors of the entries of the own log, by embedder and position.
    vectors: BTreeMap<String, BTreeMap<Seq, Option<Vector>>>,
}

#[derive(Debug, Clone)]
struct ViewRecord {
    rows: Vec<SpanStart>,
    publications: Vec<Publication>,
    saved: i64,
}

#[derive(Debug, Default)]
struct Job {
    holder: Option<(Owner, Timestamp)>,
    token: u64,
    tries: u32,
    draft: Option<Draft>,
}

impl ViewRecord {
    fn new() -> Self {
        Self {
            rows: vec![SpanStart::FIRST],
            publications: Vec::new(),
            saved: 0,
        }
    }

    fn version(&self) -> ViewVersion {
        ViewVersion(self.publications.len() as u64)
    }

    fn chain(&self) -> Hash {
        self.publications
            .last()
            .map_or(Hash::ZERO, |last| last.hash)
    }

    /// Applies a change of the stored span starts (rows) as the next version of the view. The new spans cost `saving`
    /// tokens less than the old ones.
    fn publish(&mut self, at: SeqRange, rows: SpliceRows, saving: i128, now: Timestamp) {
        let version = self.version().next();
        let hash = publication_hash(self.chain(), version, at, &rows.removed, &rows.added);
        let saved = (i128::from(self.saved) + saving).clamp(i64::MIN.into(), i64::MAX.into());
        self.saved = i64::try_from(saved).unwrap_or_default();
        self.rows
            .retain(|row| !rows.removed.iter().any(|gone| gone.first == row.first));
        self.rows.extend(rows.added.iter().cloned());
        self.rows.sort_by_key(|row| row.first);
        self.publications.push(Publication {
            version,
            at,
            removed: rows.removed,
            added: rows.added,
            created_at: now,
            hash,
        });
    }

    /// Returns the starts of the view's spans as they were at a version.
    fn rows_at(&self, version: ViewVersion) -> Cow<'_, [SpanStart]> {
        if version == self.version() {
            return Cow::Borrowed(&self.rows);
        }
        let mut rows = BTreeMap::from([(Seq::FIRST, SpanStart::FIRST)]);
        for publication in self.publications.iter().filter(|p| p.version <= version) {
            for row in &publication.removed {
                rows.remove(&row.first);
            }
            for row in &publication.added {
                rows.insert(row.first, row.clone());
            }
        }
        Cow::Owned(rows.into_values().collect())
    }
}

impl Record {
    fn summary(&self, id: &SummaryId) -> Option<&Summary> {
        self.summary_index
            .get(id)
            .and_then(|index| self.summaries.get(*index))
    }
}

impl InMemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock that decides when leases end. The default is the system's clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is made to a copy or in one step, so a panic in another thread leaves no incomplete state.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get(&self, id: ConversationId) -> Result<&Record> {
        (id.0 as usize)
            .checked_sub(1)
            .and_then(|index| self.conversations.get(index))
            .ok_or_else(|| no_conversation(id))
    }

    fn get_mut(&mut self, id: ConversationId) -> Result<&mut Record> {
        (id.0 as usize)
            .checked_sub(1)
            .and_then(|index| self.conversations.get_mut(index))
            .ok_or_else(|| no_conversation(id))
    }

    /// Returns the entry that a conversation sees at a position.
    fn entry(&self, record: &Record, seq: Seq) -> Option<&LogEntry> {
        let segment = record
            .info
            .segments
            .iter()
            .find(|s| s.first <= seq && s.last.is_none_or(|last| seq <= last))?;
        let source = self.get(segment.source).ok()?;
        let index = seq.0.checked_sub(source.info.own_first().0)?;
        source.log.get(index as usize)
    }

    fn running_at(&self, record: &Record, seq: Seq) -> u64 {
        match seq.min(record.info.head) {
            Seq::NONE => 0,
            seq => self.entry(record, seq).map_or(0, |entry| entry.running),
        }
    }

    fn cost(&self, record: &Record, range: SeqRange) -> u64 {
        self.running_at(record, range.last)
            .saturating_sub(self.running_at(record, range.first.prev()))
    }

    /// Returns the scopes of the summaries that a conversation sees: its own first, then its parent's, and so on.
    fn lineage(&self, record: &Record) -> Vec<SummaryScope> {
        let mut lineage = vec![SummaryScope::own(record.info.id)];
        let mut origin = &record.info.origin;
        while let (Origin::Fork { parent, at }, Some(last)) = (origin, lineage.last()) {
            lineage.push(last.parent(*parent, *at));
            let Ok(parent) = self.get(*parent) else {
                break;
            };
            origin = &parent.info.origin;
        }
        lineage
    }

    /// Returns the summary with this id, as a conversation sees it. The conversation's own summary comes before those
    /// of its ancestors.
    fn summary(&self, lineage: &[SummaryScope], id: &SummaryId) -> Option<&Summary> {
        lineage.iter().find_map(|scope| {
            let summary = self.get(scope.conversation).ok()?.summary(id)?;
            scope.sees(summary.range).then_some(summary)
        })
    }

    /// Returns all summaries that a conversation sees, each once. The ancestors' summaries come first. The summaries of
    /// each conversation are in the order of creation.
    fn summaries<'a>(&'a self, lineage: &'a [SummaryScope]) -> impl Iterator<Item = &'a Summary> {
        lineage
            .iter()
            .enumerate()
            .rev()
            .flat_map(move |(index, scope)| {
                let nearer = lineage.get(..index).unwrap_or_default();
                let all = self.get(scope.conversation).map(|record| &record.summaries);
                all.into_iter().flatten().filter(move |summary| {
                    scope.sees(summary.range) && self.summary(nearer, &summary.id).is_none()
                })
            })
    }

    /// Returns the first publication of a fork's view, made from the span starts of its parent's view.
    fn cut(&self, parent: &Record, rows: &[SpanStart], at: Seq) -> Result<Option<Inherited>> {
        let lineage = self.lineage(parent);
        let mut cut = ViewCut::new(rows, at);
        while let Some(id) = cut.crossing() {
            let summary = self.summary(&lineage, id).ok_or_else(|| {
                let message = format!("{} shows {id}, which is missing", parent.info.key);
                Error::new(ErrorKind::Corrupt, message)
            })?;
            cut.open(summary, |id| self.summary(&lineage, id).map(Into::into))?;
        }
        cut.finish()
    }

    /// Returns the first views of a fork of `parent`, with `at` as the last shared position.
    fn inherited(
        &self,
        parent: &Record,
        at: Seq,
        now: Timestamp,
    ) -> Result<BTreeMap<ViewName, ViewRecord>> {
        let mut views = BTreeMap::new();
        for (name, view) in &parent.views {
            let Some(Inherited { at, spans, rows }) = self.cut(parent, &view.rows, at)? else {
                continue;
            };
            let raw = self.cost(parent, at);
            let cost = spans_cost(&spans, |range| self.cost(parent, range));
            let mut view = ViewRecord::new();
            view.publish(at, rows, i128::from(raw) - i128::from(cost), now);
            views.insert(name.clone(), view);
        }
        Ok(views)
    }

    fn find(&self, record: &Record, id: &str) -> Option<KnownEntry> {
        record.info.segments.iter().find_map(|segment| {
            let source = self.get(segment.source).ok()?;
            let seq = *source.external.get(id)?;
            let visible = segment.first <= seq && segment.last.is_none_or(|last| seq <= last);
            let entry = self.entry(record, seq).filter(|_| visible)?;
            Some(KnownEntry {
                seq,
                hash: entry.hash,
                created_at: entry.message.created_at,
                clocked: source.clocked.contains(&seq),
            })
        })
    }
}

#[async_trait]
impl Maintain for InMemoryStore {
    async fn check(&self) -> Result<Vec<Violation>> {
        Ok(Vec::new())
    }

    fn location(&self) -> String {
        "memory".to_owned()
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
