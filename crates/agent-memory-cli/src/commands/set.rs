//! `set`: sets a session's title, channel and archive flag.

use agent_memory::{
    RawJson,
    store::{Conversation, ConversationPatch},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::sessions::channel;
use crate::app::App;
use crate::args::Set;
use crate::error::{Failure, Kind};

#[derive(Debug, Serialize)]
struct SessionSettings {
    session: String,
    title: Option<String>,
    channel: Option<String>,
    archived: bool,
}

pub(crate) async fn run(app: &mut App, args: &Set) -> anyhow::Result<()> {
    let memory = app.open_to_change().await?;
    let session = app.session(&memory, &args.session).await?;
    let before = session.info().await?.conversation;
    let patch = ConversationPatch {
        title: args.title.clone(),
        archived: match (args.archive, args.unarchive) {
            (false, false) => None,
            (archive, _) => Some(archive),
        },
        meta: match &args.channel {
            None => None,
            Some(channel) => Some(with_channel(&before, channel)?),
        },
    };
    let now = session.update(&patch).await?;
    memory.close().await?;
    let answer = SessionSettings {
        session: now.key.to_string(),
        title: now.title.clone(),
        channel: channel(&now),
        archived: now.archived,
    };
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let archived = if answer.archived { "yes" } else { "no" };
    app.out.line(&format!("session  {}", answer.session))?;
    app.out
        .line(&format!("title    {}", or_none(&answer.title)))?;
    app.out
        .line(&format!("channel  {}", or_none(&answer.channel)))?;
    Ok(app.out.line(&format!("archived {archived}"))?)
}

fn or_none(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("-")
}

/// Returns a session's metadata with the given channel. The other fields stay unchanged.
fn with_channel(conversation: &Conversation, channel: &str) -> anyhow::Result<RawJson> {
    let mut facts = match &conversation.meta {
        None => Map::new(),
        Some(meta) => {
            serde_json::from_str::<Map<String, Value>>(meta.as_str()).map_err(|error| {
                let text = format!(
                    "the metadata of the session {} is not a JSON object: {error}",
                    conversation.key
                );
                Failure::new(Kind::Invalid, text)
                    .hint("replace them with the library's Session::update")
            })?
        }
    };
    facts.insert("channel".to_owned(), channel.into());
    Ok(RawJson::parse(Value::Object(facts).to_string())?)
}
