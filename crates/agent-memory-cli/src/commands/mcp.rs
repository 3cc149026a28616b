//! `mcp`: the retrieval tools for clients of the Model Context Protocol. Stdout carries the protocol alone.

use std::time::Duration;

use agent_memory::retrieval::RetrievalSet;
use agent_memory::retrieval::mcp::{HttpServer, MemoryServer};
use agent_memory::{ConversationFilter, Memory, Session};

use crate::app::App;
use crate::args::Mcp;
use crate::error::{Failure, Kind};
use crate::output::note;
use crate::token::access_token;

pub(crate) async fn run(app: &App, args: &Mcp) -> anyhow::Result<()> {
    let memory = app.open_to_search(&args.vectors.read()?).await?;
    let mut sessions = Vec::new();
    for name in &args.sessions {
        sessions.push(app.session(&memory, name).await?);
    }
    if sessions.is_empty() {
        sessions.push(only(&memory).await?);
    }
    let member = |session: &Session| (session.key().clone(), session.retrieval());
    let mut members = sessions.iter().map(member);
    let (key, first) = members.next().ok_or_else(none)?;
    let set = members.fold(RetrievalSet::new(key, first), |set, (key, tools)| {
        set.with(key, tools)
    });
    let server = MemoryServer::new(set)
        .with_reply_tokens(args.reply_tokens)
        .with_time_limit(Duration::from_secs(args.time_limit))
        .with_version(env!("CARGO_PKG_VERSION"));
    let Some(port) = args.http else {
        return Ok(server.serve_stdio().await?);
    };
    let http = HttpServer::bind(server, port, access_token()?).await?;
    note(&format!("serving at {}", http.url()));
    Ok(http.serve().await?)
}

/// The only session of a database.
async fn only(memory: &Memory) -> anyhow::Result<Session> {
    let filter = ConversationFilter::default();
    let page = memory.store().list(&filter, None, 2).await?;
    match page.items.as_slice() {
        [one] => Ok(memory.get_session(one.key.clone()).await?),
        _ => Err(none().into()),
    }
}

fn none() -> Failure {
    let text = "no session is given, and the database does not have exactly one";
    Failure::new(Kind::Ambiguous, text)
        .hint("name those that clients may look into: --session SESSION, as often as needed")
}
