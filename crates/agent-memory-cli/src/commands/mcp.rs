//! `mcp`: serves the retrieval tools to clients of the Model Context Protocol, with `--identity` the tool for identity
//! files, and with `--names` the tools of a vendor. Stdout contains only the protocol.

use std::time::Duration;

use agent_memory::context::IdentityFiles;
use agent_memory::retrieval::mcp::{HttpServer, MemoryServer};
use agent_memory::retrieval::{Notes, RetrievalSet, ToolNames};
use agent_memory::store::{ConversationFilter, ConversationPatch, Origin, read_conversations};
use agent_memory::{Memory, Session, model::ConversationId};

use crate::app::App;
use crate::args::{Mcp, Names};
use crate::error::{Failure, Kind};
use crate::output::note;
use crate::scope::NOTES;
use crate::token::access_token;

pub(crate) async fn run(app: &App, args: &Mcp) -> anyhow::Result<()> {
    let table = args.vectors.read()?;
    let memory = match args.names {
        Some(_) => app.open_to_index(&table).await?,
        None => app.open_to_search(&table).await?,
    };
    let sessions = app
        .sessions_in_scope(&memory, &args.sessions, args.project.as_deref())
        .await?;
    let mut sessions = sessions.into_iter();
    let first = sessions.next().ok_or_else(|| none(app))?;
    let files = identity(args);
    let named = named(args, &memory).await?;
    let tools = |session: &Session| {
        let mut tools = session.retrieval();
        if let Some(files) = &files {
            tools = tools.with_identity(files.clone());
        }
        if let Some((names, notes)) = &named {
            tools = tools.with_names(*names, notes.clone());
        }
        tools
    };
    let mut ids = vec![first.id()];
    let mut set = RetrievalSet::new(first.key().clone(), tools(&first));
    for session in sessions {
        ids.push(session.id());
        set = set.with(session.key().clone(), tools(&session));
    }
    if args.names == Some(Names::Codex) {
        set = with_agents(set, &memory, ids).await?;
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

/// Returns the names of the tools and their notes, for which it creates the session if needed; `None` without names.
async fn named(args: &Mcp, memory: &Memory) -> anyhow::Result<Option<(ToolNames, Notes)>> {
    let names = match args.names {
        Some(Names::Codex) => ToolNames::Codex,
        Some(Names::Anthropic) => ToolNames::Anthropic,
        None => return Ok(None),
    };
    let key = match args.notes.as_deref() {
        None | Some("") => NOTES.to_owned(),
        Some(name) => format!("{NOTES}/{name}"),
    };
    let session = memory.session(key).await?;
    // An archived session is in no list, and no compaction without a name reads it.
    if !session.info().await?.conversation.archived {
        let patch = ConversationPatch {
            archived: Some(true),
            ..ConversationPatch::default()
        };
        session.update(&patch).await?;
    }
    Ok(Some((names, Notes::new(&session.retrieval()))))
}

/// Adds the sub-agents of these sessions.
async fn with_agents(
    mut set: RetrievalSet,
    memory: &Memory,
    mut ids: Vec<ConversationId>,
) -> anyhow::Result<RetrievalSet> {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    // A parent comes before its sub-agents.
    for one in read_conversations(&**memory.store(), &filter).await? {
        if let Origin::Spawn { parent, .. } = one.origin
            && ids.contains(&parent)
            && !ids.contains(&one.id)
        {
            ids.push(one.id);
            let agent = memory.get_session(one.key).await?;
            set = set.with_agent(agent.key().clone(), agent.retrieval());
        }
    }
    Ok(set)
}

/// Returns the error for a project without sessions.
fn none(app: &App) -> Failure {
    let text = "the database has no session of this project";
    Failure::new(Kind::NotFound, text).hint(format!(
        "start it in the project's folder, or name sessions with --session; {} lists all",
        app.command(&["sessions"], &[])
    ))
}
