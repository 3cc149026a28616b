//! `grep`, `recall`, `files`, `describe` and `expand`: search and read messages, including those that summaries
//! replace.

use agent_memory::{
    Retrieval,
    retrieval::{Error, ErrorKind, ExpandArgs, FilesArgs, GrepArgs, RecallArgs, RetrievalLimits},
};
use agent_memory::{Seq, Session, model::SummaryId, search::SearchMode};
use serde::Serialize;

use crate::app::App;
use crate::args::{Describe, Expand, Files, Grep, Recall};
use crate::error::{Failure, Kind};
use crate::table::Table;

/// Returns the retrieval tools of a session without limits on the size of answers, because a person reads them.
fn tools(session: &Session) -> Retrieval {
    session.retrieval().with_limits(RetrievalLimits::none())
}

/// Prints an answer. If the answer is incomplete, also prints the command that continues it.
fn print(
    app: &mut App,
    answer: &impl Serialize,
    text: &str,
    cursor: Option<&str>,
) -> anyhow::Result<()> {
    if app.json {
        return Ok(app.out.json(answer)?);
    }
    app.out.text(text)?;
    if let Some(cursor) = cursor {
        app.out.line(&format!("next: {}", App::again(cursor)))?;
    }
    Ok(())
}

/// Returns the text without its last line. For a model this line names a tool, and a person gets a command instead.
fn for_people(text: &str) -> &str {
    let text = text.trim_end();
    text.rfind('\n')
        .and_then(|end| text.get(..=end))
        .unwrap_or_default()
}

pub(crate) async fn grep(app: &mut App, args: &Grep) -> anyhow::Result<()> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        let text = format!("--from {from} --to {to} is not a range");
        return Err(Failure::new(Kind::Usage, text)
            .hint("give the smaller number first; the first is 1")
            .into());
    }
    let table = match args.mode {
        None | Some(SearchMode::Prose) => args.vectors.read()?,
        Some(_) => Table::default(),
    };
    let memory = app.open_to_search(&table).await?;
    let session = app.session(&memory, &args.session).await?;
    let asked = GrepArgs {
        pattern: args.pattern.clone(),
        mode: args.mode.unwrap_or(SearchMode::Auto),
        smart_case: args.smart_case,
        scope: args.scope,
        roles: args.roles.clone(),
        tools: args.tools.clone(),
        echoes: args.echoes,
        around: args.around,
        corrections: true,
        first: args.from.map(Seq),
        last: args.to.map(Seq),
        since: args.since,
        until: args.until,
        order: args.order,
        limit: args.limit.get(),
        cursor: args.cursor.clone(),
    };
    let answer = tools(&session).grep(asked).await?;
    print(app, &answer, &answer.to_text(), answer.cursor.as_deref())
}

pub(crate) async fn recall(app: &mut App, args: &Recall) -> anyhow::Result<()> {
    let table = match &args.query {
        Some(_) => args.vectors.read()?,
        None => Table::default(),
    };
    let memory = app.open_to_search(&table).await?;
    let session = app.session(&memory, &args.session).await?;
    let asked = RecallArgs {
        query: args.query.clone(),
        turn: args.turn.map(Seq),
        budget: args.budget,
        cursor: args.cursor.clone(),
    };
    let answer = tools(&session).recall(asked).await?;
    let mut text = answer.to_text();
    if let Some(passage) = answer.passages.first() {
        let about = [session.key().as_str(), &passage.pointer()];
        let read = app.command(&["expand"], &about);
        text = format!("{}read the first: {read}\n", for_people(&text));
    }
    print(app, &answer, &text, answer.cursor.as_deref())
}

pub(crate) async fn files(app: &mut App, args: &Files) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let asked = FilesArgs {
        path: args.path.clone(),
        command: args.command.clone(),
        action: args.action,
        limit: args.limit.get(),
        cursor: args.cursor.clone(),
    };
    let answer = tools(&session).files(asked).await?;
    print(app, &answer, &answer.to_text(), answer.cursor.as_deref())
}

pub(crate) async fn describe(app: &mut App, args: &Describe) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let id = SummaryId::new(&args.summary);
    let found = tools(&session).describe(&id).await;
    let answer = found.map_err(|error| not_found(error, &args.summary))?;
    let about = [session.key().as_str(), answer.summary_id.as_str()];
    let expand = app.command(&["expand"], &about);
    let text = answer.to_text();
    print(
        app,
        &answer,
        &format!("{}expand it: {expand}\n", for_people(&text)),
        None,
    )
}

pub(crate) async fn expand(app: &mut App, args: &Expand) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let asked = ExpandArgs {
        summary_id: args.target.clone(),
        token_cap: args.cap,
        cursor: args.cursor.clone(),
    };
    let found = tools(&session).expand(asked).await;
    let answer = found.map_err(|error| not_found(error, &args.target))?;
    print(app, &answer, &answer.to_text(), answer.cursor.as_deref())
}

/// Returns the error for a summary that does not exist, with commands that list summaries.
fn not_found(error: Error, target: &str) -> anyhow::Error {
    let summary = !target.trim_start().starts_with("message");
    if error.kind() == ErrorKind::NotFound && summary {
        return Failure::new(
            Kind::NotFound,
            format!("the session has no summary {target}"),
        )
        .hint(match target.trim().parse::<u32>() {
            Ok(number) => format!("the message [{number}] is message:{number} of `expand`"),
            Err(_) => {
                "take an id from what `compact`, `context`, `grep` or `describe` print".into()
            }
        })
        .into();
    }
    error.into()
}
