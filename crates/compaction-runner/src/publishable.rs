//! Changes of the view that are ready to be published, and their publication in one transaction.

use compaction_plan::{Job, Work};
use memory_model::{Span, SpanBody, Summary};
use memory_store::{ErrorKind, Fence, Publish, Published};

use crate::environment::Compaction;
use crate::error::Result;

/// A job (a change of the view) that is ready to be published, with its written summary or its given spans.
#[derive(Debug, Clone)]
pub(crate) struct Publishable {
    pub(crate) job: Job,
    pub(crate) summary: Option<Summary>,
    pub(crate) fence: Option<Fence>,
}

impl Publishable {
    /// Returns the spans that replace the job's spans.
    pub(crate) fn spans(&self) -> Vec<Span> {
        match (&self.summary, &self.job.work) {
            (Some(summary), _) => {
                let body = SpanBody::Summary {
                    id: summary.id.clone(),
                    depth: summary.depth,
                };
                vec![Span::closed(self.job.range, body, summary.tokens)]
            }
            (None, Work::Replace(spans)) => spans.clone(),
            (None, _) => Vec::new(),
        }
    }
}

/// Publishes jobs (changes of the view) under their leases. Returns the outcome of each job. A job that lost its lease
/// is published without one, because the state of the view decides whether the job still applies.
pub(crate) async fn publish_all(
    env: &Compaction<'_>,
    ready: &[Publishable],
    erasures: u64,
) -> Result<Vec<memory_store::Result<Published>>> {
    let view = env.view();
    let now = env.clock.now();
    let publish = |one: &Publishable| Publish {
        view: view.clone(),
        at: one.job.range,
        expect: one.job.expect.clone(),
        spans: one.spans(),
        summaries: one.summary.iter().cloned().collect(),
        fence: one.fence.clone(),
        erasures,
        now,
    };
    let mut publishes: Vec<Publish> = ready.iter().map(publish).collect();
    let mut outcomes = env.store.publish_all(env.conversation, &publishes).await?;
    let is_stale = |outcome: &memory_store::Result<Published>| matches!(outcome, Err(error) if error.kind() == ErrorKind::Stale);
    let mut stale: Vec<bool> = outcomes.iter().map(is_stale).collect();
    stale.resize(publishes.len(), false);
    let mut lost = stale.iter();
    publishes.retain(|_| lost.next().copied().unwrap_or(false));
    if publishes.is_empty() {
        return Ok(outcomes);
    }
    publishes
        .iter_mut()
        .for_each(|publish| publish.fence = None);
    let again = env.store.publish_all(env.conversation, &publishes).await?;
    let places = outcomes.iter_mut().zip(&stale).filter(|(_, stale)| **stale);
    for ((place, _), outcome) in places.zip(again) {
        *place = outcome;
    }
    Ok(outcomes)
}
