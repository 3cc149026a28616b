//! `sessions`: lists the sessions.

use agent_memory::store::{Conversation, ConversationFilter, SessionInfo, ViewInfo};
use agent_memory::{Memory, Seq};
use serde::Serialize;

use crate::app::App;
use crate::args::Sessions;
use crate::output::{number, table};

/// A list of sessions as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "serve", derive(schemars::JsonSchema))]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<Listed>,
}

/// A session as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "serve", derive(schemars::JsonSchema))]
pub(crate) struct Listed {
    session: String,
    origin: &'static str,
    parent: Option<String>,
    title: Option<String>,
    channel: Option<String>,
    archived: bool,
    messages: u64,
    tokens: u64,
    views: Vec<ViewSize>,
    /// Time of the conversation's first message. `None` if it is unknown.
    first_at: Option<String>,
    /// Time of the conversation's last message. `None` if it is unknown.
    last_at: Option<String>,
    /// Time at which the session was stored.
    created_at: String,
    /// Time of the last change of the stored session.
    updated_at: String,
}

/// Size and version of a view.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "serve", derive(schemars::JsonSchema))]
pub(crate) struct ViewSize {
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) spans: u64,
    pub(crate) tokens: u64,
}

pub(crate) async fn run(app: &mut App, args: &Sessions) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let mut filter = ConversationFilter::default();
    // A parent may be archived, so archived sessions are read too.
    filter.archived = true;
    let all = memory.sessions(&filter).await?;
    let mut sessions = Vec::new();
    for info in &all {
        if (args.all || !info.conversation.archived) && !is_missing(info, &all) {
            sessions.push(listed(&memory, info, &all).await?);
        }
    }
    if app.json {
        return Ok(app.out.json(&SessionList { sessions })?);
    }
    let header = [
        "session",
        "entries",
        "tokens",
        "compacted to",
        "first",
        "last",
        "changed",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for session in sessions {
        let compacted = match session.views.as_slice() {
            [] => "-".to_owned(),
            views => {
                let view = |view: &ViewSize| format!("{} {}", view.name, number(view.tokens));
                views.iter().map(view).collect::<Vec<_>>().join(", ")
            }
        };
        let changed = session.updated_at.chars().take(19).collect();
        let minute = |time: Option<String>| match time {
            Some(time) => time.chars().take(16).collect(),
            None => "-".to_owned(),
        };
        rows.push(vec![
            session.session,
            number(session.messages),
            number(session.tokens),
            compacted,
            minute(session.first_at),
            minute(session.last_at),
            changed,
        ]);
    }
    Ok(app.out.text(&table(&rows))?)
}

/// Returns whether a session has no entries because only the files of its sub-agents were imported yet.
fn is_missing(info: &SessionInfo, all: &[SessionInfo]) -> bool {
    let own = &info.conversation;
    let mut parents = all
        .iter()
        .filter_map(|other| other.conversation.origin.parent());
    own.head == Seq::NONE && parents.any(|parent| parent == own.id)
}

/// Returns a session as JSON. `all` are the sessions that may have started it.
pub(crate) async fn listed(
    memory: &Memory,
    info: &SessionInfo,
    all: &[SessionInfo],
) -> anyhow::Result<Listed> {
    let conversation = &info.conversation;
    let origin = match conversation.origin {
        agent_memory::store::Origin::Root => "root",
        agent_memory::store::Origin::Fork { .. } => "fork",
        agent_memory::store::Origin::Spawn { .. } => "spawn",
    };
    let parent = conversation.origin.parent().and_then(|id| {
        let found = all.iter().find(|other| other.conversation.id == id);
        found.map(|parent| parent.conversation.key.to_string())
    });
    let (first_at, last_at) = memory.times_of(conversation).await?.unzip();
    Ok(Listed {
        session: conversation.key.to_string(),
        origin,
        parent,
        title: conversation.title.clone(),
        channel: channel(conversation),
        archived: conversation.archived,
        messages: u64::from(conversation.head.0),
        tokens: conversation.tokens,
        views: views(info),
        first_at: first_at.map(|time| time.to_string()),
        last_at: last_at.map(|time| time.to_string()),
        created_at: conversation.created_at.to_string(),
        updated_at: conversation.updated_at.to_string(),
    })
}

/// Returns a session's channel: the field `channel` of its metadata.
pub(crate) fn channel(conversation: &Conversation) -> Option<String> {
    let facts: serde_json::Value =
        serde_json::from_str(conversation.meta.as_ref()?.as_str()).ok()?;
    Some(facts.get("channel")?.as_str()?.to_owned())
}

/// Returns the sizes and versions of a session's views.
pub(crate) fn views(info: &SessionInfo) -> Vec<ViewSize> {
    let view = |view: &ViewInfo| ViewSize {
        name: view.name.to_string(),
        version: view.version.0,
        spans: view.spans,
        tokens: shown(info.conversation.tokens, view.saved),
    };
    info.views.iter().map(view).collect()
}

/// Returns the cost of a view, in tokens: the cost of the log minus the tokens that the view saves.
pub(crate) fn shown(log: u64, saved: i64) -> u64 {
    u64::try_from(i128::from(log) - i128::from(saved)).unwrap_or(0)
}
