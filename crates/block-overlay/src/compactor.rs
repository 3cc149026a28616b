//! The compaction of a running agent: trigger, hooks, events, blocks or the reduction of a list.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::Message;
use token_estimate::UsageTracker;

use crate::config::ContextConfig;
use crate::context::build_context_from_session;
use crate::error::Result;
use crate::orchestration::compact_session_loops;
use crate::session::LoopSession;
use crate::strategy::{DefaultBlockCompaction, DefaultCompaction};

/// The working state of an agent: the messages of its next request and, if it keeps one, the session.
///
/// With a session the messages are derived: the loops hold the originals, and compacting never changes
/// those.
#[derive(Debug, Clone, Default)]
pub struct AgentContext {
    /// The messages of the next request, without the system prompt.
    pub messages: Vec<Message>,
    /// The session; `None` for an agent that keeps a list only.
    pub session: Option<LoopSession>,
    /// Id of the loop that runs, in the session.
    pub current_loop: String,
    /// Usage that the provider reported, observed at indices of [`messages`](Self::messages). A compaction
    /// resets it.
    pub usage: UsageTracker,
}

impl AgentContext {
    /// Creates the context of a session: all messages of the chain of the running loop.
    ///
    /// # Errors
    /// [`Error::UnknownLoop`](crate::Error::UnknownLoop).
    pub fn of_session(session: LoopSession, current_loop: impl Into<String>) -> Result<Self> {
        let current_loop = current_loop.into();
        let chain = session.chain(&current_loop)?.into_iter();
        Ok(Self {
            messages: chain
                .flat_map(|record| record.messages.iter().cloned())
                .collect(),
            session: Some(session),
            current_loop,
            usage: UsageTracker::new(),
        })
    }

    /// Adds messages to the request and to the loop that runs.
    pub fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        let added: Vec<Message> = messages.into_iter().collect();
        let session = self.session.as_mut();
        if let Some(record) = session.and_then(|session| session.get_mut(&self.current_loop)) {
            record.messages.extend_from_slice(&added);
        }
        self.messages.extend(added);
    }
}

/// Something that happened in a compaction. A start is followed by an end or a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionEvent {
    /// A compaction began.
    Started {
        /// Id of the newest loop; `None` without a session.
        loop_id: Option<String>,
        /// Number of messages in the context.
        messages: usize,
        /// Their estimated cost, in tokens.
        tokens: u64,
    },
    /// A compaction failed, and changed nothing in the context.
    Failed {
        /// Text of the error.
        error: String,
    },
    /// A compaction ended.
    Ended(CompactionOutcome),
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionOutcome {
    /// Number of messages before.
    pub messages_before: usize,
    /// Number of messages in the context now.
    pub messages_after: usize,
    /// Their estimated cost before, in tokens.
    pub tokens_before: u64,
    /// Their estimated cost now, in tokens.
    pub tokens_after: u64,
    /// Ids of the loops that got a block, newest first; none without a session.
    pub loops_compacted: Vec<String>,
}

/// Callbacks of a compaction. All methods do nothing unless implemented.
#[async_trait]
pub trait CompactionHooks: Send + Sync + Debug {
    /// Called before a compaction, such as to index what it will shorten. Returns whether to go on.
    async fn before_compaction_start(&self, _context: &AgentContext) -> bool {
        true
    }

    /// Called after a compaction, such as to verify it.
    async fn after_compaction_end(&self, _outcome: &CompactionOutcome) {}

    /// Called on every event.
    fn event(&self, _event: &CompactionEvent) {}
}

/// Compacts the context of an agent when it is due, or when it is asked to.
///
/// With a session it makes blocks; without one it reduces the list.
#[derive(Debug, Clone, Default)]
pub struct Compactor {
    /// The window, and how to compact.
    pub config: ContextConfig,
    /// Called in order. One that refuses is enough.
    pub hooks: Vec<Arc<dyn CompactionHooks>>,
}

impl Compactor {
    /// Compacts if that is due by [`is_due`](crate::CompactionConfig::is_due). Call before each request.
    /// Messages that [`usage`](AgentContext::usage) covers cost what the provider reported, the system
    /// prompt included. Returns `None` if it is not due, or a hook refused.
    ///
    /// # Errors
    /// Those of [`compact_context`](Self::compact_context).
    pub async fn before_request(
        &self,
        agent: &mut AgentContext,
    ) -> Result<Option<CompactionOutcome>> {
        let config = &self.config;
        let messages = (0..).zip(&agent.messages);
        let used = agent.usage.measure(&config.compaction.estimator, messages);
        let system = match used.reported_at {
            Some(_) => 0,
            None => config.system_prompt_tokens,
        };
        let window = config.max_context_tokens;
        match config.compaction.is_due(used.tokens(), window, system) {
            true => self.compact_context(agent).await,
            false => Ok(None),
        }
    }

    /// Compacts now, whether or not that is due. Returns `None` if a hook refused.
    ///
    /// # Errors
    /// Those of the strategies, of [`build_context_from_session`] and of
    /// [`compact_messages`](crate::compact_messages). Then the agent's messages are as they were.
    pub async fn compact_context(
        &self,
        agent: &mut AgentContext,
    ) -> Result<Option<CompactionOutcome>> {
        for hooks in &self.hooks {
            if !hooks.before_compaction_start(agent).await {
                return Ok(None);
            }
        }
        let compaction = &self.config.compaction;
        let (messages, tokens) = (agent.messages.len(), compaction.cost(&agent.messages));
        let session = agent.session.as_ref();
        self.emit(&CompactionEvent::Started {
            loop_id: session.map(|_| agent.current_loop.clone()),
            messages,
            tokens,
        });
        let loops_compacted = self.shrink(agent).await.inspect_err(|error| {
            self.emit(&CompactionEvent::Failed {
                error: error.to_string(),
            });
        })?;
        let outcome = CompactionOutcome {
            messages_before: messages,
            messages_after: agent.messages.len(),
            tokens_before: tokens,
            tokens_after: compaction.cost(&agent.messages),
            loops_compacted,
        };
        self.emit(&CompactionEvent::Ended(outcome.clone()));
        for hooks in &self.hooks {
            hooks.after_compaction_end(&outcome).await;
        }
        Ok(Some(outcome))
    }

    /// Makes the blocks and the context, or reduces the list; returns the loops that got a block.
    async fn shrink(&self, agent: &mut AgentContext) -> Result<Vec<String>> {
        let (config, budget) = (&self.config.compaction, self.config.message_budget());
        let mut loops = Vec::new();
        agent.messages = match &mut agent.session {
            Some(session) => {
                let (current, strategy) = (&agent.current_loop, config.block_strategy.as_deref());
                let strategy = strategy.unwrap_or(&DefaultBlockCompaction);
                loops = compact_session_loops(session, current, strategy, config, budget).await?;
                build_context_from_session(session, current, config, budget)?.messages
            }
            None => {
                let messages = agent.messages.clone();
                let strategy = config.in_memory_strategy.as_deref();
                let strategy = strategy.unwrap_or(&DefaultCompaction);
                strategy.compact(messages, &self.config).await?
            }
        };
        agent.usage.reset();
        Ok(loops)
    }

    fn emit(&self, event: &CompactionEvent) {
        self.hooks.iter().for_each(|hooks| hooks.event(event));
    }
}
