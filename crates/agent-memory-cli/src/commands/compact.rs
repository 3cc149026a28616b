//! `compact`: imports a transcript, compacts the session, verifies it, and shows the result.

mod dry_run;
mod options;
mod report;
mod target;
mod text;

use std::path::Path;
use std::sync::Arc;

use agent_memory::compaction::{LeaseHolder, Outcome, StopReason};
use agent_memory::{Memory, Session, Strategy, VerifyReport};

use self::dry_run::dry_run;
use self::options::{check, is_due, request};
pub(super) use self::report::ViewSize;
use self::report::{CompactReport, CompactionResult, ViewChange};
use self::target::{empty, neither, open, open_for_dry_run, planned};
use self::text::print;
use super::dropped::Dropped;
use super::import;
use crate::app::App;
use crate::args::Compact;
use crate::config::Config;
use crate::cost::Cost;
use crate::error::{self, Failure, Kind};
use crate::output::note;
use crate::progress::Progress;
use crate::writer::{Writers, model_failures, redo_command};

pub(crate) async fn run(app: &mut App, args: &Compact) -> anyhow::Result<()> {
    if args.budget == 0 {
        let text = "a budget of 0 tokens is too small: no context fits into it";
        let hint = "give --budget 1000 or more, or leave it out";
        return Err(Failure::new(Kind::BudgetTooSmall, text).hint(hint).into());
    }
    if args.policy.threshold.is_some() && args.window.is_none() {
        let text = "--threshold has no effect without --window";
        let hint = "give the size of the model's window, such as --window 200000, or leave it out";
        return Err(Failure::new(Kind::Usage, text).hint(hint).into());
    }
    let config = match &args.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    check(args, &config, None)?;
    let writers = Writers::find(&args.writing, args.dry_run)?.with_policy(&args.policy, &config);
    let progress = Arc::new(Progress::new(app.json));
    let path = Path::new(&args.target);
    // A link to a missing file is a file that cannot be read, not the name of a session. A directory cannot
    // be compacted, so its name may be the name of a session.
    if path.is_dir() || path.symlink_metadata().is_err() {
        let memory = open(app, args, &writers, &progress).await?;
        let session = app.session_in_use(&memory, &args.target).await;
        let session = session.map_err(|error| neither(app, error, &args.target))?;
        if args.dry_run {
            let session = planned(session, args).await?;
            return dry_run(app, args, &writers, &session).await;
        }
        check(args, &config, session.strategy())?;
        return compact(app, args, &config, &session, None, &progress).await;
    }
    progress.say(&format!("reading {}", args.target));
    let transcript = import::read(path, &import::options(app, None))?;
    if args.dry_run {
        let builder = || writers.apply(Memory::builder(), &progress);
        let session = open_for_dry_run(app, builder, &transcript, &args.target).await?;
        return dry_run(app, args, &writers, &planned(session, args).await?).await;
    }
    let memory = app
        .open_for_writing(&progress, |builder| writers.apply(builder, &progress))
        .await?;
    let stored = memory.session_of(&transcript).await?;
    let strategy = stored.map_or(Some(Strategy::default()), |it| it.session.strategy());
    check(args, &config, strategy)?;
    progress.say(&format!("importing {}", args.target));
    let mut imported = import::ImportedFiles::default();
    let main = imported.take(&memory, &args.target, &transcript).await?;
    drop(transcript);
    let main = main.ok_or_else(|| empty(&args.target))?;
    let session = memory.get_session(main).await?;
    compact(app, args, &config, &session, Some(imported), &progress).await
}

async fn compact(
    app: &mut App,
    args: &Compact,
    config: &Config,
    session: &Session,
    imported: Option<import::ImportedFiles>,
    progress: &Progress,
) -> anyhow::Result<()> {
    let session = &match args.strategy {
        Some(strategy) => session.use_strategy(strategy).await?,
        None => session.clone(),
    };
    progress.say("compacting");
    let outcome = if is_due(args, config, session).await? {
        let (_holding, cancel) = app.stop.holding();
        Some(session.compact(request(args, cancel)).await?)
    } else {
        None
    };
    if let Some(StopReason::Cancelled) = outcome.as_ref().map(|outcome| outcome.stop_reason) {
        progress.done();
        return Err(app.stop.failure().into());
    }
    progress.say("verifying");
    let report = session.verify().await?;
    progress.done();
    let held = outcome.as_ref().and_then(|outcome| outcome.held.clone());
    let dropped = match args.report_dropped {
        true => Some(dropped(session, outcome.as_ref()).await?),
        false => None,
    };
    let (view, run) = result(session, outcome, report).await?;
    note_missing(app, args, session, &run);
    let answer = CompactReport {
        view,
        imported,
        run,
        dropped,
        plan: None,
        spent: Cost::of(session.memory()),
        estimate: None,
    };
    if app.json {
        app.out.json(&answer)?;
    } else {
        print(app, args, session, &answer).await?;
    }
    answer.view.verify.check()?;
    Ok(check_end(&answer.run, held.as_ref())?)
}

/// Returns the messages that the new summaries do not mention.
async fn dropped(session: &Session, outcome: Option<&Outcome>) -> anyhow::Result<Vec<Dropped>> {
    let Some(outcome) = outcome else {
        return Ok(Vec::new());
    };
    let view = session.current_view().await?;
    let left_out = view.left_out(&outcome.summaries).await?;
    Ok(left_out.into_iter().map(Dropped::from).collect())
}

/// Returns the result of a compaction. `outcome` is `None` below the threshold.
async fn result(
    session: &Session,
    outcome: Option<Outcome>,
    report: VerifyReport,
) -> anyhow::Result<(ViewChange, CompactionResult)> {
    let Some(outcome) = outcome else {
        let size = session.current_view().await?.measure();
        let view = ViewChange::new(session, size, size, report);
        return Ok((view, CompactionResult::none(StopReason::BelowThreshold)));
    };
    let view = ViewChange::new(session, outcome.before, outcome.after, report);
    let mut run = CompactionResult::new(outcome);
    if session.strategy() == Some(Strategy::Handoff) && run.summary.is_some() {
        run.summary_text = session.current_view().await?.handoff_summary().await?;
    }
    Ok((view, run))
}

/// Notes the summaries that the model did not write, with the command that has them written.
fn note_missing(app: &App, args: &Compact, session: &Session, run: &CompactionResult) {
    let key = session.key().as_str();
    let next = match run.model.without_model {
        // What was not made is planned again.
        0 => "compact again".to_owned(),
        _ => redo_command(app, &args.writing, &[], key),
    };
    if let Some(line) = model_failures(&run.model, &next) {
        note(&line);
    } else if run.stop_reason == StopReason::WaitsForModel {
        let redo = if args.writing.has_model() {
            redo_command(app, &args.writing, &[], key)
        } else {
            app.command(&["redo", "--summarizer", "PROVIDER:MODEL"], &[key])
        };
        note(&format!(
            "summaries wait to be written by a model: run {redo}"
        ));
    }
}

/// Returns an error if the summarizer failed, or if another process did all of the work. Notes the work that is left.
fn check_end(run: &CompactionResult, held: Option<&LeaseHolder>) -> Result<(), Failure> {
    match &run.failure {
        Some(failure) if run.stop_reason == StopReason::SummarizerFailed => {
            let text = format!("a summary could not be made: {failure}");
            Err(Failure::new(Kind::Summarizer, text)
                .hint("published summaries stay; run it again to continue"))
        }
        _ if run.stop_reason == StopReason::Held => {
            let failure = error::held(held);
            if run.summaries.total() == 0 {
                return Err(failure);
            }
            let text = failure
                .message
                .replacen("nothing was done", "work is left", 1);
            note(&text);
            Ok(())
        }
        _ => Ok(()),
    }
}
