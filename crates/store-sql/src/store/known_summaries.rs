//! Facts about summaries that a conversation sees.

use std::collections::BTreeMap;

use memory_model::{ConversationId, SummaryId};
use memory_store::Result;
use memory_store::implementors::KnownSummary;

use super::pages::batched;
use crate::batch::Batch;
use crate::executor::Executor;
use crate::row::Columns;
use crate::summary::{self, StoredSummary};

/// Facts about a summary that a publish needs.
pub(super) fn known_summary(row: &StoredSummary) -> KnownSummary {
    KnownSummary {
        range: row.range,
        depth: row.depth,
        tokens: row.tokens,
    }
}

/// The summaries with these ids that a conversation sees: if several have one id, the nearest.
pub(super) async fn known_summaries(
    on: &mut impl Executor,
    conversation: ConversationId,
    asked: &[&str],
) -> Result<BTreeMap<SummaryId, StoredSummary>> {
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut batch = Batch::default();
    push_known_summaries(&mut batch, conversation, asked);
    let answers = on.all_of_batch(batch).await?;
    known_of(answers.iter().flatten())
}

/// Adds the statements that read the facts about summaries: rows for [`known_of`].
pub(super) fn push_known_summaries(batch: &mut Batch, id: ConversationId, asked: &[&str]) {
    for ids in batched(asked) {
        batch.push(summary::known_by_ids(id.0, &ids));
    }
}

/// The facts about summaries, by id: if several have one id, the nearest, which comes first.
pub(super) fn known_of<'r, R: Columns + 'r>(
    rows: impl Iterator<Item = &'r R>,
) -> Result<BTreeMap<SummaryId, StoredSummary>> {
    let mut found = BTreeMap::new();
    for row in rows {
        let row = summary::known(row)?;
        found.entry(row.public_id.clone()).or_insert(row);
    }
    Ok(found)
}
