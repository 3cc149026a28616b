//! A run: its iterations, and the result that a hook supplies in their place.

use compaction_plan::StopReason;

use crate::environment::Compaction;
use crate::error::Result;
use crate::exhausted::{is_exhausted, remember_exhausted};
use crate::iterate::{Iterations, iterate};
use crate::lifecycle;
use crate::outcome::Outcome;
use crate::supplied::publish_supplied;
use crate::tally::Tally;

/// Runs the iterations, and returns the outcome with the stop reason. Does not plan if an earlier run could not shorten
/// the same view.
pub(crate) async fn run_iterations(
    env: &Compaction<'_>,
    iterations: &Iterations<'_>,
) -> Result<Outcome> {
    let (start, began) = lifecycle::start(env).await?;
    let mut tally = Tally::default();
    let stop = if is_exhausted(env, &start).await? {
        StopReason::Exhausted
    } else {
        let stop = iterate(env, iterations, start.clone(), &mut tally).await?;
        publish_supplied(env, stop, &mut tally).await?
    };
    if stop == StopReason::Exhausted
        && let Some(tried) = &tally.seen
    {
        remember_exhausted(env, tried).await?;
    }
    lifecycle::end(env, (&start, began), tally, stop).await
}
