//! Opening a session, with its window, system prompt and tools.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use compaction_plan::Planner;
use memory_model::{SessionKey, ToolDefinition};
use retrieval_tools::{IdentityFiles, Retrieval};

use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;
use crate::settings::Settings;
use crate::strategy::Strategy;
use crate::turn_policy::Window;

/// A session to be opened by `.await`, with settings for the opened handle.
///
/// The settings are not stored: set them each time the session is opened. Forks of the session inherit them.
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

    /// Sets the context window of the model that receives the session's contexts. [`Session::context`] requires it.
    pub fn window(mut self, window: Window) -> Self {
        self.settings.window = Some(window);
        self
    }

    /// Sets the system prompt, which is the first message of each context. It is never shortened, left out or
    /// summarized. Its cost is part of every budget and threshold, so do not count it in [`Window::system_tokens`] too.
    /// An empty text means that there is no system prompt.
    ///
    /// Use it for instructions. A message with the role `system` in the log is compacted like any other message.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.settings.system = text.into();
        self
    }

    /// Adds tools that each request to the model defines. The cost of their definitions is part of every budget and
    /// threshold.
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.settings.tools.extend(tools);
        self
    }

    /// Adds the memory's own tools, by which the model searches and reads the whole log. If the memory has
    /// [`IdentityFiles`], also adds `memory_identity`, by which the model reads and writes these files.
    /// [`Session::answer`] runs the calls of these tools.
    pub fn memory_tools(self) -> Self {
        let files = self.memory.inner.identity.files();
        let editing = files.map(|_| IdentityFiles::definition());
        self.tools(Retrieval::definitions().chain(editing))
    }

    /// Sets the strategy for this handle only. Its contexts, plans and turns use the view of this strategy. The views
    /// of other strategies stay unchanged. [`Session::use_strategy`] stores a strategy permanently.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.settings.strategy = Some(strategy);
        self
    }

    /// Sets a planner, which selects the messages to compact, for this handle only. The handle uses the planner's view,
    /// which initially shows all messages.
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
