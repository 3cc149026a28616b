//! The routes, in one table for the router and for the OpenAPI document.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_memory::context::{AssembleRequest, AssemblyPolicy};
use agent_memory::search::SearchStop;
use agent_memory::store::EntryOutcome;
use agent_memory::transcripts::{Formats, PlainLines, ReadOptions};
use agent_memory::{Budget, Message};
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refusal::Refusal;
use super::{Answering, Server, http, openapi, responses};
use crate::app::App;
use crate::commands::context::{self, ContextReport};
use crate::commands::sessions::{SessionList, listed};
use crate::error::from_format;

/// Maximum size of the body of a call that only reads, in bytes.
const SMALL: usize = 4 << 20;

/// Maximum size of the body of a call that stores messages, in bytes. They may have pictures.
const LARGE: usize = 64 << 20;

/// Default budget of a context, in tokens.
const BUDGET: u64 = 32_000;

/// A route: its pattern, its description and its work.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) is_post: bool,
    pub(super) summary: &'static str,
    pub(super) request: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(super) response: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// The retrieval tool that answers.
    pub(super) tool: Option<&'static str>,
    /// Whether the route stores messages or summaries.
    pub(super) writes: bool,
    pub(super) answer: for<'a> fn(Arc<Server>, &'a App, Call) -> Answering<'a>,
}

/// Values of a request.
pub(super) struct Call {
    route: &'static Route,
    key: Option<String>,
    query: HashMap<String, String>,
    pub(super) body: Vec<u8>,
    pub(super) stop: SearchStop,
}

/// Body of a successful answer.
pub(super) struct Answer {
    kind: &'static str,
    body: String,
}

impl Answer {
    pub(super) fn json(value: &impl Serialize) -> Result<Self, Refusal> {
        let body = serde_json::to_string(value).map_err(anyhow::Error::from)?;
        Ok(Self {
            kind: "application/json",
            body,
        })
    }

    /// Creates an answer of server-sent events.
    pub(super) fn events(body: String) -> Self {
        let kind = "text/event-stream";
        Self { kind, body }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (headers, self.body).into_response()
    }
}

const fn tool(path: &'static str, name: &'static str, summary: &'static str) -> Route {
    Route {
        path,
        is_post: true,
        summary,
        request: None,
        response: None,
        tool: Some(name),
        writes: false,
        answer: |server, _, call| Box::pin(call_tool(server, call)),
    }
}

const METRICS: &str = "/metrics";
const DOCUMENT: &str = "/openapi.json";

pub(super) static ROUTES: [Route; 12] = [
    Route {
        path: "/v1/responses",
        is_post: true,
        summary: "Compacts a conversation whose last input item is a compaction_trigger. There is no model: other requests fail",
        request: Some(|schemas| schemas.subschema_for::<responses::Request>()),
        response: None,
        tool: None,
        writes: true,
        answer: |server, app, call| Box::pin(responses::respond(server, app, call)),
    },
    Route {
        path: "/v1/responses/compact",
        is_post: true,
        summary: "Stores a conversation's new items, and returns one item in place of all of them",
        request: Some(|schemas| schemas.subschema_for::<responses::Request>()),
        response: None,
        tool: None,
        writes: true,
        answer: |server, app, call| Box::pin(responses::compact(server, app, call)),
    },
    Route {
        path: "/v1/sessions",
        is_post: false,
        summary: "Lists the sessions",
        request: None,
        response: Some(|schemas| schemas.subschema_for::<SessionList>()),
        tool: None,
        writes: false,
        answer: |server, _, _| Box::pin(list(server)),
    },
    Route {
        path: "/v1/sessions/{key}/messages",
        is_post: true,
        summary: "Stores messages. One with a known external_id is not stored again",
        request: Some(|schemas| schemas.subschema_for::<NewMessages>()),
        response: Some(|schemas| schemas.subschema_for::<Stored>()),
        tool: None,
        writes: true,
        answer: |server, _, call| Box::pin(store(server, call)),
    },
    Route {
        path: "/v1/sessions/{key}/context",
        is_post: false,
        summary: "Assembles the context for a model, within a budget of tokens",
        request: None,
        response: Some(|schemas| schemas.subschema_for::<ContextReport<'static>>()),
        tool: None,
        writes: false,
        answer: |server, _, call| Box::pin(assemble(server, call)),
    },
    tool(
        "/v1/sessions/{key}/grep",
        "memory_grep",
        "Searches messages and summaries",
    ),
    tool(
        "/v1/sessions/{key}/recall",
        "memory_recall",
        "Returns the best passages about something",
    ),
    tool(
        "/v1/sessions/{key}/expand",
        "memory_expand",
        "Returns messages word for word",
    ),
    tool(
        "/v1/sessions/{key}/files",
        "memory_files",
        "Lists reads and changes of files, and commands",
    ),
    tool(
        "/v1/sessions/{key}/describe",
        "memory_describe",
        "Shows the details of a summary",
    ),
    Route {
        path: METRICS,
        is_post: false,
        summary: "Returns counts of requests, in the text format of Prometheus",
        request: None,
        response: None,
        tool: None,
        writes: false,
        answer: |server, _, _| Box::pin(async move { Ok(metrics(&server)) }),
    },
    Route {
        path: DOCUMENT,
        is_post: false,
        summary: "Returns this document",
        request: None,
        response: None,
        tool: None,
        writes: false,
        answer: |_, _, _| Box::pin(async { Answer::json(&openapi::document()) }),
    },
];

/// Returns the pattern in the table that equals a path.
pub(super) fn pattern(path: &str) -> Option<&'static str> {
    ROUTES
        .iter()
        .map(|route| route.path)
        .find(|known| *known == path)
}

pub(super) fn router() -> Router<Arc<Server>> {
    let mut router = Router::new();
    for route in &ROUTES {
        let answer = move |State(server): State<Arc<Server>>,
                           path: Result<Path<HashMap<String, String>>, PathRejection>,
                           query: Result<Query<HashMap<String, String>>, QueryRejection>,
                           request: Request| async move {
            let path = path.map_err(|error| Refusal::invalid(error.body_text()))?;
            let query = query.map_err(|error| Refusal::invalid(error.body_text()))?;
            handle(server, route, path.0, query.0, request).await
        };
        router = router.route(
            route.path,
            match route.is_post {
                true => post(answer),
                false => get(answer),
            },
        );
    }
    router
        .method_not_allowed_fallback(async || {
            let text = "the route has another method";
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text)
        })
        .fallback(async || {
            let refusal = Refusal::new(StatusCode::NOT_FOUND, "no_route", "there is no such route");
            refusal.hint("/openapi.json lists the routes; the / in a session's key is written %2F")
        })
}

async fn handle(
    server: Arc<Server>,
    route: &'static Route,
    mut path: HashMap<String, String>,
    query: HashMap<String, String>,
    request: Request,
) -> Result<Response, Refusal> {
    let most = match route.writes {
        true => LARGE,
        false => SMALL,
    };
    let call = Call {
        route,
        key: path.remove("key"),
        query,
        body: http::body(request, most).await?,
        stop: SearchStop::new(|| false),
    };
    // Counts are answered even if all threads are in use.
    if route.path == METRICS {
        return Ok(metrics(&server).into_response());
    }
    Ok(server.answer(route, call).await?.into_response())
}

fn metrics(server: &Server) -> Answer {
    Answer {
        kind: "text/plain; version=0.0.4",
        body: server.metrics.text(),
    }
}

impl Call {
    fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }
}

async fn list(server: Arc<Server>) -> Result<Answer, Refusal> {
    let all = server.visible.all(&server.memory).await?;
    let sessions = all.iter().map(|info| listed(info, &all)).collect();
    Answer::json(&SessionList { sessions })
}

/// Messages to store.
#[derive(Debug, Deserialize, JsonSchema)]
struct NewMessages {
    /// Messages in the form of `agent-memory export`, such as {"role":"user","content":"…","external_id":"…"}.
    messages: Vec<Value>,
}

/// Report of storing messages.
#[derive(Debug, Serialize, JsonSchema)]
struct Stored {
    session: String,
    /// Position of the log's last entry.
    head: u32,
    inserted: usize,
    duplicates: usize,
    /// Number of messages that were not stored because a different one has their external id.
    conflicts: usize,
    outcomes: Vec<Outcome>,
}

/// Outcome of one message.
#[derive(Debug, Serialize, JsonSchema)]
struct Outcome {
    /// inserted, duplicate or conflict.
    outcome: &'static str,
    /// Position of the message in the log, or of the message that has its external id.
    seq: u32,
}

async fn store(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let given: NewMessages = serde_json::from_slice(&call.body)?;
    let messages: Result<Vec<Message>, Refusal> = given.messages.into_iter().map(read).collect();
    let messages = messages?;
    let session = server.visible.open(&server.memory, call.key()).await?;
    let session = session.ok_or_else(|| Refusal::no_session(call.key()))?;
    let report = session.ingest_batch(messages).await?;
    server
        .metrics
        .stored
        .fetch_add(report.inserted() as u64, Ordering::Relaxed);
    let outcome = |outcome: &EntryOutcome| match outcome {
        EntryOutcome::Inserted(seq) => ("inserted", seq.0),
        EntryOutcome::Duplicate(seq) => ("duplicate", seq.0),
        EntryOutcome::Conflict(seq) => ("conflict", seq.0),
    };
    let outcomes = report.outcomes.iter().map(outcome);
    Answer::json(&Stored {
        session: session.key().to_string(),
        head: report.head.0,
        inserted: report.inserted(),
        duplicates: report.duplicates(),
        conflicts: report.conflicts(),
        outcomes: outcomes
            .map(|(outcome, seq)| Outcome { outcome, seq })
            .collect(),
    })
}

/// Reads a message as a line of an export. One without an id gets none.
fn read(mut given: Value) -> Result<Message, Refusal> {
    let needed =
        "a message is an object with a role (system, user, assistant or tool) and content or parts";
    let has_id = given.get("external_id").is_some_and(Value::is_string);
    let fields = given.as_object_mut().filter(|fields| {
        let role = fields.get("role").and_then(Value::as_str);
        role.is_some_and(|role| ["system", "user", "assistant", "tool"].contains(&role))
    });
    // The path names the session.
    fields
        .ok_or_else(|| Refusal::invalid(needed))?
        .remove("session");
    let formats = Formats::empty().with(PlainLines::new());
    let transcript = formats.read(given.to_string().as_bytes(), &ReadOptions::default());
    let transcript =
        transcript.map_err(|error| Refusal::from(from_format("the message", &error)))?;
    let mut sessions = transcript.sessions.into_iter();
    let message = sessions.next().and_then(|mut log| log.messages.pop());
    let mut message = message.ok_or_else(|| Refusal::invalid(needed))?;
    message.external_id = message.external_id.filter(|_| has_id);
    Ok(message)
}

async fn assemble(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let budget = match call.query.get("budget") {
        None => BUDGET,
        Some(text) => text
            .parse()
            .map_err(|_| Refusal::invalid("budget is a number of tokens"))?,
    };
    let session = server.session(call.key()).await?;
    let view = session.current_view().await?;
    let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
    let context = view.assemble(request).await?;
    Answer::json(&context::answer(&session, &context))
}

async fn call_tool(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let session = server.session(call.key()).await?;
    let arguments = std::str::from_utf8(&call.body);
    let arguments = arguments.map_err(|_| Refusal::invalid("the body is not UTF-8"))?;
    let arguments = match arguments.trim() {
        "" => "{}",
        arguments => arguments,
    };
    let tools = session.retrieval().with_stop(call.stop.clone());
    let answer = tools
        .call(call.route.tool.unwrap_or_default(), arguments)
        .await;
    match answer.is_error {
        true => Err(Refusal::of_tool(&answer)),
        false => Answer::json(&answer.json),
    }
}
