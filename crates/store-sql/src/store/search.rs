//! Storage of search index segments.

use std::collections::BTreeMap;

use async_trait::async_trait;
use memory_model::{ConversationId, SummaryId};
use memory_store::implementors::no_conversation;
use memory_store::{
    Chunk, ConversationRef, IndexSegment, IndexSnapshot, IndexState, IndexStore, NewIndexSegment,
    Result,
};

use super::pages::batched;
use super::{ROWS, SqlStore};
use crate::batch::Batch;
use crate::convert::{packed, to_count, to_int, to_u32};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns as _;
use crate::search::{self as sql, SegmentSelection};
use crate::{conversation, summary, work};

impl<D: Database> SqlStore<D> {
    async fn segments_of(
        &self,
        on: &mut impl Executor,
        conversation: ConversationId,
    ) -> Result<Vec<IndexSegment>> {
        self.lineage(on, conversation).await?;
        let family = self.family(on, conversation).await?;
        let rows = on.all(&sql::segments(family, &[conversation])).await?;
        let segment = |row| sql::segment(row).map(|(_, segment)| segment);
        rows.iter().map(segment).collect()
    }

    /// Reads the data that a search needs first. The executor must read committed data only.
    async fn snapshot_of_index(
        &self,
        on: &mut impl Executor,
        conversation: ConversationId,
    ) -> Result<IndexSnapshot> {
        let read = self.lineage(on, conversation).await?.segments();
        let family = self.family(on, conversation).await?;
        let sources: Vec<ConversationId> = read.iter().map(|part| part.source).collect();
        let mut batch = Batch::default();
        batch.push(conversation::find(
            family,
            &ConversationRef::Id(conversation),
        ));
        for sources in batched(&sources) {
            batch.push(sql::segments(family, &sources));
        }
        batch.push(summary::last_id(family, conversation.0));
        let mut answers = on.all_of_batch(batch).await?;
        let last_summary = answers.pop().and_then(|rows| rows.into_iter().next());
        let last_summary = last_summary.map(|row| row.text(0).map(SummaryId::new));
        let mut answers = answers.into_iter();
        let found = answers.next().and_then(|rows| rows.into_iter().next());
        let found = found.ok_or_else(|| no_conversation(conversation))?;
        let mut logs = BTreeMap::<ConversationId, Vec<IndexSegment>>::new();
        for row in answers.flatten() {
            let (source, segment) = sql::segment(&row)?;
            logs.entry(source).or_default().push(segment);
        }
        let logs = sources.iter().map(|source| logs.remove(source));
        let conversation = self.found(on, &found).await?;
        // The search reads the log next, so its length is kept in memory.
        self.reached()
            .remember_log(conversation.id, conversation.head, conversation.tokens);
        Ok(IndexSnapshot {
            conversation,
            logs: logs.map(Option::unwrap_or_default).collect(),
            last_summary: last_summary.transpose()?,
        })
    }

    async fn index_of(
        &self,
        on: &mut impl Executor,
        conversation: ConversationId,
    ) -> Result<IndexState> {
        let segments = self.segments_of(on, conversation).await?;
        let family = self.family(on, conversation).await?;
        let erasures = match on.first(&sql::erasures(family, conversation)).await? {
            Some(row) => to_count("erasures", row.int(0)? + row.int(1)? + row.int(2)?)?,
            None => 0,
        };
        Ok(IndexState { segments, erasures })
    }

    pub(super) async fn forget_segments(
        &self,
        on: &mut impl Executor,
        family: Family,
        which: SegmentSelection<'_>,
    ) -> Result<()> {
        for statement in sql::delete(family, which)? {
            on.run(&statement).await?;
        }
        Ok(())
    }
}

/// Returns the conversation in the upper half of a segment's id.
fn owner_of(segment: u64) -> Result<ConversationId> {
    let no = to_u32(
        "conversation of a segment",
        to_int("segment", segment >> 32)?,
    )?;
    Ok(ConversationId(no))
}

#[async_trait]
impl<D: Database> IndexStore for SqlStore<D> {
    async fn index_snapshot(&self, conversation: ConversationId) -> Result<IndexSnapshot> {
        let mut reader = self.database.read().await?;
        self.snapshot_of_index(&mut reader, conversation).await
    }

    async fn index_state(&self, conversation: ConversationId) -> Result<IndexState> {
        let mut reader = self.database.read().await?;
        self.index_of(&mut reader, conversation).await
    }

    async fn index_keys(&self, segment: u64) -> Result<Vec<Vec<u8>>> {
        let mut reader = self.database.read().await?;
        let family = self.family(&mut reader, owner_of(segment)?).await?;
        let rows = reader.all(&sql::keys(family, segment)?).await?;
        rows.iter().map(|row| row.bytes(0)).collect()
    }

    async fn index_chunks(&self, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<Vec<Chunk>> {
        let mut reader = self.database.read().await?;
        let family = self.family(&mut reader, owner_of(segment)?).await?;
        let rows = reader.all(&sql::chunks(family, segment, keys)?).await?;
        rows.iter().map(sql::chunk).collect()
    }

    async fn put_index_segment(
        &self,
        conversation: ConversationId,
        segment: &NewIndexSegment<'_>,
    ) -> Result<Option<IndexState>> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, conversation).await?;
        let on = &mut tx;
        let lineage = self.lineage(on, conversation).await?;
        let state = self.index_of(on, conversation).await?;
        if !state.takes(segment, lineage.own_first().0) {
            return Ok(None);
        }
        if !segment.replaces.is_empty() {
            self.forget_segments(on, family, SegmentSelection::Ids(segment.replaces))
                .await?;
        }
        let row = on
            .first(&work::next_fences(family, conversation, 1)?)
            .await?;
        let row = row.ok_or_else(|| no_conversation(conversation))?;
        let number = to_u32("number of a segment", row.int(0)?)?;
        let id = to_count("segment", packed(conversation.0, number))?;
        on.run(&sql::put(family, conversation, id, segment)?)
            .await?;
        for chunks in segment.chunks.chunks(ROWS) {
            on.run(&sql::put_chunks(family, id, chunks)?).await?;
        }
        self.database.commit(tx).await?;
        Ok(Some(state.with(segment, id)))
    }

    async fn drop_index(&self, conversation: ConversationId) -> Result<()> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, conversation).await?;
        let on = &mut tx;
        self.lineage(on, conversation).await?;
        self.forget_segments(on, family, SegmentSelection::All(conversation))
            .await?;
        self.database.commit(tx).await
    }
}
