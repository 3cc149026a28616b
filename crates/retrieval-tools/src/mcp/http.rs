//! The server over HTTP on the loopback address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::JsonRpcError;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::connections::{Connection, IDLE, accept, is_local, listen};
use super::request::{self, MAX_REQUEST_BYTES, Unreadable};
use super::token::AccessToken;
use crate::error::{Error, ErrorKind, Result};
use crate::mcp::MemoryServer;

/// An MCP server that clients on the same machine reach over HTTP at `http://127.0.0.1:PORT/mcp`.
///
/// The server accepts connections only from this machine, and only requests that contain its [`AccessToken`], so that
/// other users of the machine have no access. It refuses requests from web pages in a browser, because their origin or
/// host name belongs to another machine. A connection without a request is closed after a minute, and after five seconds
/// if it has not shown the token: see [`accept`]. A request may have at most 4 MiB, and at most 32 KiB of headers.
#[derive(Debug)]
pub struct HttpServer {
    server: MemoryServer,
    token: AccessToken,
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Creates a server that listens on a port of the loopback address. Port 0 selects a free port. Every request of a
    /// client must contain `token`.
    ///
    /// # Errors
    /// `Protocol` if the server cannot listen on the port, for example because another process uses it.
    pub async fn bind(server: MemoryServer, port: u16, token: AccessToken) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message =
                format!("cannot listen at port {port} ({error}): give another port, or 0");
            Error::new(ErrorKind::Protocol, message)
        };
        let listener = listen(port).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            server,
            token,
            listener,
            address,
        })
    }

    /// Returns the URL that clients connect to, such as `http://127.0.0.1:8080/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Serves clients until the returned future is dropped.
    ///
    /// # Errors
    /// Never returns an error. A failed connection ends without effect on the other connections.
    pub async fn serve(self) -> Result<()> {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_REQUEST_BYTES)
            .enforce_origin_validation();
        let server = self.server;
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let router = Router::new()
            .nest_service("/mcp", service)
            .layer(axum::middleware::from_fn(readable))
            .layer(from_fn_with_state(Arc::new(self.token), admitted));
        accept(
            self.listener,
            router,
            std::future::pending(),
            Duration::ZERO,
        )
        .await;
        Ok(())
    }
}

/// Passes a request on if it contains the token. Otherwise answers with the status 401.
async fn admitted(State(token): State<Arc<AccessToken>>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    if shown.is_some_and(|shown| token.admits(shown)) {
        if !is_local(&request) {
            return StatusCode::FORBIDDEN.into_response();
        }
        if let Some(connection) = request.extensions().get::<Connection>() {
            connection.admit().await;
        }
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let text = "Unauthorized: send the server's token as `Authorization: Bearer TOKEN`\n";
    (StatusCode::UNAUTHORIZED, challenge, text).into_response()
}

/// Answers a request with an unreadable body. Passes other requests on.
async fn readable(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(IDLE, to_bytes(body, MAX_REQUEST_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return refused(StatusCode::PAYLOAD_TOO_LARGE, Unreadable::too_long(&[])),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let body = match request::read(&body) {
        Err(unreadable) => return refused(StatusCode::BAD_REQUEST, unreadable),
        Ok(_) => match std::str::from_utf8(&body).map(memory_model::without_half_pairs) {
            Ok(std::borrow::Cow::Owned(text)) => Body::from(text),
            _ => Body::from(body),
        },
    };
    let mut request = Request::from_parts(head, body);
    // This header is the length of the original body, parts of which may have been replaced.
    request.headers_mut().remove(header::CONTENT_LENGTH);
    next.run(request).await
}

fn refused(status: StatusCode, unreadable: Unreadable) -> Response {
    let error = JsonRpcError::new(unreadable.id, *unreadable.error);
    match serde_json::to_string(&error) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => status.into_response(),
    }
}
