//! Makes a summary that is shorter than its sources from a summarizer's text.

use std::collections::BTreeMap;

use compaction_plan::{Details, Job, WrittenText};
use memory_model::{
    Child, Hash, RankedLine, RawJson, Recipe, Summary, SummaryBody, SummaryFigures,
};
use serde::{Deserialize, Serialize};
use summarize_escalation::{cut_to_tokens, rank_lines, rank_of};

use crate::environment::{Compaction, Stage};
use crate::report::Cause;
use crate::sources::Sources;

/// A text that a summarizer wrote, with the data that is stored with a draft (a summary that is not published yet).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) body: SummaryBody,
    pub(crate) tier: String,
    pub(crate) model: Option<String>,
    pub(crate) provisional: bool,
    pub(crate) recipe: Recipe,
    /// Data about how the text was written: see [`LadderOutcome::meta`](summarize_escalation::LadderOutcome::meta).
    #[serde(default)]
    pub(crate) meta: Option<RawJson>,
    /// Reason why the model failed to write the text; `None` if it did not fail.
    #[serde(default)]
    pub(crate) cause: Option<Cause>,
}

/// Makes a summary from a text that a summarizer wrote. A context shows the summary with fewer tokens than its sources,
/// unless the caller supplied it. `None` if this is impossible.
pub(crate) fn summary_of(
    env: &Compaction<'_>,
    job: &Job,
    sources: &Sources,
    source_hash: Hash,
    written: Written,
) -> Option<Summary> {
    let (earliest_at, latest_at) = sources.times();
    let depth = job.depth()?;
    let body = ranked(env, written.body);
    let (body, facts) = with_details(env, job, sources, body);
    let before = job
        .before()
        .iter()
        .map(|range| Child::Messages { range: *range });
    let made_from = before.chain(job.sources().iter().cloned()).collect();
    let replaced = sources.tokens();
    let mut summary = Summary {
        children: job.children().to_vec(),
        rendering: env.accounting.rendering(),
        source_tokens: replaced.saturating_add(sources.before_tokens()),
        provisional: written.provisional,
        tier: written.tier,
        model: written.model,
        meta: with_facts(with_figures(written.meta, sources.figures(job)), facts),
        earliest_at,
        latest_at,
        created_at: env.clock.now(),
        ..Summary::new(
            job.range,
            depth,
            made_from,
            source_hash,
            written.recipe,
            body,
        )
    };
    sign(env, &mut summary);
    // The ladder counted the plain text, and escaping may have made it longer.
    while env.stage != Stage::Supplied && summary.tokens >= replaced {
        summary.body = ranked(env, shorter(env, &summary, replaced)?.into());
        sign(env, &mut summary);
    }
    Some(summary)
}

/// Returns the body of a summary with the lines that the planner adds, and the data that the planner adds.
fn with_details(
    env: &Compaction<'_>,
    job: &Job,
    sources: &Sources,
    body: SummaryBody,
) -> (SummaryBody, BTreeMap<String, RawJson>) {
    let asked = job.request.as_ref().and_then(|r| r.details.as_ref());
    if asked.is_none() {
        return (body, BTreeMap::new());
    }
    let stored = sources.stored(job);
    let written = WrittenText {
        job,
        sources: &stored,
        text: body.text(),
        accounting: env.accounting,
    };
    let room = written.room();
    let Details { facts, lines, .. } = env.planner.details(&written);
    (with_lines(env, body, &lines, room), facts)
}

/// Returns a body with additional lines at its end, as many as fit. The added lines rank lower than all other lines.
fn with_lines(
    env: &Compaction<'_>,
    body: SummaryBody,
    lines: &[String],
    room: Option<u64>,
) -> SummaryBody {
    let mut all: Vec<RankedLine<'_>> = body.lines().collect();
    let before = env.accounting.text(body.text());
    let mut cost = before;
    for text in lines.iter().flat_map(|line| line.split('\n')) {
        cost = cost.saturating_add(env.accounting.text(text) + 1);
        if room.is_some_and(|room| cost - before > room) {
            break;
        }
        let rank = rank_of(cost);
        all.push(RankedLine { text, rank });
    }
    match all.len() > body.lines().count() {
        true => SummaryBody::ranked(all),
        false => body,
    }
}

/// Returns the body with ranks. If it has none, earlier lines get higher ranks.
fn ranked(env: &Compaction<'_>, body: SummaryBody) -> SummaryBody {
    match body.ranks() {
        Some(_) => body,
        None => rank_lines(body.text(), env.accounting.estimator()),
    }
}

/// Shortens the text of a summary. The new length would fit if rendering added a cost in proportion to the length. It
/// is at least an eighth shorter. `replaced` is the cost that the summary must stay below. Returns `None` if no text is
/// left.
fn shorter(env: &Compaction<'_>, summary: &Summary, replaced: u64) -> Option<String> {
    let text = env.accounting.text(summary.text());
    let share = u128::from(text) * u128::from(replaced) / u128::from(summary.tokens.max(1));
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    let limit = share.min(text.saturating_sub((text / 8).max(1)));
    let cut = cut_to_tokens(summary.text(), limit, env.accounting.estimator())?;
    (!cut.is_empty() && cut.len() < summary.text().len()).then_some(cut)
}

/// Sets the hash and the id of a summary, and then its cost, which includes the rendered id.
fn sign(env: &Compaction<'_>, summary: &mut Summary) {
    summary.set_hash_and_id();
    summary.tokens = env.accounting.summary(summary);
}

/// Returns the `meta` of a summary with the planner's data added.
fn with_facts(meta: Option<RawJson>, facts: BTreeMap<String, RawJson>) -> Option<RawJson> {
    if facts.is_empty() {
        return meta;
    }
    let fields = meta.as_ref().map(RawJson::as_str).unwrap_or("{}");
    let mut fields: BTreeMap<String, RawJson> = serde_json::from_str(fields).ok()?;
    fields.extend(facts);
    RawJson::from_value(&fields).ok().or(meta)
}

/// Returns the `meta` of a summary with the number and the cost of the covered messages added.
fn with_figures(meta: Option<RawJson>, figures: Option<SummaryFigures>) -> Option<RawJson> {
    let Some(figures) = figures else { return meta };
    let fields = meta.as_ref().map(RawJson::as_str).unwrap_or("{}");
    let mut fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(fields).ok()?;
    fields.insert("figures".to_owned(), serde_json::to_value(figures).ok()?);
    RawJson::from_value(&fields).ok().or(meta)
}
