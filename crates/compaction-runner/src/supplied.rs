//! Whole compactions by a summary that the caller or a hook supplies.

use std::collections::BTreeMap;

use async_trait::async_trait;
use compaction_plan::{CompactionResult, StopReason};
use memory_model::{EntryRef, RawJson, Seq, Summary};
use memory_store::Snapshot;

use crate::environment::{Compaction, Stage};
use crate::error::{Error, Result};
use crate::events::{Event, Hooks, JobDecision};
use crate::iterate::{Iterations, iterate};
use crate::lifecycle;
use crate::outcome::Outcome;
use crate::planned_job::PlannedJob;
use crate::tally::Tally;

/// Publishes the result that a hook supplied, and returns the reason for the end of the run. `stop` is the reason if no
/// hook supplied a result.
pub(crate) async fn publish_supplied(
    env: &Compaction<'_>,
    stop: StopReason,
    tally: &mut Tally,
) -> Result<StopReason> {
    match tally.supplied.take() {
        // The hook may have taken long to answer.
        Some(result) => publish(env, &result, env.read_snapshot().await?, tally).await,
        None => Ok(stop),
    }
}

/// Publishes a result as a compaction of its own.
pub(crate) async fn run_supplied(
    env: &Compaction<'_>,
    result: &CompactionResult,
) -> Result<Outcome> {
    let (start, began) = lifecycle::start(env).await?;
    let mut tally = Tally::default();
    let stop = publish(env, result, start.clone(), &mut tally).await?;
    lifecycle::end(env, (&start, began), tally, stop).await
}

async fn publish(
    env: &Compaction<'_>,
    result: &CompactionResult,
    start: Snapshot,
    tally: &mut Tally,
) -> Result<StopReason> {
    if result.summary.trim().is_empty() {
        return Err(Error::invalid("its summary is empty: give a text"));
    }
    let kept_from = match &result.kept_from {
        EntryRef::Position(seq) => Some(*seq),
        EntryRef::External(id) => {
            let ids = std::slice::from_ref(id);
            let found = env.store.find(env.conversation, ids).await?;
            found.into_iter().flatten().next()
        }
    };
    // The position after the last message keeps none.
    let may_keep = |seq: &Seq| (Seq::FIRST.next()..=start.head.next()).contains(seq);
    let Some(kept_from) = kept_from.filter(may_keep) else {
        return Err(Error::invalid(format!(
            "no message precedes the entry {}, or it does not exist: give the first entry that is kept",
            result.kept_from
        )));
    };
    let tokens = result
        .tokens_before
        .map(|tokens| RawJson::from_value(&tokens));
    let facts: BTreeMap<String, RawJson> = [
        ("supplied", result.details.clone()),
        ("tokens_before", tokens.and_then(std::result::Result::ok)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    let Some(planner) = env.planner.keeping(kept_from, &facts) else {
        return Err(Error::invalid(format!(
            "the view {} has no summary of everything before an entry: use the strategy handoff",
            env.view()
        )));
    };
    let hooks = SuppliedText {
        text: &result.summary,
        hooks: env.hooks,
    };
    let env = &Compaction {
        planner: &*planner,
        hooks: &hooks,
        stage: Stage::Supplied,
        ..env.clone()
    };
    let iterations = Iterations {
        most: Some(1),
        is_enough: &|_| false,
    };
    iterate(env, &iterations, start, tally).await
}

/// Hooks that supply the same text for every summary, and forward all events to other hooks.
#[derive(Debug)]
struct SuppliedText<'a> {
    text: &'a str,
    hooks: &'a dyn Hooks,
}

#[async_trait]
impl Hooks for SuppliedText<'_> {
    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        match self.hooks.before(planned).await {
            JobDecision::Cancel => return JobDecision::Cancel,
            JobDecision::Fail(error) => {
                let range = planned.job.range;
                self.event(&Event::HookFailed { range, error }).await;
            }
            _ => {}
        }
        JobDecision::Supply(self.text.to_owned())
    }

    async fn after(&self, summary: &Summary) {
        self.hooks.after(summary).await;
    }

    async fn event(&self, event: &Event) {
        self.hooks.event(event).await;
    }
}
