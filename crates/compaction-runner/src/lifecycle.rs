//! The start and the end of a run: emits events and measures the view.

use compaction_plan::StopReason;
use memory_model::Timestamp;
use memory_store::Snapshot;

use crate::environment::Compaction;
use crate::error::Result;
use crate::events::Event;
use crate::outcome::Outcome;
use crate::reason::CompactionReason;
use crate::tally::Tally;

/// Starts a run. Returns the state of the view and the current time.
pub(crate) async fn start(env: &Compaction<'_>) -> Result<(Snapshot, Timestamp)> {
    let began = env.clock.now();
    let start = env.start().await?;
    env.emit(Event::Triggered { reason: env.reason }).await;
    env.emit(Event::Started {
        conversation: env.conversation,
        view: start.view.clone(),
        tokens: start.tokens(),
    })
    .await;
    Ok((start, began))
}

/// Ends a run. Reads the state of the view again if the run may have changed it. Returns the outcome.
pub(crate) async fn end(
    env: &Compaction<'_>,
    (start, began): (&Snapshot, Timestamp),
    mut tally: Tally,
    stop: StopReason,
) -> Result<Outcome> {
    let end = match tally.now.take() {
        _ if tally.published == 0 && !tally.lost => start.clone(),
        Some(now) => now,
        None => env.read_snapshot().await?,
    };
    env.emit(Event::Ended {
        stop,
        tokens: end.tokens(),
        will_retry: env.reason == CompactionReason::Overflow && tally.published > 0,
    })
    .await;
    let elapsed = env.clock.now().since(began);
    Ok(tally.into_outcome(start, end, stop, elapsed))
}
