//! `compact`: imports a transcript, compacts the session, verifies it, and shows the result.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agent_memory::CompactRequest;
use agent_memory::transcripts::Transcript;
use agent_memory::{
    Budget, Builder, ErrorKind, Memory, Session, Strategy, VerifyReport,
    compaction::{LabelCounts, Measure, ModelReport, Outcome, Plan, StopReason, WindowUse},
    model::SummaryId,
    store::InMemoryStore,
};
use serde::Serialize;

use super::dropped::{self, Dropped};
use super::import;
use super::show;
use super::verify::Verified;
use crate::app::App;
use crate::args::Compact;
use crate::config::Config;
use crate::cost::Cost;
use crate::error::{self, Failure, Kind};
use crate::output::{count, note, number, percent, table};
use crate::progress::Progress;
use crate::redact::Redactor;
use crate::writer::{Writers, model_failures, redo_command};

/// Maximum size of the state, in tokens.
const STATE: u64 = 600;

#[derive(Debug, Serialize)]
struct CompactReport {
    #[serde(flatten)]
    view: ViewChange,
    imported: Option<import::ImportedFiles>,
    #[serde(flatten)]
    run: CompactionResult,
    /// Messages that the published summaries do not mention; `None` unless they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<Vec<Dropped>>,
    /// The next step of the compaction; `None` except for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// Cost of the calls of the model.
    spent: Cost,
    /// Estimated cost of a run; `None` except for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Cost>,
}

/// Size of a session's view before and after the compaction, and the result of the verification.
#[derive(Debug, Serialize)]
struct ViewChange {
    session: String,
    before: LogSize,
    after: ViewSize,
    verify: Verified,
}

impl ViewChange {
    fn new(session: &Session, before: Measure, after: Measure, report: VerifyReport) -> Self {
        Self {
            session: session.key().to_string(),
            before: LogSize {
                messages: report.messages - report.notes,
                tokens: before.tokens,
            },
            after: after.into(),
            verify: report.into(),
        }
    }
}

/// Result of a compaction.
#[derive(Debug, Serialize)]
struct CompactionResult {
    summaries: SummaryCounts,
    /// Id of the last published summary; `None` if none was published.
    summary: Option<SummaryId>,
    /// Text of the handoff; `None` for another strategy, or if none was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_text: Option<String>,
    calls: u64,
    /// Duration of the compaction, in milliseconds.
    duration_ms: u64,
    stop_reason: StopReason,
    /// Number of published summaries that were written without a model.
    provisional: u64,
    /// Number of summaries that the model was asked for, and the reasons for summaries that it did not write.
    model: ModelReport,
    /// Text of the summarizer's failure; `None` if it did not fail.
    failure: Option<String>,
}

impl CompactionResult {
    /// Returns the result of a run that published no summary.
    fn none(stop_reason: StopReason) -> Self {
        Self {
            summaries: SummaryCounts::default(),
            summary: None,
            summary_text: None,
            calls: 0,
            duration_ms: 0,
            stop_reason,
            provisional: 0,
            model: ModelReport::default(),
            failure: None,
        }
    }

    fn new(outcome: Outcome) -> Self {
        Self {
            summaries: SummaryCounts::new(&outcome.published),
            summary: outcome.summaries.last().cloned(),
            summary_text: None,
            calls: outcome.calls,
            duration_ms: u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
            stop_reason: outcome.stop_reason,
            provisional: outcome.provisional,
            model: outcome.model,
            failure: outcome.failure.or(outcome.summarizer_error),
        }
    }
}

#[derive(Debug, Serialize)]
struct LogSize {
    messages: u64,
    tokens: u64,
}

/// Size of a view: its numbers of spans and tokens.
#[derive(Debug, Serialize)]
pub(super) struct ViewSize {
    pub(super) spans: u64,
    pub(super) tokens: u64,
}

impl From<Measure> for ViewSize {
    fn from(Measure { spans, tokens, .. }: Measure) -> Self {
        Self { spans, tokens }
    }
}

/// Numbers of published summaries, by the label that the planner gives to each kind.
#[derive(Debug, Default, Serialize)]
struct SummaryCounts {
    leaf: u64,
    condensed: u64,
    /// Numbers for labels of other strategies, such as `handoff`.
    #[serde(flatten)]
    others: BTreeMap<String, u64>,
}

impl SummaryCounts {
    fn new(published: &LabelCounts) -> Self {
        let others = published.iter().map(|(label, n)| (label.to_string(), n));
        Self {
            leaf: published.get("leaf"),
            condensed: published.get("condensed"),
            others: others
                .filter(|(label, _)| label != "leaf" && label != "condensed")
                .collect(),
        }
    }

    fn total(&self) -> u64 {
        self.leaf + self.condensed + self.others.values().sum::<u64>()
    }

    /// Returns the counts as text, such as `3 leaf and 1 condensed`.
    fn text(&self) -> String {
        let own = [("leaf", self.leaf), ("condensed", self.condensed)];
        // For another strategy than `dag`, only the labels of that strategy are printed.
        let own = own.into_iter().filter(|_| self.others.is_empty());
        let others = self.others.iter().map(|(label, n)| (label.as_str(), *n));
        let counts = own
            .chain(others)
            .map(|(label, n)| format!("{} {}", number(n), label.replace('_', " ")));
        counts.collect::<Vec<_>>().join(" and ")
    }
}

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

/// Returns an error for an option that has no effect with the requested strategy, or else with the session's own.
/// `None` is a strategy that is not known yet.
fn check(args: &Compact, config: &Config, own: Option<Strategy>) -> Result<(), Failure> {
    let Some(strategy) = args.strategy.or(own) else {
        return Ok(());
    };
    args.policy.check(strategy)?;
    match args.config {
        Some(_) => config.check(strategy),
        None => Ok(()),
    }
}

/// Opens an existing database: for reading in a dry run, otherwise for writing.
async fn open(
    app: &App,
    args: &Compact,
    writers: &Writers,
    progress: &Arc<Progress>,
) -> anyhow::Result<Memory> {
    if args.dry_run || !app.place()?.exists() {
        let opened = app.open_to_read(writers.apply(Memory::builder(), progress));
        return opened
            .await
            .map_err(|error| neither(app, error, &args.target));
    }
    app.open_for_writing(progress, |builder| writers.apply(builder, progress))
        .await
}

/// Returns the error for a target that is neither a file nor a session.
fn neither(app: &App, error: anyhow::Error, target: &str) -> anyhow::Error {
    let mut failure = match error.downcast::<Failure>() {
        Ok(failure) => failure,
        Err(error) => return error,
    };
    if matches!(failure.kind, Kind::NotFound | Kind::NoDatabase) {
        if Path::new(target).is_dir() {
            let command = app.command(&["import"], &[target]);
            let text = format!("{target} is a directory");
            return Failure::new(Kind::Unreadable, text)
                .hint(format!("import it first: {command}"))
                .into();
        }
        failure.message = format!("there is no file {target}, and {}", failure.message);
        let looks_like_path =
            target.contains(std::path::MAIN_SEPARATOR) || Path::new(target).extension().is_some();
        if looks_like_path {
            failure = failure.hint("check the path");
        }
    }
    failure.into()
}

/// Returns a handle on the session with the requested strategy. Does not store the strategy.
async fn planned(session: Session, args: &Compact) -> agent_memory::Result<Session> {
    let Some(strategy) = args.strategy else {
        return Ok(session);
    };
    let key = session.key().clone();
    session.memory().get_session(key).strategy(strategy).await
}

/// Returns whether the session crosses the threshold. The number of the configuration file is compared with the lines of
/// the session's file, and the share of a window with the cost of its contexts.
async fn is_due(args: &Compact, config: &Config, session: &Session) -> anyhow::Result<bool> {
    let lines = match config.tables().handoff {
        Some(_) => session.session_file().await?,
        None => String::new(),
    };
    let usage = WindowUse {
        tokens: session.usage().await?.context.tokens(),
        window: args.window.unwrap_or(0),
        stored_tokens: lines.lines().map(|line| line.len() as u64).sum::<u64>() / 4,
        ..WindowUse::default()
    };
    Ok(args.policy.is_due(&usage, config))
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
        Some(
            session
                .compact(CompactRequest {
                    mode: args.mode,
                    instructions: args.writing.instructions.clone(),
                    cancel,
                    fits: Some(args.budget),
                    ..CompactRequest::default()
                })
                .await?,
        )
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
    let mut held = None;
    let mut dropped = args.report_dropped.then(Vec::new);
    let (view, run) = match outcome {
        Some(outcome) => {
            if let Some(dropped) = &mut dropped {
                let left_out = session
                    .current_view()
                    .await?
                    .left_out(&outcome.summaries)
                    .await?;
                dropped.extend(left_out.into_iter().map(Dropped::from));
            }
            held = outcome.held.clone();
            let view = ViewChange::new(session, outcome.before, outcome.after, report);
            let mut run = CompactionResult::new(outcome);
            if session.strategy() == Some(Strategy::Handoff) && run.summary.is_some() {
                run.summary_text = session.current_view().await?.handoff_summary().await?;
            }
            (view, run)
        }
        None => {
            let size = session.current_view().await?.measure();
            let view = ViewChange::new(session, size, size, report);
            (view, CompactionResult::none(StopReason::BelowThreshold))
        }
    };
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
    match answer.run.failure {
        Some(failure) if answer.run.stop_reason == StopReason::SummarizerFailed => {
            let text = format!("a summary could not be made: {failure}");
            Err(Failure::new(Kind::Summarizer, text)
                .hint("published summaries stay; run it again to continue")
                .into())
        }
        _ if answer.run.stop_reason == StopReason::Held => {
            let failure = error::held(held.as_ref());
            if answer.run.summaries.total() == 0 {
                return Err(failure.into());
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

async fn print(
    app: &mut App,
    args: &Compact,
    session: &Session,
    answer: &CompactReport,
) -> anyhow::Result<()> {
    let key = session.key().as_str();
    app.out.line(&format!("session  {key}"))?;
    app.out
        .line(&format!("database {}", session.memory().location()))?;
    if let Some(imported) = &answer.imported {
        app.out.line("")?;
        app.out.text(&imported.table())?;
        app.out.text(&imported.losses())?;
    }
    app.out.line("")?;
    let nothing = answer.run.summaries.total() == 0;
    if nothing
        && matches!(
            answer.run.stop_reason,
            StopReason::NothingEligible | StopReason::Exhausted
        )
    {
        app.out.line("Nothing is left to do. The state is:")?;
    }
    let log_tokens = session.info().await?.conversation.tokens;
    let row = |name: &str, tokens: u64| {
        let of = percent(tokens, log_tokens);
        vec![name.to_owned(), number(tokens), "tokens".to_owned(), of]
    };
    app.out.text(&table(&[
        row("whole log", log_tokens),
        row("before", answer.view.before.tokens),
        row("after", answer.view.after.tokens),
    ]))?;
    app.out.line(&format!(
        "{} in {}; {} summaries made; {}",
        count(answer.view.before.messages, "message", "messages"),
        count(answer.view.after.spans, "span", "spans"),
        answer.run.summaries.text(),
        why(answer.run.stop_reason),
    ))?;
    answer.view.verify.print(app)?;
    answer.spent.print_spent(app)?;
    if let Some(dropped) = &answer.dropped {
        app.out.line("")?;
        dropped::print(app, key, dropped)?;
    }
    if let Some(text) = &answer.run.summary_text {
        app.out.line("")?;
        app.out.line("The handoff's summary:")?;
        let lines = text.lines().map(|line| format!("  {line}\n"));
        app.out.text(&lines.collect::<String>())?;
    }
    app.out.line("")?;
    let tree = show::tree(session).await?;
    app.out.text(&tree)?;
    app.out.line("")?;
    if let Some(state) = session.current_view().await?.state(STATE).await? {
        app.out.line("State:")?;
        let lines = state.lines().map(|line| format!("  {line}\n"));
        app.out.text(&lines.collect::<String>())?;
        app.out.line("")?;
    }
    match session.assemble(Budget::tokens(args.budget)).await {
        Ok(context) => app.out.line(&show::context(&context))?,
        Err(error) if matches!(error.kind(), ErrorKind::BudgetTooSmall { .. }) => {
            app.out.line(&format!("no context: {error}"))?;
        }
        Err(error) => return Err(error.into()),
    }
    app.out.line("")?;
    app.out.line("To go on:")?;
    let context = context_command(app, key, args);
    app.out.line(&format!("  {context}"))?;
    let redactor = Redactor::of_secrets()?;
    let view = session.current_view().await?;
    for (command, about) in show::next_commands(&view, &redactor).await? {
        let command = app.command(&[command], &[key, &about]);
        app.out.line(&format!("  {command}"))?;
    }
    Ok(())
}

/// Returns the command that prints the context.
fn context_command(app: &App, key: &str, args: &Compact) -> String {
    app.command(&["context", "--budget", &args.budget.to_string()], &[key])
}

fn why(stop: StopReason) -> &'static str {
    match stop {
        StopReason::NothingEligible => "no other messages are old enough to compact",
        StopReason::PassesDone => "both passes are done, more may be possible",
        StopReason::IterationCap => "the policy's number of passes was reached",
        StopReason::NoProgress => "a pass had no effect",
        StopReason::SummarizerFailed => "the summarizer failed",
        StopReason::LostRace => "another process compacted at the same time",
        StopReason::Held => "another process works on the rest",
        StopReason::Exhausted => "no span can be made shorter",
        StopReason::WaitsForModel => "summaries of summaries wait for the model",
        StopReason::Cancelled => "it was stopped",
        StopReason::BelowThreshold => "the threshold is not reached",
        _ => "it stopped",
    }
}

/// Opens the session of a file for a dry run: the stored session, or a session that is imported into RAM only.
async fn open_for_dry_run(
    app: &App,
    builder: impl Fn() -> Builder,
    transcript: &Transcript,
    file: &str,
) -> anyhow::Result<Session> {
    if app.place()?.exists() {
        let memory = app.open_to_read(builder()).await?;
        if let Some(stored) = memory.session_of(transcript).await? {
            let (session, new) = (stored.session, stored.new_entries);
            if new > 0 {
                note(&format!(
                    "the plan leaves out {} of the file: import it to plan with them",
                    count(new, "new entry", "new entries")
                ));
            }
            return Ok(session);
        }
    }
    let memory = builder().store(InMemoryStore::new()).open().await?;
    let main = memory.import(transcript).await?.main;
    let main = main.ok_or_else(|| empty(file))?;
    Ok(memory.get_session(main).await?)
}

/// Returns the error for a file that contains no session.
fn empty(file: &str) -> Failure {
    Failure::new(Kind::Empty, format!("{file} is empty"))
}

async fn dry_run(
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
    let outcome = copy
        .compact(CompactRequest {
            mode: args.mode,
            instructions: args.writing.instructions.clone(),
            cancel,
            fits: Some(args.budget),
            ..CompactRequest::default()
        })
        .await?;
    if outcome.stop_reason == StopReason::Cancelled {
        return Err(app.stop.failure().into());
    }
    Ok(Cost::of(copy.memory()))
}
