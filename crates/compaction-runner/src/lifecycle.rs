//! The start and the end of a run: what they tell the hooks, and what the view measures.

use compaction_plan::StopReason;
use memory_store::Snapshot;

use crate::environment::Environment;
use crate::error::Result;
use crate::events::Event;
use crate::outcome::{Measure, Outcome};
use crate::tally::Tally;

/// Starts a run: returns the state of the view and its size.
pub(crate) async fn start(env: &Environment<'_>) -> Result<(Snapshot, Measure)> {
    let start = env.snapshot().await?;
    let before = env.measure(&start).await?;
    env.emit(Event::Started {
        conversation: env.conversation,
        view: start.view.clone(),
        tokens: start.tokens(),
    })
    .await;
    Ok((start, before))
}

/// Ends a run: measures the view again if it may have changed, and returns what was done.
pub(crate) async fn end(
    env: &Environment<'_>,
    before: Measure,
    tally: Tally,
    stop: StopReason,
) -> Result<Outcome> {
    let after = match tally.published == 0 && !tally.lost {
        true => before,
        false => env.measure(&env.snapshot().await?).await?,
    };
    env.emit(Event::Ended {
        stop,
        tokens: after.tokens,
    })
    .await;
    Ok(tally.into_outcome(before, after, stop))
}
