//! The server over HTTP, on the loopback address alone.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::error::{Error, ErrorKind, Result};
use crate::mcp::MemoryServer;

/// A server that listens for clients of this machine at `http://127.0.0.1:PORT/mcp`.
///
/// It takes no connection from elsewhere, and no request that a browser sends for a page: those carry an origin,
/// and a name of the host that is not this machine's.
#[derive(Debug)]
pub struct HttpServer {
    server: MemoryServer,
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Begins to listen at a port of the loopback address; 0 takes any that is free.
    ///
    /// # Errors
    /// `Protocol` when the port is taken.
    pub async fn bind(server: MemoryServer, port: u16) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message =
                format!("cannot listen at port {port} ({error}): give another port, or 0");
            Error::new(ErrorKind::Protocol, message)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            server,
            listener,
            address,
        })
    }

    /// The address that clients are given.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Serves clients until it is dropped.
    ///
    /// # Errors
    /// `Protocol` when the socket fails.
    pub async fn serve(self) -> Result<()> {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .enforce_origin_validation();
        let server = self.server;
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let router = Router::new().nest_service("/mcp", service);
        let served = axum::serve(self.listener, router).await;
        served.map_err(|error| {
            let message = format!("the server failed ({error}): start it again");
            Error::new(ErrorKind::Protocol, message)
        })
    }
}
