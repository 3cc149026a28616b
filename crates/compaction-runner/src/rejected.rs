//! The stored list of rejected summaries: a model wrote them, and they should not have been accepted.

use std::sync::Arc;

use memory_model::{Summary, SummaryId};
use memory_store::ErrorKind;

use crate::environment::Compaction;
use crate::error::Result;
use crate::model_failure::ModelFailure;
use crate::state::{Stored, load, save};
use crate::watch::{Rejected, Watch};

/// Key under which a store keeps the rejected summaries of a conversation: see [`RedoPolicy::again`](crate::RedoPolicy::again).
pub const REJECTED: &str = "rejected";
/// Maximum number of summaries in the list. The oldest is removed first.
const REMEMBERED: usize = 1_024;
/// Maximum number of attempts to write the list while other runs change it.
const TRIES: usize = 4;

/// Reads the list, once for each run.
pub(crate) async fn read_rejected(env: &Compaction<'_>, watch: &Watch) -> Result<Rejected> {
    if let Some(rejected) = watch.rejected() {
        return Ok(rejected);
    }
    let Stored { value, .. } = load::<Vec<SummaryId>>(env, REJECTED).await?;
    let rejected: Rejected = Arc::new(value.unwrap_or_default().into_iter().collect());
    watch.set_rejected(Arc::clone(&rejected));
    Ok(rejected)
}

/// Returns whether a model is to rewrite a summary before others: it was rejected, or written without the model after a
/// failure that may pass.
pub(crate) fn is_urgent(summary: &Summary, rejected: &Rejected) -> bool {
    let may_pass = |failure: ModelFailure| failure.may_pass();
    rejected.contains(&summary.id) || ModelFailure::of(summary).is_some_and(may_pass)
}

/// Adds summaries to the list.
///
/// # Errors
/// The store's errors, and `Stale` if other runs change the list each time.
pub(crate) async fn reject(env: &Compaction<'_>, summaries: &[SummaryId]) -> Result<()> {
    if summaries.is_empty() {
        return Ok(());
    }
    for _ in 0..TRIES {
        let Stored { value, revision } = load::<Vec<SummaryId>>(env, REJECTED).await?;
        let mut list = value.unwrap_or_default();
        let known = list.len();
        for id in summaries {
            if !list.contains(id) {
                list.push(id.clone());
            }
        }
        let is_known = list.len() == known;
        list.drain(..list.len().saturating_sub(REMEMBERED));
        if is_known || save(env, REJECTED, revision, Some(&list)).await?.is_some() {
            return Ok(());
        }
    }
    let text = format!(
        "the list of rejected summaries of the view {} was changed by others {TRIES} times: run it again",
        env.view()
    );
    Err(memory_store::Error::new(ErrorKind::Stale, text).into())
}
