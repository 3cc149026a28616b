//! Finds the session of a request for a compaction, and stores the request's new items in it.
//!
//! An item's id is a hash over its content and the items before it. A request thus continues the session that has its
//! beginning, and becomes a fork if it leaves the session's course, by the same placement as any transcript.

use std::sync::atomic::Ordering;

use agent_memory::model::{Accounting as _, Clock as _, LogEntry, SystemClock};
use agent_memory::providers::responses;
use agent_memory::transcripts::{Origin, SessionBuilder, Transcript};
use agent_memory::{Message, Part, RawJson, Role, Seq, Session, SessionKey};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pointer::{Beginning, Pointer, content};
use super::refusal::Refusal;
use super::server::Server;

/// Name of the format of requests, and the beginning of the names of their sessions.
const FORMAT: &str = "responses";

/// A request. Fields that only a model needs are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Request {
    /// Returned in the answer. No model is called.
    pub(super) model: Option<String>,
    /// A text, or the items of the conversation.
    input: Option<Value>,
    /// Key of the session, if the session has most of the input. Otherwise the input is another conversation.
    prompt_cache_key: Option<String>,
    /// Id of an earlier answer of this server, which the input follows.
    pub(super) previous_response_id: Option<String>,
    /// Whether the answer is a stream of events.
    pub(super) stream: Option<bool>,
}

impl Request {
    /// Takes the items, and whether the last one was a trigger, which is no part of the conversation.
    pub(super) fn take_items(&mut self) -> Result<(Vec<Value>, bool), Refusal> {
        let mut items = match self.input.take() {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => {
                vec![json!({"type": "message", "role": "user", "content": text})]
            }
            Some(Value::Array(items)) => items,
            Some(_) => {
                return Err(Refusal::invalid(
                    "input is neither a text nor a list of items",
                ));
            }
        };
        let is_trigger =
            |item: &Value| item.get("type").and_then(Value::as_str) == Some("compaction_trigger");
        let has_trigger = items.pop_if(|last| is_trigger(last)).is_some();
        if items.iter().any(is_trigger) {
            return Err(Refusal::invalid(
                "the compaction_trigger item must be the last item, and the only one",
            ));
        }
        Ok((items, has_trigger))
    }
}

/// The session of a request.
pub(super) struct Placed {
    pub(super) session: Session,
    /// Position of the request's last item.
    pub(super) last: Seq,
    /// Cost of the request's items, in tokens.
    pub(super) input: u64,
    /// The part of the session that was read already.
    pub(super) beginning: Option<Beginning>,
}

/// Messages of a request, and the place in a log that they follow.
#[derive(Default)]
struct Course {
    /// Key of the session, if the request names it.
    key: Option<String>,
    /// The entries that the messages follow. Without any, the messages are a log's beginning.
    beginning: Option<Beginning>,
    messages: Vec<Message>,
}

impl Course {
    /// Returns the entry that the messages follow.
    fn after(&self) -> Option<&LogEntry> {
        self.beginning.as_ref()?.last.as_ref()
    }
}

/// Stores the items of a request. They have no trigger.
pub(super) async fn place(
    server: &Server,
    request: &Request,
    items: &[Value],
) -> Result<Placed, Refusal> {
    let _placing = server.placing.lock().await;
    let course = course(server, request, items).await?;
    let (log, last) = log(&course)?;
    let mut transcript = Transcript::new(FORMAT, vec![log]);
    let key = match &course.key {
        Some(key) => key.clone(),
        None => unnamed(server, &mut transcript, last.as_deref()).await?,
    };
    let session = server.visible.open(&server.memory, &key).await?;
    for log in &mut transcript.sessions {
        (log.key, log.named) = (session.key().clone(), true);
    }
    let report = server.memory.import(&transcript).await?;
    let stored: u64 = report.sessions.iter().map(|one| one.inserted).sum();
    server.metrics.stored.fetch_add(stored, Ordering::Relaxed);
    let session = match report.main {
        Some(main) => server.memory.get_session(main).await?,
        None => session,
    };
    let found = match last {
        Some(last) => server
            .memory
            .store()
            .find(session.id(), &[last])
            .await?
            .pop()
            .flatten(),
        None => None,
    };
    let last = match (found, course.messages.is_empty(), course.after()) {
        (Some(found), ..) => found,
        (None, true, Some(after)) => after.seq,
        _ => session.info().await?.conversation.head,
    };
    let accounting = session.accounting();
    let input = items
        .iter()
        .map(|item| accounting.message(&read(item)))
        .sum();
    // A fork may share less than that.
    let beginning = course
        .beginning
        .filter(|read| read.last.as_ref().is_none_or(|read| read.seq <= last))
        .filter(|_| session.key().as_str() == key);
    Ok(Placed {
        session,
        last,
        input,
        beginning,
    })
}

/// Returns the messages that a request adds, and their place: after the newest pointer in it, after the response that
/// it names, or in the session that it names.
async fn course(server: &Server, request: &Request, items: &[Value]) -> Result<Course, Refusal> {
    for (at, item) in items.iter().enumerate().rev() {
        let Some((pointer, _)) = Pointer::of_item(item) else {
            continue;
        };
        let (before, behind) = items.split_at(at);
        if let Some(course) = behind_pointer(
            server,
            &pointer,
            before,
            behind.get(1..).unwrap_or_default(),
        )
        .await?
        {
            return Ok(course);
        }
    }
    let named = request.previous_response_id.as_deref();
    if let Some(pointer) = named.and_then(Pointer::of_response)
        && let Some(course) = behind_pointer(server, &pointer, &[], items).await?
    {
        return Ok(course);
    }
    let key = match request
        .prompt_cache_key
        .as_deref()
        .filter(|key| !key.is_empty())
    {
        Some(key) => Some(key.to_owned()),
        None => server.visible.only().map(SessionKey::to_string),
    };
    let messages: Vec<Message> = items.iter().map(read).collect();
    let mut course = Course {
        key,
        messages,
        ..Course::default()
    };
    if let Some(key) = &course.key
        && let Some(session) = server.visible.find(&server.memory, key).await?
        && let Some(first) = course.messages.first()
    {
        let first = id(None, first);
        let known = server.memory.store().find(session.id(), &[first]).await?;
        if known.iter().all(Option::is_none) {
            // The session began in another way, such as by an import.
            let head = session.info().await?.conversation.head;
            let mut beginning = Beginning::read(&session, head, true).await?;
            let all = said(&course.messages);
            let messages = beginning.unknown(course.messages.clone());
            if beginning.last.is_none()
                || said(&messages) * 2 < all
                || request.prompt_cache_key.is_none()
            {
                course.messages = messages;
                course.beginning = Some(beginning);
            } else {
                // Clients give the same key to different conversations with the same instructions.
                course.key = None;
            }
        }
    }
    Ok(course)
}

/// Returns the number of messages without instructions.
fn said(messages: &[Message]) -> usize {
    let is_said = |message: &&Message| message.role != Role::System;
    messages.iter().filter(is_said).count()
}

/// Returns the messages around a pointer that its session does not have. `None` if there is no such session, or if it
/// has other messages.
async fn behind_pointer(
    server: &Server,
    pointer: &Pointer,
    before: &[Value],
    behind: &[Value],
) -> Result<Option<Course>, Refusal> {
    let Some(session) = server
        .visible
        .find(&server.memory, &pointer.session)
        .await?
    else {
        return Ok(None);
    };
    if pointer.last > session.info().await?.conversation.head.0 {
        return Ok(None);
    }
    let mut beginning = Beginning::read(&session, Seq(pointer.last), !before.is_empty()).await?;
    if !pointer.names(&beginning) {
        return Ok(None);
    }
    // Older pointers name messages that this one names too. Clients repeat some messages before it.
    let before = before
        .iter()
        .filter(|item| Pointer::of_item(item).is_none());
    let mut messages = beginning.unknown(before.map(read).collect());
    messages.extend(behind.iter().map(read));
    Ok(Some(Course {
        key: Some(pointer.session.clone()),
        beginning: Some(beginning),
        messages,
    }))
}

/// Returns the key of the session that has a transcript's beginning, or of a new one.
async fn unnamed(
    server: &Server,
    transcript: &mut Transcript,
    last: Option<&str>,
) -> Result<String, Refusal> {
    let first = transcript
        .sessions
        .first()
        .and_then(|log| log.messages.first());
    let first = first.and_then(|first| first.external_id.clone());
    let (Some(first), Some(_)) = (first, last) else {
        return Err(Refusal::invalid("the input has no items")
            .hint("send the conversation's items in input"));
    };
    if !server.visible.takes_new() {
        let refusal = Refusal::invalid("the request does not say which session it belongs to");
        return Err(refusal.hint("name it with prompt_cache_key"));
    }
    // Equal conversations of two projects are two sessions.
    let label = Message::user(format!("{first} {}", server.visible.label()));
    let key = format!("{FORMAT}-{}", short(&content(&label).to_string(), 16));
    for log in &mut transcript.sessions {
        (log.key, log.named) = (key.as_str().into(), false);
    }
    if let Some(stored) = server.memory.session_of(transcript).await? {
        return Ok(stored.session.key().to_string());
    }
    let mut free = key.clone();
    let mut number = 2_u32;
    while server.memory.find_session(free.as_str()).await?.is_some() {
        free = format!("{key}-{number}");
        number += 1;
    }
    Ok(free)
}

/// Returns a course as the log of a transcript, and the id of its last message.
fn log(
    course: &Course,
) -> Result<(agent_memory::transcripts::SessionLog, Option<String>), Refusal> {
    let mut log = SessionBuilder::new(Origin::Root);
    let mut last = None;
    if let Some(after) = course.after() {
        let known = after.message.external_id.clone();
        // A message without an id is followed by its position.
        last = Some(
            known
                .clone()
                .unwrap_or_else(|| format!("seq-{}", after.seq)),
        );
        if let Some(id) = known {
            log.push(after.message.clone(), Some(id.clone()), &id);
        }
    }
    let mut own = None;
    for message in &course.messages {
        let id = id(last.as_deref(), message);
        log.push(linked(message, last.as_deref())?, Some(id.clone()), &id);
        last = Some(id.clone());
        own = Some(id);
    }
    let mut log = log.finish(SessionKey::new(course.key.as_deref().unwrap_or_default()));
    (log.linked, log.in_use) = (true, true);
    Ok((log, own))
}

/// Returns the id of a message behind another.
fn id(before: Option<&str>, message: &Message) -> String {
    let whole = format!("{} {}", before.unwrap_or_default(), content(message));
    let hash = content(&Message::user(whole)).to_string();
    format!("item-{}", short(&hash, 32))
}

fn short(hash: &str, digits: usize) -> &str {
    hash.get(..digits).unwrap_or(hash)
}

/// Returns a message that names the one before it, and has the current time, because items have none.
fn linked(message: &Message, before: Option<&str>) -> Result<Message, Refusal> {
    let mut message = message.clone();
    let meta = message.meta.as_ref();
    let meta = meta.and_then(|meta| serde_json::from_str::<Value>(meta.as_str()).ok());
    let mut meta = meta.unwrap_or_else(|| json!({}));
    meta["parentId"] = before.into();
    message.meta = Some(RawJson::from_value(&meta)?);
    message.created_at = SystemClock.now();
    Ok(message)
}

/// Reads one item. One that cannot be read is kept as it is.
fn read(item: &Value) -> Message {
    if let Some((pointer, text)) = Pointer::of_item(item) {
        // Its messages are not here, so its text is all that is known of them.
        let about = format!(
            "The summary of another memory's session {}:\n\n{text}",
            pointer.session
        );
        return Message::user(about);
    }
    let read = responses::read(None, std::slice::from_ref(item));
    match read.map(|mut messages| (messages.pop(), messages.len())) {
        Ok((Some(message), 0)) if !message.parts.is_empty() && !message.nests_too_deeply() => {
            message
        }
        _ => Message::new(
            Role::Assistant,
            RawJson::from_value(item).map_or_else(
                |_| vec![Part::text(item.to_string())],
                |raw| vec![Part::Unknown { raw }],
            ),
        ),
    }
}
