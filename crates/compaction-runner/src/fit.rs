//! Making a view fit without a model.

use std::collections::BTreeMap;

use compaction_plan::{Label, Room, StopReason};
use memory_store::Snapshot;
use summarize_escalation::Tier;

use crate::conclude::publish_put_off;
use crate::environment::{Compaction, Stage};
use crate::error::Result;
use crate::exhausted::{is_exhausted, remember_exhausted};
use crate::lifecycle;
use crate::outcome::Outcome;
use crate::pass::run_pass;
use crate::tally::Tally;
use crate::view_reader::ViewReader;

/// Maximum number of lost races before a run leaves the view to the other writers.
const LOST_RACES: u32 = 3;

/// Publishes extracts until the view fits the room. Calls no model.
pub(crate) async fn extract_to_fit(env: &Compaction<'_>, room: Room) -> Result<Outcome> {
    let env = &Compaction {
        summarizer: env.extractive,
        room: Some(room),
        stage: Stage::Fit,
        ..env.clone()
    };
    let tokens = room.tokens;
    let (start, began) = lifecycle::start(env).await?;
    let mut tally = Tally::default();
    let stop = match () {
        () if start.tokens() <= tokens => StopReason::Fits,
        () if !env.ladder.tiers.contains(&Tier::Extractive) => StopReason::NothingEligible,
        () if is_exhausted(env, &start).await? => StopReason::Exhausted,
        () => shrink(env, tokens, &start, &mut tally).await?,
    };
    if matches!(stop, StopReason::Exhausted | StopReason::NothingEligible)
        && let Some(tried) = &tally.seen
    {
        remember_exhausted(env, tried).await?;
    }
    let mut outcome = lifecycle::end(env, (&start, began), tally, stop).await?;
    // The extracts are the ladder's own: the memory's summarizer was not called.
    outcome.calls = 0;
    Ok(outcome)
}

/// Plans passes over the expected view until it fits, and publishes their extracts together. Starts again, at most
/// [`LOST_RACES`] times, if another writer was first.
async fn shrink(
    env: &Compaction<'_>,
    tokens: u64,
    start: &Snapshot,
    tally: &mut Tally,
) -> Result<StopReason> {
    let mut lost = 0;
    let mut reader = ViewReader::new(env, start.clone());
    loop {
        tally.begin_iteration();
        shrink_once(env, tokens, &mut reader, tally).await?;
        publish_put_off(env, tally).await?;
        if let Some(stop) = tally.must_stop() {
            return Ok(stop);
        }
        if tally.lost && lost < LOST_RACES {
            lost += 1;
            reader.refresh().await?;
            continue;
        }
        if reader.tokens <= tokens && !tally.lost {
            return Ok(StopReason::Fits);
        }
        return Ok(tally.in_vain().unwrap_or(StopReason::NothingEligible));
    }
}

/// Plans passes until the reader's view fits, or no pass finds a job.
async fn shrink_once(
    env: &Compaction<'_>,
    tokens: u64,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    // Cost of the view when a pass found no job.
    let mut idle: BTreeMap<&Label, u64> = BTreeMap::new();
    loop {
        let before = reader.tokens;
        for pass in env.planner.passes() {
            if reader.tokens <= tokens {
                return Ok(());
            }
            let now = reader.tokens;
            if idle.get(pass) == Some(&now) {
                continue;
            }
            run_pass(env, pass, reader, tally).await?;
            if tally.must_stop().is_some() || tally.lost {
                return Ok(());
            }
            if reader.tokens == now {
                idle.insert(pass, now);
            }
        }
        if reader.tokens == before {
            return Ok(());
        }
    }
}
