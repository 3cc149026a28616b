//! `grep`, `describe` and `expand`: from a summary back to the words.

use agent_memory::retrieval::{ExpandArgs, GrepArgs, Retrieval, RetrievalLimits};
use agent_memory::{SearchScope, Session, SummaryId};

use crate::app::App;
use crate::args::{Describe, Expand, Grep, ScopeArg};
use crate::error::{Failure, Kind};

/// The tools without ceilings: who calls them here is the host.
fn tools(session: &Session) -> Retrieval {
    session.retrieval().with_limits(RetrievalLimits::none())
}

pub(crate) async fn grep(app: &mut App, args: &Grep) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let scope = match args.scope {
        ScopeArg::Messages => SearchScope::Messages,
        ScopeArg::Summaries => SearchScope::Summaries,
        ScopeArg::Both => SearchScope::Both,
    };
    let mut asked = GrepArgs::new(&args.pattern)
        .with_scope(scope)
        .with_limit(args.limit.get());
    if let Some(cursor) = &args.cursor {
        asked = asked.with_cursor(cursor);
    }
    let answer = tools(&session).grep(asked).await?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    app.out.text(&answer.to_text())?;
    let key = session.key().as_str();
    if let Some(cursor) = &answer.cursor {
        let cursor = cursor.to_string();
        let limit = args.limit.to_string();
        let mut options = vec!["grep", "--scope", scope.as_str(), "--limit", &limit];
        options.extend(["--cursor", &cursor]);
        let command = app.command(&options, &[key, &args.pattern]);
        app.out.line(&format!("next: {command}"))?;
    }
    Ok(())
}

pub(crate) async fn describe(app: &mut App, args: &Describe) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let id = SummaryId::new(&args.summary);
    let found = tools(&session).describe(&id).await;
    let answer = found.map_err(|error| not_found(error, &args.summary))?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let text = answer.to_text();
    // Its last line tells a model which tool to call; a person gets the command.
    let text = text.trim_end().rsplit_once('\n').map_or("", |(all, _)| all);
    app.out.text(text)?;
    app.out.line("")?;
    let about = [session.key().as_str(), answer.summary_id.as_str()];
    let command = app.command(&["expand"], &about);
    app.out.line(&format!("expand it: {command}"))?;
    Ok(())
}

pub(crate) async fn expand(app: &mut App, args: &Expand) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let mut asked = ExpandArgs::new(&args.target).with_token_cap(args.cap);
    if let Some(cursor) = &args.cursor {
        asked = asked.with_cursor(cursor);
    }
    let found = tools(&session).expand(asked).await;
    let answer = found.map_err(|error| not_found(error, &args.target))?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    app.out.text(&answer.to_text())?;
    if let Some(cursor) = &answer.cursor {
        let (cap, cursor) = (args.cap.to_string(), cursor.to_string());
        let options = ["expand", "--cap", &cap, "--cursor", &cursor];
        let about = [session.key().as_str(), answer.summary_id.as_str()];
        app.out
            .line(&format!("next: {}", app.command(&options, &about)))?;
    }
    Ok(())
}

/// A summary that is not there, with the commands that find one.
fn not_found(error: agent_memory::retrieval::Error, target: &str) -> anyhow::Error {
    let summary = !target.trim_start().starts_with("message");
    if error.kind() == agent_memory::retrieval::ErrorKind::NotFound && summary {
        return Failure::new(
            Kind::NotFound,
            format!("the session has no summary {target}"),
        )
        .hint("take an id from what `compact`, `context`, `grep` or `describe` print")
        .into();
    }
    error.into()
}
