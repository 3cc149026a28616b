//! The start and the end of a run: what they tell the hooks, and what the view measures.

use compaction_plan::StopReason;
use memory_store::Snapshot;

use crate::environment::Environment;
use crate::error::Result;
use crate::events::Event;
use crate::outcome::Outcome;
use crate::tally::Tally;

/// Starts a run: returns the state of the view.
pub(crate) async fn start(env: &Environment<'_>) -> Result<Snapshot> {
    let start = env.start().await?;
    env.emit(Event::Triggered { reason: env.reason }).await;
    env.emit(Event::Started {
        conversation: env.conversation,
        view: start.view.clone(),
        tokens: start.tokens(),
    })
    .await;
    Ok(start)
}

/// Ends a run: reads the state of the view again if it may have changed, and returns what was done.
pub(crate) async fn end(
    env: &Environment<'_>,
    start: &Snapshot,
    mut tally: Tally,
    stop: StopReason,
) -> Result<Outcome> {
    let end = match tally.now.take() {
        _ if tally.published == 0 && !tally.lost => start.clone(),
        Some(now) => now,
        None => env.snapshot().await?,
    };
    env.emit(Event::Ended {
        stop,
        tokens: end.tokens(),
    })
    .await;
    Ok(tally.into_outcome(start, end, stop))
}
