//! `redo`: rewrites provisional summaries (written without a model) with a model.

use std::sync::Arc;

use agent_memory::compaction::{CancellationToken, RedoRequest};
use agent_memory::{
    Session,
    compaction::{
        ModelReport, RedoFailure, RedoPlan, RedoPolicy, RedoReport, RedoStop, ReplacedSummary,
    },
    model::SummaryId,
};
use serde::Serialize;

use super::compact::ViewSize;
use super::verify::Verified;
use crate::app::App;
use crate::args::Redo;
use crate::cost::Cost;
use crate::error::{self, Failure, Kind};
use crate::output::{count, note, number};
use crate::progress::Progress;
use crate::writer::{Writers, model_failures, redo_command};

#[derive(Debug, Serialize)]
struct RedoResult {
    session: String,
    before: ViewSize,
    after: ViewSize,
    provisional: Provisional,
    /// Number of summaries that were rewritten because a summary from which they were made was rewritten.
    rebuilt: u64,
    replaced: Vec<ReplacedSummary>,
    /// Number of model calls. Each retry counts as one.
    calls: u64,
    /// Number of summaries that were written in this run. They are published, or kept for the next run.
    written: u64,
    failures: Vec<RedoFailure>,
    /// Number of summaries that the model was asked for, and the reasons for summaries that it did not write.
    model: ModelReport,
    /// Minimum number of model calls for one summary; `None` without `--max-calls`.
    needed_calls: Option<u64>,
    stop_reason: &'static str,
    verify: Verified,
    /// The summaries to rewrite; `None` except for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<RedoPlan>,
    /// Cost of the calls of the model.
    spent: Cost,
    /// Estimated cost of a run; `None` except for a dry run with a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Cost>,
}

#[derive(Debug, Serialize)]
struct Provisional {
    found: u64,
    redone: u64,
    left: u64,
}

pub(crate) async fn run(app: &mut App, args: &Redo) -> anyhow::Result<()> {
    let mut writers = Writers::find(&args.writing, args.dry_run)?;
    writers.limit_calls(args.max_calls);
    if args.dry_run {
        let memory = app.open().await?;
        let session = app.session(&memory, &args.session).await?;
        return dry_run(app, args, &writers, &session).await;
    }
    if !writers.has_model() && !args.extracts {
        let text = "redo needs a model";
        let hint = "give --summarizer PROVIDER:MODEL, such as ollama:qwen3, or --extracts";
        return Err(Failure::new(Kind::Usage, text).hint(hint).into());
    }
    let progress = Arc::new(Progress::new(app.json));
    if !app.place()?.exists() {
        app.open().await?;
    }
    let memory = app
        .open_for_writing(&progress, |builder| writers.apply(builder, &progress))
        .await?;
    let session = app.session(&memory, &args.session).await?;
    progress.say("redoing");
    let (holding, cancel) = app.stop.holding();
    let redone = session.redo(request(args, cancel)).await?;
    drop(holding);
    if redone.stop_reason == RedoStop::Cancelled {
        progress.done();
        return Err(app.stop.failure().into());
    }
    progress.say("verifying");
    let report = session.verify().await?;
    progress.done();
    let reason = redone.stop_reason;
    let progressed = redone.made_progress();
    let held = redone.held.clone();
    let limit = args.max_calls.map(|calls| calls.to_string());
    let limit = limit.iter().flat_map(|calls| ["--max-calls", calls]);
    let limit: Vec<&str> = limit.collect();
    let again = redo_command(app, &args.writing, &limit, session.key().as_str());
    if let Some(line) = model_failures(&redone.model, &again) {
        note(&line);
    }
    let answer = answer(&session, redone, report.into());
    if app.json {
        app.out.json(&answer)?;
    } else {
        print(app, args, &answer, stop(reason).1)?;
    }
    answer.verify.check()?;
    if reason == RedoStop::Held && !progressed {
        return Err(error::held(held.as_ref()).into());
    }
    if args.extracts {
        return Ok(());
    }
    Ok(check_end(args, &answer, reason, progressed)?)
}

/// Returns an error if the run ended before all summaries were rewritten, unless it only has to be run again.
fn check_end(
    args: &Redo,
    answer: &RedoResult,
    reason: RedoStop,
    progressed: bool,
) -> Result<(), Failure> {
    let failure = answer.failures.last();
    let failure = failure.map_or("", |failure| failure.error.as_str());
    let left = count(answer.provisional.left, "summary is", "summaries are");
    let limit = args.max_calls.unwrap_or_default();
    let (kind, text, hint) = match reason {
        RedoStop::SummarizerFailed => (
            Kind::Summarizer,
            format!("{left} not rewritten yet: {failure}"),
            "rewritten summaries stay; run it again to continue",
        ),
        RedoStop::CallLimitTooLow => (
            Kind::CallLimit,
            format!(
                "--max-calls {limit} is fewer than the calls one summary takes here ({})",
                answer.needed_calls.map_or("unknown".to_owned(), number),
            ),
            "allow more calls, or give a larger --model-window",
        ),
        RedoStop::CallLimit if !progressed => (
            Kind::CallLimit,
            format!("{left} not rewritten yet, and --max-calls {limit} allowed none: {failure}"),
            "run it again: it begins with the other summaries",
        ),
        RedoStop::LostRace if !progressed => (
            Kind::Held,
            format!("{left} not rewritten yet: another process compacted at the same time"),
            "run it again",
        ),
        _ => return Ok(()),
    };
    Err(Failure::new(kind, text).hint(hint))
}

/// Returns the summaries to select, and the limit on calls.
fn request(args: &Redo, cancel: CancellationToken) -> RedoRequest {
    RedoRequest {
        policy: RedoPolicy {
            max_calls: args.max_calls,
            extracts: args.extracts,
            again: args.again.iter().map(SummaryId::new).collect(),
            ..RedoPolicy::default()
        },
        instructions: args.writing.instructions.clone(),
        cancel,
    }
}

fn answer(session: &Session, redone: RedoReport, verify: Verified) -> RedoResult {
    let replaced = redone.replaced.len() as u64;
    let gone = redone.provisional.saturating_sub(redone.left);
    RedoResult {
        session: session.key().to_string(),
        before: redone.before.into(),
        after: redone.after.into(),
        provisional: Provisional {
            found: redone.provisional,
            redone: gone,
            left: redone.left,
        },
        rebuilt: replaced.saturating_sub(gone),
        replaced: redone.replaced,
        calls: session.guard().spent().calls,
        written: redone.written,
        failures: redone.failures,
        model: redone.model,
        needed_calls: redone.needed_calls,
        stop_reason: stop(redone.stop_reason).0,
        verify,
        plan: None,
        spent: Cost::of(session.memory()),
        estimate: None,
    }
}

/// Returns the name of a stop reason, and a description of it.
fn stop(stop: RedoStop) -> (&'static str, &'static str) {
    match stop {
        RedoStop::Done => ("done", "every summary was written by a model"),
        RedoStop::NoModel => ("no_model", "it stopped"),
        RedoStop::SummarizerFailed => ("summarizer_failed", "the summarizer failed"),
        RedoStop::CallLimit => (
            "call_limit",
            "the maximum number of calls was made; run it again to continue",
        ),
        RedoStop::CallLimitTooLow => (
            "call_limit_too_low",
            "the maximum number of calls is too small for one summary",
        ),
        RedoStop::LostRace => (
            "lost_race",
            "another process compacted at the same time; run it again to continue",
        ),
        RedoStop::Held => ("held", "another process works on the rest"),
        RedoStop::Cancelled => ("cancelled", "it stopped"),
        _ => ("other", "it stopped"),
    }
}

fn print(app: &mut App, args: &Redo, answer: &RedoResult, why: &str) -> anyhow::Result<()> {
    app.out.line(&format!("session {}", answer.session))?;
    let provisional = &answer.provisional;
    if provisional.found == 0 {
        app.out.line(nothing(args))?;
    } else {
        let found = match args.extracts {
            true => count(provisional.found, "extract is", "extracts are") + " of an older version",
            false => count(provisional.found, "summary was", "summaries were") + wanted(args),
        };
        let why = match (answer.stop_reason, args.extracts) {
            ("done", true) => "there are no extracts of older versions",
            _ => why,
        };
        app.out.line(&format!(
            "{found}: {} rewritten, {} left; {} above them rewritten; {} written now",
            number(provisional.redone),
            number(provisional.left),
            count(answer.rebuilt, "summary", "summaries"),
            number(answer.written),
        ))?;
        app.out.line(&format!(
            "before {}, after {}; {}; {}",
            count(answer.before.tokens, "token", "tokens"),
            count(answer.after.tokens, "token", "tokens"),
            count(answer.calls, "call", "calls"),
            why,
        ))?;
    }
    for failure in &answer.failures {
        app.out.line(&format!(
            "not redone: {} (messages {}): {}",
            failure.id, failure.range, failure.error
        ))?;
    }
    for replaced in &answer.replaced {
        app.out
            .line(&format!("  {} → {}", replaced.old, replaced.new))?;
    }
    answer.spent.print_spent(app)?;
    answer.verify.print(app)
}

/// Returns the reason for which summaries are rewritten.
fn wanted(args: &Redo) -> &'static str {
    if args.again.is_empty() {
        " written without a model, or rejected"
    } else {
        " rejected"
    }
}

/// Returns the output line for the case that no summary has to be rewritten.
fn nothing(args: &Redo) -> &'static str {
    match args.extracts {
        true => "Nothing is left to do: the view has no extracts of older versions.",
        false => "Nothing is left to do: every summary in the view was written by a model.",
    }
}

async fn dry_run(
    app: &mut App,
    args: &Redo,
    writers: &Writers,
    session: &Session,
) -> anyhow::Result<()> {
    let (holding, cancel) = app.stop.holding();
    let request = request(args, cancel);
    let plan = session.plan_redo(&request.policy).await?;
    let mut estimate = None;
    if writers.has_model() && !plan.nodes.is_empty() {
        let copy = session.copy_to_ram(writers.builder()).await?;
        if copy.redo(request).await?.stop_reason == RedoStop::Cancelled {
            return Err(app.stop.failure().into());
        }
        estimate = Some(Cost::of(copy.memory()));
    }
    drop(holding);
    if app.json {
        let size = session.current_view().await?.measure();
        let selected = plan
            .nodes
            .iter()
            .filter(|node| node.provisional || node.rejected);
        let selected = selected.count() as u64;
        let answer = RedoResult {
            session: session.key().to_string(),
            before: size.into(),
            after: size.into(),
            provisional: Provisional {
                found: selected,
                redone: 0,
                left: selected,
            },
            rebuilt: 0,
            replaced: Vec::new(),
            calls: 0,
            written: 0,
            failures: Vec::new(),
            model: ModelReport::default(),
            needed_calls: None,
            stop_reason: "dry_run",
            verify: session.verify().await?.into(),
            plan: Some(plan),
            spent: Cost::of(session.memory()),
            estimate,
        };
        return Ok(app.out.json(&answer)?);
    }
    app.out.line(&format!("session {}", session.key()))?;
    if plan.nodes.is_empty() {
        return Ok(app.out.line(nothing(args))?);
    }
    if let Some(estimate) = &estimate {
        estimate.print_estimate(app)?;
    }
    app.out.line(&format!(
        "{} would be rewritten:",
        count(plan.nodes.len() as u64, "summary", "summaries")
    ))?;
    for node in &plan.nodes {
        let why = match (node.provisional, &node.failure) {
            _ if node.rejected => "rejected".to_owned(),
            (true, _) if args.extracts => "an extract of an older version".to_owned(),
            (true, None) => "written without a model".to_owned(),
            (true, Some(failure)) => {
                let failure = failure.lines().next().unwrap_or_default();
                format!("written without a model ({failure})")
            }
            (false, _) => "above a rewritten one".to_owned(),
        };
        app.out.line(&format!(
            "  {} messages {}-{}, depth {}: {why}",
            node.id, node.range.first, node.range.last, node.depth
        ))?;
    }
    Ok(app.out.line("Nothing was written.")?)
}
