//! Vectors of messages.

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};
use memory_store::{NewVectors, PlacedVector, Result, VectorState, VectorStore};

use super::{ROWS, SqlStore};
use crate::convert::{to_count, to_seq};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns as _;
use crate::vector as sql;

impl<D: Database> SqlStore<D> {
    async fn vectors_state(
        &self,
        on: &mut impl Executor,
        family: Family,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState> {
        let Some(row) = on
            .first(&sql::state(family, conversation, embedder))
            .await?
        else {
            return Ok(VectorState::default());
        };
        let last = row.opt_int(0)?.map_or(Ok(Seq::NONE), to_seq)?;
        let erasures = to_count("erasures", row.int(1)?)?;
        Ok(VectorState { last, erasures })
    }
}

#[async_trait]
impl<D: Database> VectorStore for SqlStore<D> {
    async fn vector_state(
        &self,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState> {
        let mut reader = self.database.read().await?;
        self.lineage(&mut reader, conversation).await?;
        let family = self.family(&mut reader, conversation).await?;
        self.vectors_state(&mut reader, family, conversation, embedder)
            .await
    }

    async fn vectors(
        &self,
        conversation: ConversationId,
        embedder: &str,
        dimension: usize,
        range: SeqRange,
    ) -> Result<Vec<PlacedVector>> {
        let mut reader = self.database.read().await?;
        self.lineage(&mut reader, conversation).await?;
        let family = self.family(&mut reader, conversation).await?;
        let rows = sql::vectors(family, conversation, embedder, range);
        let rows = reader.all(&rows).await?;
        rows.iter().map(|row| sql::placed(row, dimension)).collect()
    }

    async fn put_vectors(
        &self,
        conversation: ConversationId,
        vectors: &NewVectors<'_>,
    ) -> Result<bool> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, conversation).await?;
        let on = &mut tx;
        let info = self.get(on, conversation).await?;
        let state = self.vectors_state(on, family, conversation, vectors.embedder);
        if !vectors.fit(state.await?, info.own_first(), info.head) {
            return Ok(false);
        }
        for rows in vectors.vectors.chunks(ROWS) {
            on.run(&sql::put(family, conversation, vectors.embedder, rows)?)
                .await?;
        }
        self.database.commit(tx).await?;
        Ok(true)
    }

    async fn embedders(&self, conversation: ConversationId) -> Result<Vec<String>> {
        let mut reader = self.database.read().await?;
        self.lineage(&mut reader, conversation).await?;
        let family = self.family(&mut reader, conversation).await?;
        let rows = reader.all(&sql::embedders(family, conversation)).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    async fn drop_vectors(&self, conversation: ConversationId, embedder: &str) -> Result<()> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, conversation).await?;
        let on = &mut tx;
        self.lineage(on, conversation).await?;
        on.run(&sql::delete(family, conversation, embedder)).await?;
        self.database.commit(tx).await
    }
}
