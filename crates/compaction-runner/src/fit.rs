//! Making a view fit without a model.

use memory_model::{Body, PassKind, Room, StopReason};
use memory_store::Snapshot;
use summarize_escalation::{ExtractiveSummarizer, Tier};

use crate::error::Result;
use crate::run::{Compaction, Outcome, Stage, Tally};

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
        let extractive = ExtractiveSummarizer::new();
        let extracts = Compaction {
            summarizer: &extractive,
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

    async fn shrink(&self, tokens: u64, tally: &mut Tally) -> Result<StopReason> {
        let (mut lost, mut leaves_done) = (0, false);
        // Condensing does not change what stands behind the summaries.
        let mut tail = None;
        loop {
            let published = tally.published;
            (tally.held, tally.lost, tally.seen) = (false, false, None);
            for kind in self.planner.passes() {
                let now = self.snapshot().await?;
                if now.tokens() <= tokens {
                    return Ok(StopReason::Fits);
                }
                if *kind == PassKind::Leaf && leaves_done {
                    continue;
                }
                if *kind == PassKind::Condensed {
                    let tail = match tail.filter(|_| leaves_done) {
                        Some(tokens) => tokens,
                        None => *tail.insert(self.tail_tokens(&now).await?),
                    };
                    // Whatever the summaries cost, the messages behind them do not fit.
                    if tail >= tokens {
                        continue;
                    }
                }
                let before = tally.published;
                self.pass(*kind, tally).await?;
                leaves_done |= *kind == PassKind::Leaf && tally.published == before && !tally.lost;
                if tally.cancelled {
                    return Ok(StopReason::Cancelled);
                }
                if tally.failure.is_some() {
                    return Ok(StopReason::SummarizerFailed);
                }
            }
            lost += u32::from(tally.lost);
            if tally.published == published && (!tally.lost || lost >= LOST_RACES) {
                return Ok(tally.in_vain().unwrap_or(StopReason::NothingEligible));
            }
        }
    }

    /// Cost of the messages behind the last summary, in tokens.
    async fn tail_tokens(&self, snapshot: &Snapshot) -> Result<u64> {
        let spans = self.spans(snapshot).await?;
        let last = spans.last().filter(|span| span.body == Body::Raw);
        Ok(last.map_or(0, |span| span.tokens))
    }
}
