//! Connections and the admission of requests. The limits are the same as for `mcp --http`.

use std::sync::Arc;
use std::time::Duration;

use agent_memory::compaction::CancellationToken;
use agent_memory::retrieval::mcp::connections::{self, Connection, is_local};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tracing::{Instrument as _, field};

use super::refusal::Refusal;
use super::routes;
use super::server::{Server, WRITING};
use crate::error::{Failure, Kind};
use crate::output::note;
use crate::stop::Stop;

/// Target of the spans of requests.
pub(super) const TARGET: &str = "agent_memory::serve";

/// Interval at which the server looks whether a signal came.
const LOOKING: Duration = Duration::from_millis(50);

/// Serves clients until a signal comes, and then the requests that have begun.
pub(super) async fn serve(stop: &Stop, server: Arc<Server>, port: u16) -> anyhow::Result<()> {
    let (listener, address) = bind(port).await?;
    let router = routes::router().layer(from_fn_with_state(Arc::clone(&server), admitted));
    let router: Router = router.with_state(server);
    let (_holding, cancelled) = stop.holding();
    note(&format!("serving at {address}"));
    accept(listener, router, &cancelled).await;
    Ok(())
}

/// Listens at a port of the loopback address, or at a free one for 0. Returns the URL too.
pub(crate) async fn bind(port: u16) -> Result<(TcpListener, String), Failure> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot listen at port {port} ({error})");
        Failure::new(Kind::Other, text).hint("give another port, or 0")
    };
    let listener = connections::listen(port).await;
    let listener = listener.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, format!("http://{address}")))
}

/// Serves clients until the token is cancelled, and then the requests that have begun.
async fn accept(listener: TcpListener, router: Router, cancelled: &CancellationToken) {
    let signalled = async {
        while !cancelled.is_cancelled() {
            tokio::time::sleep(LOOKING).await;
        }
    };
    connections::accept(listener, router, signalled, WRITING).await;
}

/// Serves documents that need no token to every program of this machine, until the token is cancelled.
pub(crate) async fn serve_openly(
    listener: TcpListener,
    router: Router,
    cancelled: &CancellationToken,
) {
    accept(listener, router.layer(from_fn(admitted_openly)), cancelled).await;
}

async fn admitted_openly(request: Request, next: Next) -> Response {
    match local(&request) {
        Ok(()) => pass(request, next).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Answers a request that is admitted.
async fn pass(request: Request, next: Next) -> Response {
    if let Some(connection) = request.extensions().get::<Connection>() {
        connection.admit().await;
    }
    next.run(request).await
}

/// Counts a request, and passes it on if it may be answered.
async fn admitted(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = request.extensions().get::<MatchedPath>();
    let route = path
        .and_then(|path| routes::pattern(path.as_str()))
        .unwrap_or("other");
    let span = tracing::info_span!(target: TARGET, "request", route, status = field::Empty);
    let answered = async {
        match admission(&server, &request) {
            Ok(()) => pass(request, next).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    let response = answered.instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    server
        .metrics
        .add(route, response.status().as_u16(), began.elapsed());
    response
}

/// Returns whether a request has the token, and comes neither from a web page nor by another host name.
fn admission(server: &Server, request: &Request) -> Result<(), Refusal> {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    if !shown.is_some_and(|shown| server.token.admits(shown)) {
        let text = "Unauthorized: send the server's token as `Authorization: Bearer TOKEN`";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", text));
    }
    local(request)
}

/// Refuses a request that comes from a web page, or by another host name.
fn local(request: &Request) -> Result<(), Refusal> {
    if is_local(request) {
        return Ok(());
    }
    let text = "Forbidden: the server answers neither web pages nor other host names";
    Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", text))
}
