//! `mcp`: serves the retrieval tools to clients of the Model Context Protocol, and with `--identity` the tool for
//! identity files. Stdout contains only the protocol.

use std::time::Duration;

use agent_memory::Session;
use agent_memory::context::IdentityFiles;
use agent_memory::retrieval::RetrievalSet;
use agent_memory::retrieval::mcp::{HttpServer, MemoryServer};

use crate::app::App;
use crate::args::Mcp;
use crate::error::{Failure, Kind};
use crate::output::note;
use crate::token::access_token;

pub(crate) async fn run(app: &App, args: &Mcp) -> anyhow::Result<()> {
    let memory = app.open_to_search(&args.vectors.read()?).await?;
    let sessions = app
        .sessions_in_scope(&memory, &args.sessions, args.project.as_deref())
        .await?;
    let mut sessions = sessions.into_iter();
    let first = sessions.next().ok_or_else(|| none(app))?;
    let files = identity(args);
    let tools = |session: &Session| match &files {
        Some(files) => session.retrieval().with_identity(files.clone()),
        None => session.retrieval(),
    };
    let mut set = RetrievalSet::new(first.key().clone(), tools(&first));
    for session in sessions {
        set = set.with(session.key().clone(), tools(&session));
    }
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

/// Returns the identity files that clients may edit; `None` if none are given.
fn identity(args: &Mcp) -> Option<IdentityFiles> {
    let files = IdentityFiles::new(args.identity.as_ref()?);
    Some(match &args.project {
        Some(project) => files.with_project(project),
        None => files,
    })
}

/// Returns the error for a project without sessions.
fn none(app: &App) -> Failure {
    let text = "the database has no session of this project";
    Failure::new(Kind::NotFound, text).hint(format!(
        "start it in the project's folder, or name sessions with --session; {} lists all",
        app.command(&["sessions"], &[])
    ))
}
