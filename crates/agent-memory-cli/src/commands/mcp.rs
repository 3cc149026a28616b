//! `mcp`: serves the retrieval tools to clients of the Model Context Protocol, with `--identity` the tool for identity
//! files, and with `--names` the tools of a vendor. Stdout contains only the protocol.

use std::sync::Arc;
use std::time::Duration;

use agent_memory::context::IdentityFiles;
use agent_memory::retrieval::mcp::{HttpServer, MemoryServer, ToolSource};
use agent_memory::retrieval::{Notes, RetrievalSet, ToolNames};
use agent_memory::store::{ConversationFilter, ConversationPatch, Origin, read_conversations};
use agent_memory::{Memory, Session, model::ConversationId};

use async_trait::async_trait;

use crate::app::App;
use crate::args::{Mcp, Names};
use crate::output::note;
use crate::progress::Progress;
use crate::scope::{NOTES, Project};
use crate::token::{access_token, random_bytes};

/// The sessions that clients may see.
#[derive(Debug)]
struct Sessions {
    memory: Memory,
    /// Names on the command line, if there are any. The project is not looked at then.
    named: Vec<Session>,
    project: Project,
    files: Option<IdentityFiles>,
    /// Names of the tools, the session of their notes, and the notes, which remember the part of it that was read.
    names: Option<(ToolNames, Session, Notes)>,
}

impl Sessions {
    async fn set(&self) -> anyhow::Result<RetrievalSet> {
        let sessions = match self.named.is_empty() {
            true => self.project.open_sessions(&self.memory).await?,
            false => self.named.clone(),
        };
        let mut set = RetrievalSet::default();
        if self.named.is_empty() {
            set = set.with_default();
        }
        let tools = |session: &Session| {
            let mut tools = session.retrieval();
            if let Some(files) = &self.files {
                tools = tools.with_identity(files.clone());
            }
            if let Some((names, _, notes)) = &self.names {
                tools = tools.with_names(*names, notes.clone());
            }
            tools
        };
        for session in &sessions {
            set = set.with(session.key().clone(), tools(session));
        }
        // Notes can be written before the first session was recorded.
        if let (true, Some((_, own, _))) = (sessions.is_empty(), &self.names) {
            set = set.with(own.key().clone(), tools(own));
        }
        if matches!(self.names, Some((ToolNames::Codex, ..))) {
            let ids = sessions.iter().map(Session::id).collect();
            set = with_agents(set, &self.memory, ids).await?;
        }
        Ok(set)
    }
}

#[async_trait]
impl ToolSource for Sessions {
    async fn tools(&self) -> Result<RetrievalSet, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.set().await?)
    }
}

pub(crate) async fn run(app: &App, args: &Mcp) -> anyhow::Result<()> {
    let table = args.vectors.read()?;
    let is_new = args.sessions.is_empty() && !app.place()?.exists();
    let memory = match (args.names, is_new) {
        // An agent starts its servers before it records its first session.
        (_, true) => {
            let progress = Arc::new(Progress::new(true));
            app.open_for_writing(&progress, |_| table.builder()).await?
        }
        (Some(_), false) => app.open_to_index(&table).await?,
        (None, false) => app.open_to_search(&table).await?,
    };
    let mut named = Vec::new();
    for name in &args.sessions {
        named.push(app.session_in_use(&memory, name).await?);
    }
    let project = app.project(args.project.as_deref())?;
    let sessions = Sessions {
        named,
        files: identity(args),
        names: names(args, &memory, &project).await?,
        project,
        memory,
    };
    let server = MemoryServer::new(sessions.set().await?)
        .with_source(sessions)
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

/// Returns the names of the tools the session of their notes, which it creates if needed, and the notes; `None` without names.
async fn names(
    args: &Mcp,
    memory: &Memory,
    project: &Project,
) -> anyhow::Result<Option<(ToolNames, Session, Notes)>> {
    let names = match args.names {
        Some(Names::Codex) => ToolNames::Codex,
        Some(Names::Anthropic) => ToolNames::Anthropic,
        None => return Ok(None),
    };
    let key = match (args.notes.as_deref(), project.folder()) {
        (Some(name), _) if !name.is_empty() => format!("{NOTES}/{name}"),
        (_, Some(folder)) => format!("{NOTES} {}", folder.display()),
        (_, None) => NOTES.to_owned(),
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
    let notes = Notes::new(&session.retrieval(), random_bytes()?);
    Ok(Some((names, session, notes)))
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
