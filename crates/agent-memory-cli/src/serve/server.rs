//! The state of the server, and its calls. Each runs on a thread of its own, so that the others are answered meanwhile.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_memory::retrieval::mcp::AccessToken;
use agent_memory::search::SearchStop;
use agent_memory::{Memory, Session};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::metrics::Metrics;
use super::refusal::Refusal;
use super::visible::Visible;
use crate::app::App;
use crate::error::{Failure, Kind};

/// Maximum number of concurrent calls. Further calls wait.
pub(super) const MOST_CALLS: usize = 4;

/// Time in which a search must complete its answer after its time limit.
const ANSWERING: Duration = Duration::from_secs(10);

/// Time limit of a call that writes.
pub(super) const WRITING: Duration = Duration::from_secs(120);

/// State that all calls share.
pub(super) struct Server {
    pub(super) memory: Memory,
    pub(super) visible: Visible,
    pub(super) token: AccessToken,
    pub(super) metrics: Metrics,
    /// Size of a compaction's text, in tokens.
    pub(super) budget: u64,
    pub(super) time_limit: Duration,
    pub(super) call_slots: Arc<Semaphore>,
    /// Blocks of memory for the bodies of calls.
    pub(super) bodies: Arc<Semaphore>,
    /// Held while a request is placed, so that equal requests find the same session.
    pub(super) placing: tokio::sync::Mutex<()>,
    pub(super) app: Mutex<App>,
}

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
    pub(super) route: &'static Route,
    pub(super) key: Option<String>,
    pub(super) query: HashMap<String, String>,
    pub(super) body: Vec<u8>,
    pub(super) stop: SearchStop,
}

impl Call {
    /// Returns the key of the session in the path.
    pub(super) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }
}

/// Body of a successful answer.
pub(super) struct Answer {
    pub(super) kind: &'static str,
    pub(super) body: String,
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

impl Server {
    /// Answers a call on another thread, within its time. The work ends when the caller is gone.
    pub(super) async fn answer(
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
    pub(super) async fn session(&self, key: &str) -> Result<Session, Refusal> {
        let found = self.visible.find(&self.memory, key).await?;
        found.ok_or_else(|| Refusal::no_session(key))
    }
}

pub(super) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + 'a>>;
