//! `serve`: an HTTP server over the memory, on the loopback address.
//!
//! The server calls no model. Each call runs on a thread of its own, so that the others are answered meanwhile.

mod http;
mod metrics;
mod openapi;
mod placing;
mod pointer;
mod refusal;
mod responses;
mod routes;
mod visible;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_memory::retrieval::mcp::AccessToken;
use agent_memory::search::SearchStop;
use agent_memory::{Memory, Session};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::app::App;
use crate::args::Serve;
use crate::error::{Failure, Kind};
use crate::progress::Progress;
use crate::token::access_token;
use metrics::Metrics;
use refusal::Refusal;
use routes::{Answer, Call, Route};
use visible::Visible;

/// Maximum number of concurrent calls. Further calls wait.
const MOST_CALLS: usize = 4;

/// Time in which a search must complete its answer after its time limit.
const ANSWERING: Duration = Duration::from_secs(10);

/// Time limit of a call that writes.
const WRITING: Duration = Duration::from_secs(120);

/// State that all calls share.
struct Server {
    memory: Memory,
    visible: Visible,
    token: AccessToken,
    metrics: Metrics,
    /// Size of a compaction's text, in tokens.
    budget: u64,
    time_limit: Duration,
    call_slots: Arc<Semaphore>,
    /// Held while a request is placed, so that equal requests find the same session.
    placing: tokio::sync::Mutex<()>,
    app: Mutex<App>,
}

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
        placing: tokio::sync::Mutex::default(),
        app: Mutex::new(app.twin()),
    });
    if args.log {
        log();
    }
    http::serve(&app.stop, server, args.port).await
}

/// Prints the spans of requests on stderr. The events of libraries are left out, because they may have words of
/// messages.
fn log() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt::{self, format::FmtSpan};
    use tracing_subscriber::layer::SubscriberExt as _;

    let lines = fmt::layer()
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(std::io::stderr);
    let own = Targets::new().with_target(http::TARGET, LevelFilter::INFO);
    let subscriber = tracing_subscriber::registry().with(lines).with(own);
    // Fails only if there is a subscriber already, which then has the spans.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

impl Server {
    /// Answers a call on another thread, within its time. The work ends when the caller is gone.
    async fn answer(
        self: Arc<Self>,
        route: &'static Route,
        mut call: Call,
    ) -> Result<Answer, Refusal> {
        let until = Instant::now() + self.time_limit;
        call.stop = SearchStop::new(move || Instant::now() >= until);
        let limit = match route.writes {
            true => WRITING,
            false => self.time_limit + ANSWERING,
        };
        let (here, gone) = oneshot::channel::<()>();
        let app = self
            .app
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .twin();
        let runtime = Handle::current();
        let answered = async move {
            let slot = Arc::clone(&self.call_slots).acquire_owned().await;
            let work = spawn_blocking(move || {
                let _slot = slot;
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        _ = gone => None,
                        answered = (route.answer)(self, &app, call) => Some(answered),
                    }
                })
            });
            work.await
        };
        let answered = tokio::time::timeout(limit, answered).await;
        drop(here);
        match answered {
            Ok(Ok(Some(answered))) => answered,
            Ok(_) => Err(Failure::new(Kind::Other, "the call failed").into()),
            Err(_) => Err(Refusal::late(limit)),
        }
    }

    /// Returns the session with this key.
    async fn session(&self, key: &str) -> Result<Session, Refusal> {
        let found = self.visible.find(&self.memory, key).await?;
        found.ok_or_else(|| Refusal::no_session(key))
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + 'a>>;
