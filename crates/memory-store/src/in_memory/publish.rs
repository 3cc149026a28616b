//! Publishing to a view of the reference store.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Span, SummaryId, clip_starts, splice_starts};

use super::jobs::check_fence;
use super::{Inner, ViewRecord};
use crate::error::Result;
use crate::publish::{KnownSummary, check_references, check_shape, spans_cost, unfit};
use crate::types::{Publish, Published};

impl Inner {
    pub(super) fn publish(
        &mut self,
        conversation: ConversationId,
        publish: &Publish,
    ) -> Result<Published> {
        let record = self.get(conversation)?;
        let referred = check_shape(publish, record.info.head)?;
        if publish.erasures != record.info.erasures {
            return Ok(Published::Outdated);
        }
        if let Some(fence) = &publish.fence {
            check_fence(record, fence)?;
        }
        let new = ViewRecord::new();
        let view = record.views.get(&publish.view).unwrap_or(&new);
        let rows = match splice_starts(&view.rows, publish.at, &publish.expect, &publish.spans) {
            Ok(rows) => rows,
            Err(error) => return unfit(publish, view.version(), error),
        };
        let lineage = self.lineage(record);
        let stored: BTreeMap<SummaryId, KnownSummary> = referred
            .iter()
            .filter_map(|id| self.summary(&lineage, id))
            .map(|summary| (summary.id.clone(), summary.into()))
            .collect();
        check_references(publish, &stored)?;
        if rows.removed.is_empty() && rows.added.is_empty() {
            return Ok(Published::Already(view.version()));
        }
        let cost = |spans: &[Span]| spans_cost(spans, |range| self.cost(record, range));
        let saving = i128::from(cost(&clip_starts(&view.rows, publish.at)))
            - i128::from(cost(&publish.spans));
        let record = self.get_mut(conversation)?;
        let view = record
            .views
            .entry(publish.view.clone())
            .or_insert_with(ViewRecord::new);
        view.publish(publish.at, rows, saving, publish.now);
        let version = view.version();
        for summary in &publish.summaries {
            if !stored.contains_key(&summary.id) {
                let index = record.summaries.len();
                record.summary_index.insert(summary.id.clone(), index);
                record.summaries.push(summary.clone());
            }
        }
        record.info.updated_at = publish.now;
        if let Some(fence) = &publish.fence {
            record.jobs.remove(&fence.key);
        }
        Ok(Published::Done(version))
    }
}
