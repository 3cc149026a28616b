//! Ranges, depths and costs of the summaries that a conversation made or inherits.

use std::collections::BTreeMap;

use memory_model::{ConversationId, SummaryId};
use memory_store::Result;
use memory_store::implementors::KnownSummary;

use super::pages::batched;
use crate::batch::Batch;
use crate::executor::Executor;
use crate::family::Family;
use crate::row::Columns;
use crate::summary::{self, StoredSummary};

/// Returns the range, depth and cost of a summary, which the checks of a publish need.
pub(super) fn known_summary(row: &StoredSummary) -> KnownSummary {
    KnownSummary {
        range: row.range,
        depth: row.depth,
        tokens: row.tokens,
    }
}

/// Looks up the summaries with these ids that a conversation made or inherits from its ancestors. If several of them
/// made a summary, the nearest one's is returned.
pub(super) async fn known_summaries(
    on: &mut impl Executor,
    family: Family,
    conversation: ConversationId,
    asked: &[&str],
) -> Result<BTreeMap<SummaryId, StoredSummary>> {
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut batch = Batch::default();
    push_known_summaries(&mut batch, family, conversation, asked);
    let answers = on.all_of_batch(batch).await?;
    known_of(answers.iter().flatten())
}

/// Adds the SQL statements that read the range, depth and cost of summaries to a batch. [`known_of`] reads the rows of
/// the answers.
pub(super) fn push_known_summaries(
    batch: &mut Batch,
    family: Family,
    id: ConversationId,
    asked: &[&str],
) {
    for ids in batched(asked) {
        batch.push(summary::known_by_ids(family, id.0, &ids));
    }
}

/// Reads the rows of the statements of [`push_known_summaries`]. Returns the summaries by id. If several rows have the
/// same id, the first is kept, which is the nearest conversation's.
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
