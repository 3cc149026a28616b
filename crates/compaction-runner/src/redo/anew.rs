//! The job that rewrites a summary, with rewritten summaries as its sources.

use std::borrow::Cow;

use compaction_plan::{Job, Label, Work};
use memory_model::{Child, Summary};
use memory_store::message_costs;

use crate::before::with_before;
use crate::environment::Compaction;
use crate::error::Result;
use crate::redo::plan::{Nodes, Wanted};
use crate::redo::progress::Made;

/// Kind of the jobs that rewrite a summary.
pub(super) const REDO: Label = Label::from_static("redo");

/// Returns the job that rewrites a summary from its old sources, with rewritten summaries in place of their old
/// versions. `None` if there is no reason to rewrite it.
pub(super) async fn job_anew(
    env: &Compaction<'_>,
    old: &Summary,
    nodes: &Nodes,
    wanted: &Wanted,
    made: &Made,
) -> Result<Option<Job>> {
    let anew = |child: &Child| match child {
        Child::Messages { .. } => child.clone(),
        Child::Summary { id, range } => Child::Summary {
            range: *range,
            id: made.instead.get(id).unwrap_or(id).clone(),
        },
    };
    // The context is searched again.
    let known = old.sources.iter().filter(|source| !old.is_context(source));
    let known: Vec<Child> = known.cloned().collect();
    let sources: Vec<Child> = known.iter().map(anew).collect();
    if sources == known && !old.provisional && !wanted.rejects(old) {
        return Ok(None);
    }
    let children = match old.children == known {
        true => None,
        false => Some(old.children.iter().map(anew).collect()),
    };
    let source_tokens = cost(env, &sources, nodes, made).await?;
    let job = Job {
        kind: REDO,
        range: old.range,
        expect: Vec::new(),
        work: Work::Summarize {
            sources,
            children,
            depth: old.depth,
        },
        request: env.planner.request_again(old),
        source_tokens,
        why: match () {
            () if wanted.rejects(old) => "it was rejected".to_owned(),
            () if old.provisional => "it was written without a model".to_owned(),
            () => "a summary that it was made from was made anew".to_owned(),
        },
    };
    let job = with_before(env, Cow::Owned(job)).await?;
    Ok(Some(job.into_owned()))
}

/// Returns the cost of messages and summaries, in tokens.
async fn cost(env: &Compaction<'_>, sources: &[Child], nodes: &Nodes, made: &Made) -> Result<u64> {
    let messages = sources.iter().filter(|child| child.summary().is_none());
    let ranges: Vec<_> = messages.map(Child::range).collect();
    let messages = message_costs(env.store, env.conversation, &ranges).await?;
    let summaries = sources.iter().filter_map(Child::summary).map(|id| {
        let summary = made.summaries.get(id).or_else(|| nodes.get(id));
        summary.map_or(0, |summary| summary.tokens)
    });
    Ok(messages
        .into_iter()
        .chain(summaries)
        .fold(0, u64::saturating_add))
}
