//! The compaction of a running agent: trigger, hooks and events, with blocks or by reducing a list.

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
/// With a session the messages are derived: the loops hold the originals, which compaction never changes.
#[derive(Debug, Clone, Default)]
pub struct AgentContext {
    /// The messages of the next request, without the system prompt.
    pub messages: Vec<Message>,
    /// The session; `None` for an agent that keeps only a list.
    pub session: Option<LoopSession>,
    /// Id of the running loop in the session.
    pub current_loop: String,
    /// Usage that the provider reported, by index of [`messages`](Self::messages). A compaction resets it.
    pub usage: UsageTracker,
}

impl AgentContext {
    /// Creates the context of a session, with all messages of the running loop's chain.
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

    /// Adds messages to the request and to the running loop.
    pub fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        let added: Vec<Message> = messages.into_iter().collect();
        let session = self.session.as_mut();
        if let Some(record) = session.and_then(|session| session.get_mut(&self.current_loop)) {
            record.messages.extend_from_slice(&added);
        }
        self.messages.extend(added);
    }
}

/// An event of a compaction. A start is followed by an end or a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionEvent {
    /// A compaction began.
    Started {
        /// Id of the running loop; `None` without a session.
        loop_id: Option<String>,
        /// Number of messages in the context.
        messages: usize,
        /// Estimated cost of the messages, in tokens.
        tokens: u64,
    },
    /// A compaction failed. The context did not change.
    Failed {
        /// Text of the error.
        error: String,
    },
    /// A compaction ended.
    Ended(CompactionOutcome),
}

/// Result of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionOutcome {
    /// Number of messages in the context before.
    pub messages_before: usize,
    /// Number of messages in the context afterwards.
    pub messages_after: usize,
    /// Estimated cost of the messages before, in tokens.
    pub tokens_before: u64,
    /// Estimated cost of the messages afterwards, in tokens.
    pub tokens_after: u64,
    /// Ids of the loops that got a block, newest first; empty without a session.
    pub loops_compacted: Vec<String>,
}

/// Callbacks of a compaction. The default implementations are empty.
#[async_trait]
pub trait CompactionHooks: Send + Sync + Debug {
    /// Called before a compaction, for example to index messages that it will shorten. Returns whether to continue.
    async fn before_compaction_start(&self, _context: &AgentContext) -> bool {
        true
    }

    /// Called after a compaction, for example to verify it.
    async fn after_compaction_end(&self, _outcome: &CompactionOutcome) {}

    /// Called on every event.
    fn event(&self, _event: &CompactionEvent) {}
}

/// Compacts the context of an agent when a compaction is due, or on demand.
///
/// With a session it makes blocks. Without one it reduces the list.
#[derive(Debug, Clone, Default)]
pub struct Compactor {
    /// Window of the model and settings of the compaction.
    pub config: ContextConfig,
    /// Hooks in the order of their calls. If one refuses, there is no compaction.
    pub hooks: Vec<Arc<dyn CompactionHooks>>,
}

impl Compactor {
    /// Compacts if that is due by [`is_due`](crate::CompactionConfig::is_due). Call before each request. Messages that
    /// [`usage`](AgentContext::usage) covers cost the reported tokens, which include the system prompt. Returns `None`
    /// if no compaction is due or a hook refused.
    ///
    /// # Errors
    /// The errors of [`compact_context`](Self::compact_context).
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

    /// Compacts, even if no compaction is due. Returns `None` if a hook refused.
    ///
    /// # Errors
    /// The errors of the strategies, of [`build_context_from_session`] and of
    /// [`compact_messages`](crate::compact_messages). After an error the agent's messages are unchanged.
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

    /// Makes the blocks and the context, or reduces the list. Returns the ids of the loops that got a block.
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
