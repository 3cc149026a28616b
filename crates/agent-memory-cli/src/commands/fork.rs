//! `fork`: creates a session that shares another session's log up to a message.

use agent_memory::Seq;
use serde::Serialize;

use super::sessions::{ViewSize, views};
use crate::app::App;
use crate::args::Fork;
use crate::output::{count, number};
use crate::scope;

#[derive(Debug, Serialize)]
struct ForkReport {
    session: String,
    parent: String,
    at: u32,
    created: bool,
    messages: u64,
    tokens: u64,
    views: Vec<ViewSize>,
}

pub(crate) async fn run(app: &mut App, args: &Fork) -> anyhow::Result<()> {
    let memory = app.open_to_change().await?;
    let parent = app.session(&memory, &args.session).await?;
    let key = match &args.name {
        Some(name) => name.clone(),
        None => format!("{}@{}", parent.key(), args.at),
    };
    let created = memory.find_session(key.as_str()).await?.is_none();
    let session = parent.fork(Seq(args.at), key.as_str()).await?;
    // It belongs to the project of its parent.
    if let Some(folder) = scope::folder(&parent.info().await?.conversation) {
        scope::set_folder(&session, &folder).await?;
    }
    let info = session.info().await?;
    let answer = ForkReport {
        session: session.key().to_string(),
        parent: parent.key().to_string(),
        at: args.at,
        created,
        messages: u64::from(info.conversation.head.0),
        tokens: info.conversation.tokens,
        views: views(&info),
    };
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let how = if created { "is now" } else { "is already" };
    app.out.line(&format!(
        "{} {how} a fork of {} at {}: {}, {}",
        answer.session,
        answer.parent,
        answer.at,
        count(answer.messages, "entry", "entries"),
        count(answer.tokens, "token", "tokens"),
    ))?;
    for view in &answer.views {
        app.out.line(&format!(
            "view {} version {}: {} tokens in {}",
            view.name,
            view.version,
            number(view.tokens),
            count(view.spans, "span", "spans"),
        ))?;
    }
    let next = app.command(&["context"], &[session.key().as_str()]);
    Ok(app.out.line(&format!("see it: {next}"))?)
}
