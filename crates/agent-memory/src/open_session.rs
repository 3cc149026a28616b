//! Opening a session, with its window, system prompt and tools.

use std::collections::HashSet;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use compaction_plan::Planner;
use memory_model::{SessionKey, ToolDefinition};
use retrieval_tools::{IdentityFiles, Retrieval};

use crate::error::{Error, ErrorKind, Result};
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
    /// threshold. Opening fails with `Invalid`, which names the tool, if two tools have one name, or if no provider
    /// accepts a name or its parameters.
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
            check_tools(&self.settings.tools)?;
            let session = match self.must_exist {
                true => self.memory.existing(self.key).await?,
                false => self.memory.open_or_create(self.key).await?,
            };
            Ok(session.with(self.settings))
        })
    }
}

/// Characters of a tool's name besides letters and digits. No provider permits others, and some not all of these.
const NAME_MARKS: &str = "_-.:";

/// Longest name of a tool that a provider permits, in characters.
const NAME_LENGTH: usize = 128;

/// Checks tools that every request would send: no provider accepts a name twice, or parameters that are no object.
///
/// # Errors
/// `Invalid` with the name of the first tool that a provider would refuse.
fn check_tools(tools: &[ToolDefinition]) -> Result<()> {
    let mut names = HashSet::new();
    for ToolDefinition {
        name, parameters, ..
    } in tools
    {
        let is_permitted = |c: char| c.is_ascii_alphanumeric() || NAME_MARKS.contains(c);
        let problem = if name.is_empty()
            || name.len() > NAME_LENGTH
            || !name.chars().all(is_permitted)
        {
            format!(
                "is no name of a tool: it has 1 to {NAME_LENGTH} letters, digits and characters of {NAME_MARKS}"
            )
        } else if !parameters.as_str().trim_start().starts_with('{') {
            "has parameters that are no JSON Schema of an object".to_owned()
        } else if !names.insert(name) {
            "comes twice: each tool has a name of its own".to_owned()
        } else {
            continue;
        };
        let message = format!("the tool {name:?} {problem}");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}
