//! Lookup of positions in a log by running sums and external ids.

use memory_model::{ConversationId, Seq, SeqRange};
use memory_store::Result;

use super::SqlStore;
use super::append::visible;
use super::running::running_at;
use crate::executor::{Database, Executor as _};
use crate::message;
use crate::row::Columns as _;

impl<D: Database> SqlStore<D> {
    pub(super) async fn running_sums(&self, id: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let newest = at.iter().max().copied().unwrap_or(Seq::NONE);
        let log = self.log(on, id, |head, _| newest <= head).await?;
        running_at(on, &log, at).await
    }

    pub(super) async fn position_of(
        &self,
        id: ConversationId,
        running: u64,
    ) -> Result<Option<Seq>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let log = self.log(on, id, |_, tokens| running <= tokens).await?;
        if log.head == Seq::NONE || running > log.tokens {
            return Ok(None);
        }
        // Binary search for the segment that contains the position, by the running sums at the ends of the segments.
        let (mut low, mut high) = (0, log.segments.len().saturating_sub(1));
        while low < high {
            let middle = low + (high - low) / 2;
            let end = log.segments.get(middle).and_then(|segment| segment.last);
            let sums = running_at(on, &log, &[end.unwrap_or(log.head)]).await?;
            match sums.first().is_some_and(|sum| *sum >= running) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let Some(segment) = log.segments.get(low) else {
            return Ok(None);
        };
        let Some(range) = SeqRange::new(segment.first, segment.last.unwrap_or(log.head)) else {
            return Ok(None);
        };
        let found = on
            .first(&message::seq_at(
                log.family,
                segment.source.0,
                range,
                running,
            )?)
            .await?;
        found.map(|row| crate::to_seq(row.int(0)?)).transpose()
    }

    pub(super) async fn find_external(
        &self,
        id: ConversationId,
        ids: &[String],
    ) -> Result<Vec<Option<Seq>>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let info = self.get(on, id).await?;
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let found = visible(on, self.family_of(&info), &info, &asked).await?;
        Ok(ids
            .iter()
            .map(|id| found.get(id).map(|known| known.seq))
            .collect())
    }
}
