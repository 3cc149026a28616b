//! opencode's requests, rewritten for its plugin.
//!
//! opencode sends its whole history with each request. Older messages are replaced by a text that stays the same, byte
//! by byte, until the history has grown so much that it must be cut again. The provider's prompt cache thus stays
//! useful.

use agent_memory::model::ViewVersion;
use agent_memory::{CompactRequest, Memory, Seq, Session};
use serde_json::{Value, json};

use super::answer;
use super::door::{Door, Rewriting};
use super::event::Event;
use super::rendering;
use crate::app::App;
use crate::commands::import;
use crate::scope;

/// The history is cut if it costs more than this number of budgets.
const MOST: u64 = 4;

/// Returns the messages that replace the history. `None` if the history stays.
pub(super) async fn rewrite(
    app: &App,
    memory: &Memory,
    event: &Event,
    budget: u64,
) -> anyhow::Result<Option<Value>> {
    let one =
        |message: &Value| rendering::cost(message.get("parts").map_or(&[], std::slice::from_ref));
    let costs: Vec<u64> = event.messages.iter().map(one).collect();
    let known = match memory.find_session(event.session_id.as_str()).await? {
        Some(session) => {
            let session = session.in_use().await?;
            let erasures = session.info().await?.conversation.erasures;
            let rewriting = Door::of(&session).await?.rewriting().cloned();
            let rewriting = rewriting.filter(|it| it.erasures == erasures);
            rewriting.map(|it| (session, it))
        }
        None => None,
    };
    // A part of the history that the user took back has no cut.
    let known = known.and_then(|(session, it)| Some((index_of(event, &it.first)?, session, it)));
    let rest = known.as_ref().map_or(0, |(at, _, _)| *at);
    let shown = costs.iter().skip(rest).sum::<u64>() + if rest > 0 { budget } else { 0 };
    let is_compacted = known.is_none() && begins_with_compaction(event);
    if shown <= budget.saturating_mul(MOST) && !is_compacted {
        return match known {
            Some((at, session, rewriting)) => Ok(Some(
                answered(app, &session, &rewriting, at, event.messages.len()).await?,
            )),
            None => Ok(None),
        };
    }
    let Some(session) = store(app, memory, event).await? else {
        return Ok(None);
    };
    session.compact(CompactRequest::to_fit(budget)).await?;
    let at = match is_compacted {
        true => Some(0),
        false => cut(event, &costs, budget),
    };
    let Some(at) = at else {
        return Ok(None);
    };
    let Some((first, kept)) = position(&session, event, at).await? else {
        return Ok(None);
    };
    let view = session.current_view().await?;
    let rewriting = Rewriting {
        first,
        kept: kept.0,
        version: view.version().0,
        head: view.snapshot().head.0,
        budget,
        erasures: session.info().await?.conversation.erasures,
    };
    let mut door = Door::of(&session).await?;
    door.set_rewriting(&session, rewriting.clone()).await?;
    Ok(Some(
        answered(app, &session, &rewriting, at, event.messages.len()).await?,
    ))
}

async fn answered(
    app: &App,
    session: &Session,
    rewriting: &Rewriting,
    at: usize,
    end: usize,
) -> anyhow::Result<Value> {
    let view = session.view_at(ViewVersion(rewriting.version)).await?;
    let view = view.up_to(Seq(rewriting.head)).await?;
    let text = rendering::before(app, &view, Seq(rewriting.kept), rewriting.budget).await?;
    let text = answer::marked(&text.unwrap_or_default());
    let mut messages = vec![json!({"role": "user", "text": text})];
    messages.extend((at..end).map(|at| json!({"keep": at})));
    Ok(json!({"messages": messages}))
}

/// Stores the event's messages.
pub(super) async fn store(
    app: &App,
    memory: &Memory,
    event: &Event,
) -> anyhow::Result<Option<Session>> {
    let folder = event.cwd.as_ref().map(|folder| folder.to_string_lossy());
    let info = json!({"id": event.session_id, "directory": folder, "version": ""});
    let whole = json!({"info": info, "messages": event.messages}).to_string();
    let options = import::options(app, None);
    let transcript = import::formats().read(whole.as_bytes(), &options)?;
    let Some(key) = memory.import(&transcript).await?.main else {
        return Ok(None);
    };
    let session = memory.get_session(key).await?;
    if let Some(folder) = &event.cwd {
        scope::set_folder(&session, folder).await?;
    }
    Ok(Some(session))
}

/// Returns the index of the first message that stays: a user's message if the newest messages that fit the budget have
/// one. `None` if there is nothing to cut.
fn cut(event: &Event, costs: &[u64], budget: u64) -> Option<usize> {
    let mut left = budget;
    let mut first = costs.len().checked_sub(1)?;
    for (at, cost) in costs.iter().enumerate().rev() {
        let Some(rest) = left.checked_sub(*cost) else {
            break;
        };
        (left, first) = (rest, at);
    }
    let is_users = |at: &usize| {
        let role = event
            .messages
            .get(*at)
            .and_then(|message| message.pointer("/info/role"));
        role.and_then(Value::as_str) == Some("user")
    };
    let first = (first..costs.len()).find(is_users).unwrap_or(first);
    (first > 0).then_some(first)
}

/// Returns the id of the message at an index, and the position of its first entry. Later messages stand in for one that
/// is no entry.
async fn position(
    session: &Session,
    event: &Event,
    at: usize,
) -> anyhow::Result<Option<(String, Seq)>> {
    let first = event
        .messages
        .get(at)
        .and_then(id)
        .unwrap_or_default()
        .to_owned();
    let ids: Vec<String> = event
        .messages
        .iter()
        .skip(at)
        .filter_map(id)
        .map(str::to_owned)
        .collect();
    let found = session.memory().store().find(session.id(), &ids).await?;
    Ok(found.into_iter().flatten().min().map(|seq| (first, seq)))
}

/// Returns whether opencode's own compaction replaced the older messages. Then its summary may lack the requests.
fn begins_with_compaction(event: &Event) -> bool {
    let parts = event
        .messages
        .first()
        .and_then(|message| message.get("parts")?.as_array());
    let mut parts = parts.into_iter().flatten();
    parts.any(|part| part.get("type").and_then(Value::as_str) == Some("compaction"))
}

fn index_of(event: &Event, first: &str) -> Option<usize> {
    event
        .messages
        .iter()
        .position(|message| id(message) == Some(first))
}

fn id(message: &Value) -> Option<&str> {
    message.pointer("/info/id")?.as_str()
}
