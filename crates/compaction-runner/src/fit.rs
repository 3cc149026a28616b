//! Making a view fit without a model.

use std::collections::BTreeMap;

use compaction_plan::{Label, Room, StopReason};
use summarize_escalation::Tier;

use crate::error::Result;
use crate::outcome::{Outcome, Tally};
use crate::read::ViewReader;
use crate::run::{Compaction, Stage};

/// Number of lost races after which a run leaves the view to whoever wins them.
const LOST_RACES: u32 = 3;

impl Compaction<'_> {
    /// Publishes extracts, which are provisional, until the view fits the room; calls no model. The oldest messages outside the fresh tail go first, then summaries are condensed,
    /// those of equal depth before others.
    ///
    /// Publishes nothing when the ladder has no extractive tier, or when the same head, version
    /// and policy were tried before in vain. [`Outcome::stop_reason`] is `Fits` when the view fits
    /// in the end.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        let extracts = Compaction {
            summarizer: self.extractive,
            room: Some(room),
            stage: Stage::Fit,
            ..self.clone()
        };
        let tokens = room.tokens;
        let (start, before) = extracts.begun().await?;
        let mut tally = Tally::default();
        let stop = match () {
            () if start.tokens() <= tokens => StopReason::Fits,
            () if !self.ladder.tiers.contains(&Tier::Extractive) => StopReason::NothingEligible,
            () if extracts.exhausted(&start).await? => StopReason::Exhausted,
            () => extracts.shrink(tokens, &mut tally).await?,
        };
        if matches!(stop, StopReason::Exhausted | StopReason::NothingEligible)
            && let Some(tried) = &tally.seen
        {
            extracts.remember_exhausted(tried).await?;
        }
        let mut outcome = extracts.ended(before, tally, stop).await?;
        // The extracts are the ladder's own: the memory's summarizer was not called.
        outcome.calls = 0;
        Ok(outcome)
    }

    /// Plans passes over the view as it will be until it fits, and publishes their extracts together.
    /// Begins anew, a few times, when somebody else was first.
    async fn shrink(&self, tokens: u64, tally: &mut Tally) -> Result<StopReason> {
        let mut lost = 0;
        loop {
            (tally.held, tally.lost, tally.seen) = (false, false, None);
            let mut reader = ViewReader::new(self, self.snapshot().await?);
            self.shrink_once(tokens, &mut reader, tally).await?;
            self.publish_put_off(tally).await?;
            if tally.cancelled {
                return Ok(StopReason::Cancelled);
            }
            if tally.failure.is_some() {
                return Ok(StopReason::SummarizerFailed);
            }
            if tally.lost && lost < LOST_RACES {
                lost += 1;
                continue;
            }
            if reader.tokens <= tokens && !tally.lost {
                return Ok(StopReason::Fits);
            }
            return Ok(tally.in_vain().unwrap_or(StopReason::NothingEligible));
        }
    }

    /// Plans passes until the view that the reader shows fits, or nothing is left to plan.
    async fn shrink_once(
        &self,
        tokens: u64,
        reader: &mut ViewReader<'_>,
        tally: &mut Tally,
    ) -> Result<()> {
        // What the view cost when a pass found nothing to do.
        let mut idle: BTreeMap<&Label, u64> = BTreeMap::new();
        loop {
            let before = reader.tokens;
            for pass in self.planner.passes() {
                if reader.tokens <= tokens {
                    return Ok(());
                }
                let now = reader.tokens;
                if idle.get(pass) == Some(&now) {
                    continue;
                }
                self.pass(pass, reader, tally).await?;
                if tally.must_stop() || tally.lost {
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
}
