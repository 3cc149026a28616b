//! `serve`: an HTTP server over the memory, on the loopback address. It calls no model.

pub(crate) mod http;
mod metrics;
mod openapi;
mod placing;
mod pointer;
mod refusal;
mod responses;
mod routes;
mod server;
mod sessions;
mod visible;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::app::App;
use crate::args::Serve;
use crate::progress::Progress;
use crate::token::access_token;
use metrics::Metrics;
use routes::BLOCKS;
use server::{MOST_CALLS, Server};
use visible::Visible;

pub(crate) async fn run(app: &mut App, args: &Serve) -> anyhow::Result<()> {
    let table = args.vectors.read()?;
    let progress = Arc::new(Progress::new(true));
    let memory = app.open_for_writing(&progress, |_| table.builder()).await?;
    let server = Arc::new(Server {
        visible: Visible::new(app, &memory, &args.sessions, args.project.as_deref()).await?,
        memory,
        token: access_token()?,
        metrics: Metrics::default(),
        budget: args.budget,
        time_limit: Duration::from_secs(args.time_limit),
        call_slots: Arc::new(Semaphore::new(MOST_CALLS)),
        bodies: Arc::new(Semaphore::new(BLOCKS)),
        placing: tokio::sync::Mutex::default(),
        app: Mutex::new(app.twin()),
    });
    if args.log {
        log(http::TARGET);
    }
    http::serve(&app.stop, server, args.port).await
}

/// Prints the spans of a target on stderr. The events of libraries are left out, because they may have words of
/// messages.
pub(crate) fn log(target: &'static str) {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt::{self, format::FmtSpan};
    use tracing_subscriber::layer::SubscriberExt as _;

    let lines = fmt::layer()
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr);
    let own = Targets::new().with_target(target, LevelFilter::INFO);
    let subscriber = tracing_subscriber::registry().with(lines).with(own);
    // Fails only if there is a subscriber already, which then has the spans.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
