//! Connections and the admission of requests. The limits are the same as for `mcp --http`.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use agent_memory::compaction::CancellationToken;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
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

/// Time after which a connection without a complete request is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Maximum length of a request's first line and headers, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Maximum number of concurrent connections. Further connections wait.
const MAX_CONNECTIONS: usize = 128;

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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, format!("http://{address}")))
}

/// Serves clients until the token is cancelled, and then the requests that have begun.
pub(crate) async fn accept(listener: TcpListener, router: Router, cancelled: &CancellationToken) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let signalled = async {
        while !cancelled.is_cancelled() {
            tokio::time::sleep(LOOKING).await;
        }
    };
    let accepting = async {
        while let Ok(place) = Arc::clone(&free).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Too many files are open, or the client has already disconnected.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let service = TowerToHyperService::new(router.clone());
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(IDLE)
                .max_buf_size(MAX_HEAD_BYTES);
            let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
            tokio::spawn(async move {
                // Nobody receives the error of a connection.
                let _ = connection.await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = signalled => {}
        () = accepting => {}
    }
    drop(listener);
    // A request that still runs then has taken its whole time.
    let _ = tokio::time::timeout(WRITING, graceful.shutdown()).await;
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
        match admission(&server, request.headers()) {
            Ok(()) => next.run(request).await,
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
fn admission(server: &Server, headers: &HeaderMap) -> Result<(), Refusal> {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    if !shown.is_some_and(|shown| server.token.admits(shown)) {
        let text = "Unauthorized: send the server's token as `Authorization: Bearer TOKEN`";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", text));
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| host.parse::<axum::http::uri::Authority>().ok());
    let is_own =
        host.is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host.host()));
    if !is_own || headers.contains_key(header::ORIGIN) {
        let text = "Forbidden: the server answers neither web pages nor other host names";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", text));
    }
    Ok(())
}
