//! `compact --dry-run`: the next step, and the cost of the run.

use agent_memory::Session;
use agent_memory::compaction::StopReason;

use super::options::{check, is_due, request};
use super::report::{CompactReport, CompactionResult, ViewChange};
use crate::app::App;
use crate::args::Compact;
use crate::cost::Cost;
use crate::output::count;
use crate::writer::Writers;

pub(super) async fn dry_run(
    app: &mut App,
    args: &Compact,
    writers: &Writers,
    session: &Session,
) -> anyhow::Result<()> {
    let config = writers.config();
    check(args, config, session.strategy())?;
    let is_due = is_due(args, config, session).await?;
    let mut plan = session.plan().await?;
    if !is_due {
        plan.jobs.clear();
    }
    let estimate = match is_due && writers.has_model() {
        true => Some(estimate(app, args, writers, session).await?),
        false => None,
    };
    let report = session.verify().await?;
    let size = session.current_view().await?.measure();
    let view = ViewChange::new(session, size, size, report);
    if app.json {
        return Ok(app.out.json(&CompactReport {
            view,
            imported: None,
            run: CompactionResult::none(match is_due {
                true => StopReason::DryRun,
                false => StopReason::BelowThreshold,
            }),
            dropped: None,
            plan: Some(plan),
            spent: Cost::of(session.memory()),
            estimate,
        })?);
    }
    app.out.line(&format!("session {}", session.key()))?;
    app.out.line(&format!(
        "view {} now: {} of {} in {}",
        plan.view,
        count(plan.tokens, "token", "tokens"),
        count(view.before.messages, "message", "messages"),
        count(view.after.spans, "span", "spans"),
    ))?;
    if !is_due {
        return Ok(app
            .out
            .line("Nothing would be done: the threshold is not reached.")?);
    }
    if plan.jobs.is_empty() {
        return Ok(app.out.line("Nothing is left to do.")?);
    }
    if let Some(estimate) = &estimate {
        estimate.print_estimate(app)?;
    }
    app.out.line(&format!(
        "The next iteration would make {}:",
        count(plan.jobs.len() as u64, "summary", "summaries")
    ))?;
    for job in &plan.jobs {
        app.out.line(&format!(
            "  messages {}-{}, {}, to depth {}: {}",
            job.range.first,
            job.range.last,
            count(job.source_tokens, "token", "tokens"),
            job.depth().unwrap_or(0),
            job.why
        ))?;
    }
    Ok(app.out.line("Nothing was written.")?)
}

/// Returns the cost of a run: a copy of the session in RAM is compacted with calls that are only counted.
async fn estimate(
    app: &App,
    args: &Compact,
    writers: &Writers,
    session: &Session,
) -> anyhow::Result<Cost> {
    let copy = session.copy_to_ram(writers.builder()).await?;
    let (_holding, cancel) = app.stop.holding();
    let outcome = copy.compact(request(args, cancel)).await?;
    if outcome.stop_reason == StopReason::Cancelled {
        return Err(app.stop.failure().into());
    }
    Ok(Cost::of(copy.memory()))
}
