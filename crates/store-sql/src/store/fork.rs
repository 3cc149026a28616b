//! First views of a fork.

use memory_model::{Seq, Span, SpanBody, SummaryId, Timestamp, ViewName};
use memory_store::implementors::{Inherited, ViewCut, views_hash};
use memory_store::{Conversation, Error, ErrorKind, Result};

use super::SqlStore;
use super::known_summaries::{known_summaries, known_summary};
use super::log::Log;
use super::running::RunningSums;
use super::spans::starts;
use super::view_change::{Replaced, ViewChange, saving};
use crate::batch::Batch;
use crate::conversation;
use crate::executor::{Database, Executor};
use crate::row::Columns as _;
use crate::view::{self as sql, SpanRows};

/// Limit on a number of spans, larger than any range can have.
const ALL: u64 = 1 << 32;

impl<D: Database> SqlStore<D> {
    /// Publishes the parent's views, cut at the last shared position, as the first version of the fork's views.
    ///
    /// Reads the parent's current spans up to that position. For a summary that crosses the position it reads one
    /// summary for each level.
    pub(super) async fn inherit_views(
        &self,
        on: &mut impl Executor,
        parent: &Conversation,
        fork: &Conversation,
        at: Seq,
        now: Timestamp,
    ) -> Result<()> {
        let family = self.family_of(parent);
        let mut inherited = Vec::new();
        for row in on.all(&sql::views(family, parent.id.0)).await? {
            let view = ViewName::new(row.text(0)?);
            let Some(Inherited { at, spans, rows }) = self.cut(on, parent, &view, at).await? else {
                continue;
            };
            let replaced = Replaced {
                before: vec![Span::closed(at, SpanBody::Raw, 0)],
                after: spans,
            };
            let saving = saving(
                on,
                &Log::new(family, parent),
                RunningSums::default(),
                &[replaced],
            )
            .await?;
            let mut change = ViewChange::new();
            change.put(at, rows, now);
            let mut batch = Batch::default();
            change.write(&mut batch, family, fork.id, &view, saving)?;
            on.run_batch(batch).await?;
            inherited.push(view);
        }
        if !inherited.is_empty() {
            let hash = views_hash(&inherited);
            on.run(&conversation::set_views(family, fork.id.0, hash))
                .await?;
        }
        Ok(())
    }

    async fn cut(
        &self,
        on: &mut impl Executor,
        parent: &Conversation,
        view: &ViewName,
        at: Seq,
    ) -> Result<Option<Inherited>> {
        let family = self.family_of(parent);
        let row = on.first(&sql::view(family, parent.id.0, view)).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let version = memory_model::ViewVersion(crate::to_count("version", row.int(0)?)?);
        let up_to = SpanRows::Rising(Seq::FIRST, at.next());
        let rows = starts(on, family, parent.id, view, version, up_to, ALL).await?;
        let mut cut = ViewCut::new(&rows, at);
        while let Some(id) = cut.crossing().cloned() {
            let found = self
                .summaries_seen(on, family, parent.id, &[id.as_str()])
                .await?;
            let summary = found.into_values().next().ok_or_else(|| {
                let message = format!("{} shows {id}, which is missing", parent.key);
                Error::new(ErrorKind::Corrupt, message)
            })?;
            let children: Vec<&str> = summary
                .children
                .iter()
                .filter_map(|child| child.summary())
                .map(SummaryId::as_str)
                .collect();
            let known = known_summaries(on, family, parent.id, &children).await?;
            cut.open(&summary, |id| known.get(id).map(known_summary))?;
        }
        cut.finish()
    }
}
