//! `mcp`: serves the retrieval tools to clients of the Model Context Protocol, and with `--identity` the tool for
//! identity files. Stdout contains only the protocol.

use std::time::Duration;

use agent_memory::context::IdentityFiles;
use agent_memory::retrieval::RetrievalSet;
use agent_memory::retrieval::mcp::{HttpServer, MemoryServer};
use agent_memory::{Memory, Session, store::ConversationFilter};

use crate::app::App;
use crate::args::Mcp;
use crate::error::{Failure, Kind};
use crate::output::note;
use crate::token::access_token;

pub(crate) async fn run(app: &App, args: &Mcp) -> anyhow::Result<()> {
    let memory = app.open_to_search(&args.vectors.read()?).await?;
    let first = match args.sessions.first() {
        Some(name) => app.session(&memory, name).await?,
        None => only(&memory).await?,
    };
    let files = identity(args);
    let tools = |session: &Session| match &files {
        Some(files) => session.retrieval().with_identity(files.clone()),
        None => session.retrieval(),
    };
    let mut set = RetrievalSet::new(first.key().clone(), tools(&first));
    for name in args.sessions.iter().skip(1) {
        let session = app.session(&memory, name).await?;
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

/// Returns the only session of the database. Fails if there is none or more than one.
async fn only(memory: &Memory) -> anyhow::Result<Session> {
    let filter = ConversationFilter::default();
    let page = memory.store().list(&filter, None, 2).await?;
    match page.items.as_slice() {
        [one] => Ok(memory.get_session(one.key.clone()).await?),
        _ => {
            let text = "no session is given, and the database does not have exactly one";
            let hint =
                "name those that clients may look into: --session SESSION, as often as needed";
            Err(Failure::new(Kind::Ambiguous, text).hint(hint).into())
        }
    }
}
