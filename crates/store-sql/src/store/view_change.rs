//! Span starts of one view in memory while publishes are applied to them, and the database rows to write at the end.

use std::collections::BTreeMap;

use memory_model::{
    ConversationId, Hash, Seq, SeqRange, Span, SpanBody, SpanStart, SpliceError, SpliceRows,
    Timestamp, ViewName, ViewVersion, clip_starts, splice_starts,
};
use memory_store::implementors::{publication_hash, spans_cost};
use memory_store::{Publish, Result};

use super::ROWS;
use super::log::Log;
use super::pages::batched;
use super::running::RunningSums;
use crate::batch::Batch;
use crate::convert::{to_count, to_hash};
use crate::executor::Executor;
use crate::family::Family;
use crate::row::Columns;
use crate::view::{self as sql, AddedSpan, PublicationRow};

/// A replacement of spans over one range.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) before: Vec<Span>,
    pub(super) after: Vec<Span>,
}

/// Span starts of a view around some ranges, to which publishes are applied one by one. Each publish makes a version of
/// the view.
#[derive(Debug)]
pub(super) struct ViewChange {
    version: ViewVersion,
    saved: i64,
    chain: Hash,
    /// Version of the view in the database.
    stored: ViewVersion,
    starts: Vec<SpanStart>,
    /// Version that added each span, by the first position of the span.
    added_in: BTreeMap<Seq, ViewVersion>,
    /// First positions of the stored spans to delete.
    deleted: Vec<Seq>,
    removed: Vec<(ViewVersion, AddedSpan)>,
    publications: Vec<PublicationRow>,
    replaced: Vec<Replaced>,
}

impl ViewChange {
    /// Creates the state of a view that was never published.
    pub(super) fn new() -> Self {
        let mut change = Self {
            version: ViewVersion(0),
            saved: 0,
            chain: Hash::ZERO,
            stored: ViewVersion(0),
            starts: Vec::new(),
            added_in: BTreeMap::new(),
            deleted: Vec::new(),
            removed: Vec::new(),
            publications: Vec::new(),
            replaced: Vec::new(),
        };
        // Every view begins as one raw span.
        change.set_rows(vec![AddedSpan {
            start: SpanStart::FIRST,
            added_in: ViewVersion(0),
        }]);
        change
    }

    /// Creates the state of a view from its row: version, saved tokens and chain hash.
    pub(super) fn of(row: &impl Columns) -> Result<Self> {
        let version = ViewVersion(to_count("version", row.int(0)?)?);
        Ok(Self {
            version,
            stored: version,
            saved: row.int(1)?,
            chain: to_hash("view", &row.bytes(2)?)?,
            ..Self::new()
        })
    }

    /// Sets the span starts, which must be in rising order.
    pub(super) fn set_rows(&mut self, rows: Vec<AddedSpan>) {
        let added = rows.iter().map(|row| (row.start.first, row.added_in));
        self.added_in = added.collect();
        self.starts = rows.into_iter().map(|row| row.start).collect();
    }

    /// Returns whether the database has no row of the view.
    pub(super) fn is_new(&self) -> bool {
        self.stored == ViewVersion(0)
    }

    pub(super) fn version(&self) -> ViewVersion {
        self.version
    }

    /// Returns the replacements applied so far.
    pub(super) fn replaced(&self) -> &[Replaced] {
        &self.replaced
    }

    /// Returns the span starts that a publish would remove and add.
    pub(super) fn splice(&self, publish: &Publish) -> std::result::Result<SpliceRows, SpliceError> {
        splice_starts(&self.starts, publish.at, &publish.expect, &publish.spans)
    }

    /// Applies a publish as the next version.
    pub(super) fn apply(&mut self, publish: &Publish, rows: SpliceRows) {
        self.replaced.push(Replaced {
            before: clip_starts(&self.starts, publish.at),
            after: publish.spans.clone(),
        });
        self.put(publish.at, rows, publish.now);
    }

    /// Replaces span starts over a range, and makes this the next version of the view.
    pub(super) fn put(&mut self, at: SeqRange, rows: SpliceRows, now: Timestamp) {
        self.version = self.version.next();
        self.chain = publication_hash(self.chain, self.version, at, &rows.removed, &rows.added);
        self.publications.push(PublicationRow {
            version: self.version,
            at,
            created_at: now,
            hash: self.chain,
        });
        for start in rows.removed {
            self.starts.retain(|row| row.first != start.first);
            let added_in = self.added_in.remove(&start.first).unwrap_or_default();
            if added_in <= self.stored && !self.is_new() {
                self.deleted.push(start.first);
            }
            self.removed
                .push((self.version, AddedSpan { start, added_in }));
        }
        for start in rows.added {
            self.added_in.insert(start.first, self.version);
            let place = self.starts.partition_point(|row| row.first < start.first);
            self.starts.insert(place, start);
        }
    }

    /// Adds the SQL statements that write the changes to a batch. `saving` is the cost of the replaced spans minus the
    /// cost of the new ones, in tokens.
    pub(super) fn write(
        &self,
        batch: &mut Batch,
        family: Family,
        id: ConversationId,
        view: &ViewName,
        saving: i128,
    ) -> Result<()> {
        for removed in self.removed.chunks(ROWS) {
            batch.push(sql::insert_history(family, id.0, view, removed)?);
        }
        for deleted in batched(&self.deleted) {
            batch.push(sql::delete_spans(family, id.0, view, &deleted));
        }
        let fresh: Vec<AddedSpan> = self.fresh().collect();
        for fresh in fresh.chunks(ROWS) {
            batch.push(sql::insert_spans(family, id.0, view, fresh)?);
        }
        for publications in self.publications.chunks(ROWS) {
            batch.push(sql::insert_publications(family, id.0, view, publications)?);
        }
        let saved = (i128::from(self.saved) + saving).clamp(i64::MIN.into(), i64::MAX.into());
        let saved = i64::try_from(saved).unwrap_or_default();
        batch.push(sql::put_view(
            family,
            id.0,
            view,
            self.version,
            saved,
            self.chain,
        )?);
        Ok(())
    }

    /// Returns the current rows that are not in the database yet.
    fn fresh(&self) -> impl Iterator<Item = AddedSpan> {
        self.starts.iter().filter_map(|start| {
            let added_in = self.added_in.get(&start.first).copied()?;
            let fresh = added_in > self.stored || self.is_new();
            fresh.then(|| AddedSpan {
                start: start.clone(),
                added_in,
            })
        })
    }
}

/// Returns the cost of the replaced spans minus the cost of the new spans, in tokens. Reads the running sums that are
/// not known.
pub(super) async fn saving(
    on: &mut impl Executor,
    log: &Log,
    mut sums: RunningSums,
    replaced: &[Replaced],
) -> Result<i128> {
    let spans = replaced
        .iter()
        .flat_map(|r| r.before.iter().chain(&r.after));
    sums.read(on, log, &ends_of_raw(spans)).await?;
    let sum = |seq: Seq| sums.at(log, seq);
    let raw = |range: SeqRange| sum(range.last).saturating_sub(sum(range.first.prev()));
    let cost = |spans: &[Span]| i128::from(spans_cost(spans, raw));
    Ok(replaced
        .iter()
        .map(|r| cost(&r.before) - cost(&r.after))
        .sum())
}

/// Returns the positions at which running sums are needed to compute the costs of raw spans: before the first and at
/// the last position of each.
pub(super) fn ends_of_raw<'s>(spans: impl Iterator<Item = &'s Span>) -> Vec<Seq> {
    let mut at: Vec<Seq> = spans
        .filter(|span| span.body == SpanBody::Raw)
        .filter_map(Span::closed_range)
        .flat_map(|range| [range.first.prev(), range.last])
        .collect();
    at.sort_unstable();
    at.dedup();
    at
}
