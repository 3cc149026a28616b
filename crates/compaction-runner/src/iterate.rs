//! The iterations of a run: repeats the passes (planning rounds) of the planner until they plan no change or the view
//! is small enough.

use compaction_plan::StopReason;
use memory_store::Snapshot;

use crate::conclude::publish_put_off;
use crate::environment::Compaction;
use crate::error::Result;
use crate::pass::run_pass;
use crate::tally::Tally;
use crate::view_reader::ViewReader;

/// Limits on the iterations of a run.
pub(crate) struct Iterations<'i> {
    /// Maximum number of iterations. `None` for the planner's maximum.
    pub(crate) most: Option<u32>,
    /// Returns whether a view of this cost, in tokens, needs no further iteration.
    pub(crate) is_enough: &'i (dyn Fn(u64) -> bool + Send + Sync),
}

/// Repeats the passes (planning rounds) until they plan no change or the view is small enough.
pub(crate) async fn iterate(
    env: &Compaction<'_>,
    iterations: &Iterations<'_>,
    start: Snapshot,
    tally: &mut Tally,
) -> Result<StopReason> {
    let mut done = 0;
    let mut reader = ViewReader::new(env, start);
    loop {
        let (planned, published) = (tally.planned, tally.published);
        tally.begin_iteration();
        done += run_passes(env, iterations, done, &mut reader, tally).await?;
        publish_put_off(env, tally).await?;
        if let Some(stop) = tally.must_stop() {
            return Ok(stop);
        }
        if tally.watch.take_outdated() {
            // Messages were erased in the meantime, so the view is read again.
            reader.refresh().await?;
            tally.now = Some(reader.snapshot.clone());
            continue;
        }
        if tally.planned == planned {
            return Ok(tally.in_vain().unwrap_or(StopReason::NothingEligible));
        }
        if tally.published == published {
            return Ok(tally.in_vain().unwrap_or(StopReason::NoProgress));
        }
        if iterations.most.is_some_and(|most| done >= most) {
            return Ok(StopReason::PassesDone);
        }
        let cap = env.planner.max_iterations();
        if iterations.most.is_none() && cap.is_some_and(|most| done >= most) {
            return Ok(StopReason::IterationCap);
        }
        reader.refresh().await?;
        tally.now = Some(reader.snapshot.clone());
        if (iterations.is_enough)(reader.tokens) {
            return Ok(StopReason::PassesDone);
        }
    }
}

/// Runs all passes (planning rounds). Repeats them while iterations are left, the view is too large, and summaries wait
/// to be published together: the next passes then plan over the view with these summaries. Returns the number of
/// iterations.
async fn run_passes(
    env: &Compaction<'_>,
    iterations: &Iterations<'_>,
    before: u32,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<u32> {
    let mut done = 0;
    loop {
        let planned = tally.planned;
        for pass in env.planner.passes() {
            run_pass(env, pass, reader, tally).await?;
            if tally.must_stop().is_some() || tally.watch.is_outdated() {
                return Ok(done + 1);
            }
        }
        done += 1;
        let is_left = iterations.most.is_some_and(|most| before + done < most);
        let is_over = tally.planned == planned || tally.lost;
        if !is_left || is_over || !env.puts_off() || (iterations.is_enough)(reader.tokens) {
            return Ok(done);
        }
    }
}
