//! Makes a view fit its maximum cost without a model.

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
use crate::supplied::publish_supplied;
use crate::tally::Tally;
use crate::view_reader::ViewReader;

/// Maximum number of lost races (changes by another writer) before a run gives up.
const LOST_RACES: u32 = 3;

/// Replaces messages in the view by extracts (summaries written without a model) until it fits the maximum cost. Calls
/// no model.
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
        () => {
            let stop = shrink(env, tokens, &start, &mut tally).await?;
            publish_supplied(env, stop, &mut tally).await?
        }
    };
    if matches!(stop, StopReason::Exhausted | StopReason::NothingEligible)
        && let Some(tried) = &tally.seen
    {
        remember_exhausted(env, tried).await?;
    }
    let mut outcome = lifecycle::end(env, (&start, began), tally, stop).await?;
    // The extracts do not come from the configured summarizer, which was not called.
    outcome.calls = 0;
    Ok(outcome)
}

/// Plans extracts (summaries written without a model) until the view would cost at most `tokens`, and publishes them
/// together. If another writer changed the view first, starts again, at most [`LOST_RACES`] times.
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

/// Runs passes (planning rounds) until the view of `reader` costs at most `tokens`, or until no pass plans a change.
async fn shrink_once(
    env: &Compaction<'_>,
    tokens: u64,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    // For each pass, the cost of the view when the pass planned no change.
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
