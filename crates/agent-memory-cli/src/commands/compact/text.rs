//! The result of `compact` as text.

use agent_memory::compaction::StopReason;
use agent_memory::{Budget, ErrorKind, Session};

use super::report::CompactReport;
use crate::app::App;
use crate::args::Compact;
use crate::commands::{dropped, show};
use crate::output::{count, number, percent, table};
use crate::redact::Redactor;

/// Maximum size of the state, in tokens.
const STATE: u64 = 600;

pub(super) async fn print(
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
    print_commands(app, args, session).await
}

/// Prints the next commands for the session.
async fn print_commands(app: &mut App, args: &Compact, session: &Session) -> anyhow::Result<()> {
    let key = session.key().as_str();
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
