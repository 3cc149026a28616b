//! Opening a session, with its window, system prompt and tools.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use compaction_plan::Planner;
use memory_model::{SessionKey, ToolDefinition};
use retrieval_tools::Retrieval;

use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;
use crate::settings::Settings;
use crate::strategy::Strategy;
use crate::turn_policy::Window;

/// A session that `.await` opens.
///
/// These settings are not stored: set them each time the session is opened. Forks of the session have them too.
#[derive(Debug, Clone)]
#[must_use = "`.await` opens the session"]
pub struct OpenSession {
    memory: Memory,
    key: SessionKey,
    must_exist: bool,
    settings: Settings,
}

impl OpenSession {
    pub(crate) fn new(memory: &Memory, key: SessionKey, must_exist: bool) -> Self {
        Self {
            memory: memory.clone(),
            key,
            must_exist,
            settings: Settings::default(),
        }
    }

    /// Sets the context window of the model that the session's contexts are for. [`Session::context`] needs one.
    pub fn window(mut self, window: Window) -> Self {
        self.settings.window = Some(window);
        self
    }

    /// Sets the system prompt: the first message of each context. It is never shortened, left out or summarized. It is
    /// counted in every budget and threshold, so that [`Window::system_tokens`] should stay 0. An empty text means no
    /// prompt.
    ///
    /// Instructions belong here: a message of the role `system` in the log is compacted like any other.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.settings.system = text.into();
        self
    }

    /// Adds tools that each request defines. Their definitions are counted in every budget and threshold.
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.settings.tools.extend(tools);
        self
    }

    /// Adds the memory's own tools, which search and read the whole log. [`Session::answer`] answers their calls.
    pub fn memory_tools(self) -> Self {
        self.tools(Retrieval::definitions())
    }

    /// Compacts this handle by another strategy. Its contexts, plans and turns follow the strategy's view; other views
    /// stay as they are. [`Session::use_strategy`] stores the choice.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.settings.strategy = Some(strategy);
        self
    }

    /// Compacts this handle by another planner, in the planner's view, which is empty at first.
    pub fn planner(mut self, planner: impl Planner + 'static) -> Self {
        self.settings.planner = Some(Arc::new(planner));
        self
    }
}

impl IntoFuture for OpenSession {
    type Output = Result<Session>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let session = match self.must_exist {
                true => self.memory.existing(self.key).await?,
                false => self.memory.open_or_create(self.key).await?,
            };
            Ok(session.with(self.settings))
        })
    }
}
