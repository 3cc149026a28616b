//! The routes, in one table for the router and for the OpenAPI document.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agent_memory::search::SearchStop;
use axum::Router;
use axum::body::{HttpBody as _, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::OwnedSemaphorePermit;

use super::refusal::Refusal;
use super::server::{Answer, Call, Route, Server};
use super::{openapi, placing, responses, sessions};
use crate::commands::context::ContextReport;
use crate::commands::sessions::SessionList;

/// Time for the body of a request to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);

/// Maximum size of the body of a call that only reads, in bytes.
const SMALL: usize = 4 << 20;

/// Maximum size of the body of a call that stores messages, in bytes. They may have pictures.
const LARGE: usize = 64 << 20;

/// Maximum size of the bodies of all calls at once, in blocks. The values in a body take several times its bytes.
pub(super) const BLOCKS: usize = 2 * LARGE / BLOCK;

/// Size of a block, in bytes.
const BLOCK: usize = 1 << 10;

const METRICS: &str = "/metrics";

const fn read(path: &'static str, summary: &'static str) -> Route {
    Route {
        path,
        is_post: false,
        summary,
        request: None,
        response: None,
        tool: None,
        writes: false,
        answer: |server, _, _| Box::pin(async move { Ok(metrics(&server)) }),
    }
}

const fn write(path: &'static str, summary: &'static str) -> Route {
    Route {
        is_post: true,
        writes: true,
        request: Some(|schemas| schemas.subschema_for::<placing::Request>()),
        ..read(path, summary)
    }
}

const fn tool(path: &'static str, name: &'static str, summary: &'static str) -> Route {
    Route {
        is_post: true,
        tool: Some(name),
        answer: |server, _, call| Box::pin(sessions::call_tool(server, call)),
        ..read(path, summary)
    }
}

pub(super) static ROUTES: [Route; 12] = [
    Route {
        answer: |server, app, call| Box::pin(responses::respond(server, app, call)),
        ..write(
            "/v1/responses",
            "Compacts a conversation whose last item is a compaction_trigger. Other requests fail: there is no model",
        )
    },
    Route {
        answer: |server, app, call| Box::pin(responses::compact(server, app, call)),
        ..write(
            "/v1/responses/compact",
            "Stores a conversation's new items, and returns one item in place of all of them",
        )
    },
    Route {
        response: Some(|schemas| schemas.subschema_for::<SessionList>()),
        answer: |server, _, _| Box::pin(sessions::list(server)),
        ..read("/v1/sessions", "Lists the sessions")
    },
    Route {
        request: Some(|schemas| schemas.subschema_for::<sessions::NewMessages>()),
        response: Some(|schemas| schemas.subschema_for::<sessions::Stored>()),
        answer: |server, _, call| Box::pin(sessions::store(server, call)),
        ..write(
            "/v1/sessions/{key}/messages",
            "Stores messages. One with a known external_id is not stored again",
        )
    },
    Route {
        response: Some(|schemas| schemas.subschema_for::<ContextReport<'static>>()),
        answer: |server, _, call| Box::pin(sessions::assemble(server, call)),
        ..read(
            "/v1/sessions/{key}/context",
            "Assembles the context for a model, within a budget of tokens",
        )
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
    read(
        METRICS,
        "Returns counts of requests, in the text format of Prometheus",
    ),
    Route {
        answer: |_, _, _| Box::pin(async { Answer::json(&openapi::document(&ROUTES)) }),
        ..read("/openapi.json", "Returns this document")
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
    let (body, _room) = body(&server, request, most).await?;
    let call = Call {
        route,
        key: path.remove("key"),
        query,
        body,
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

/// Returns the body of a request, and its share of the memory for all bodies, for which it waits.
async fn body(
    server: &Server,
    request: Request,
    most: usize,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
    let too_large = || {
        let text = format!("the body cannot be read, or has more than {most} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text)
    };
    let late = || {
        let text = "the body did not arrive in time";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", text)
    };
    let body = request.into_body();
    let size = body.size_hint().upper();
    let size = size.map_or(most, |size| usize::try_from(size).unwrap_or(usize::MAX));
    if size > most {
        return Err(too_large());
    }
    let arrived = async {
        let blocks = u32::try_from(size.div_ceil(BLOCK)).unwrap_or(u32::MAX);
        let room = Arc::clone(&server.bodies).acquire_many_owned(blocks).await;
        let bytes = to_bytes(body, most).await;
        Some((Vec::from(bytes.ok()?), room.ok()?))
    };
    let arrived = tokio::time::timeout(ARRIVAL, arrived).await;
    arrived.map_err(|_| late())?.ok_or_else(too_large)
}
