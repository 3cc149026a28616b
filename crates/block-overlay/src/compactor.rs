//! Compaction of the context of a running agent, with a trigger, hooks and events.

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

/// Working state of an agent: the messages of its next request and, if the agent has one, its session.
///
/// With a session, the messages are made from the session's loops. A loop is one run of the agent, from a prompt to its
/// answer. It keeps its original messages, which compaction never changes.
#[derive(Debug, Clone, Default)]
pub struct AgentContext {
    /// Messages of the next request to the model, without the system prompt.
    pub messages: Vec<Message>,
    /// Session with the original messages. `None` for an agent that has only the list `messages`.
    pub session: Option<LoopSession>,
    /// Id of the session's loop (run of the agent) that is running now.
    pub current_loop: String,
    /// Token usage that the provider reported. Positions are indices in [`messages`](Self::messages). A compaction
    /// resets it.
    pub usage: UsageTracker,
}

impl AgentContext {
    /// Creates the context of an agent with a session. It contains all messages of the session's loops (runs of the
    /// agent) from the first loop to the loop with the id `current_loop`.
    ///
    /// # Errors
    /// [`Error::UnknownLoop`](crate::Error::UnknownLoop) if the session has no loop `current_loop`.
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

    /// Appends messages to the next request. With a session, also appends them to the running loop (the current run of
    /// the agent).
    pub fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        let added: Vec<Message> = messages.into_iter().collect();
        let session = self.session.as_mut();
        if let Some(record) = session.and_then(|session| session.get_mut(&self.current_loop)) {
            record.messages.extend_from_slice(&added);
        }
        self.messages.extend(added);
    }
}

/// An event of a compaction. After `Started` comes either `Ended` or `Failed`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionEvent {
    /// A compaction began.
    Started {
        /// Id of the loop (run of the agent) that is running. `None` without a session.
        loop_id: Option<String>,
        /// Number of messages in the context before the compaction.
        messages: usize,
        /// Estimated cost of the messages before the compaction, in tokens.
        tokens: u64,
    },
    /// A compaction failed. The context did not change.
    Failed {
        /// Text of the error that ended the compaction.
        error: String,
    },
    /// A compaction ended without an error.
    Ended(CompactionOutcome),
}

/// Number of messages and tokens before and after a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionOutcome {
    /// Number of messages in the context before the compaction.
    pub messages_before: usize,
    /// Number of messages in the context after the compaction.
    pub messages_after: usize,
    /// Estimated cost of the messages before the compaction, in tokens.
    pub tokens_before: u64,
    /// Estimated cost of the messages after the compaction, in tokens.
    pub tokens_after: u64,
    /// Ids of the loops (runs of the agent) that got a new block (compacted form), the last loop first. Empty without a
    /// session.
    pub loops_compacted: Vec<String>,
}

/// Callbacks that observe compactions and may prevent them. The default implementations allow every compaction and
/// ignore events.
#[async_trait]
pub trait CompactionHooks: Send + Sync + Debug {
    /// Called before a compaction begins, for example to index the messages that it will shorten. Returns whether the
    /// compaction may begin.
    async fn before_compaction_start(&self, _context: &AgentContext) -> bool {
        true
    }

    /// Called after a compaction succeeded, for example to verify its outcome.
    async fn after_compaction_end(&self, _outcome: &CompactionOutcome) {}

    /// Called on every event of a compaction.
    fn event(&self, _event: &CompactionEvent) {}
}

/// Compacts the context of an agent, on demand or when the window is nearly full.
///
/// With a session, the compactor makes blocks (compacted forms) of the session's loops (runs of the agent) and builds
/// the context from them. Without one, it shortens the list of messages.
#[derive(Debug, Clone, Default)]
pub struct Compactor {
    /// Size of the model's window and settings of the compaction.
    pub config: ContextConfig,
    /// Hooks, called in this order. If a hook refuses, the compaction does not begin.
    pub hooks: Vec<Arc<dyn CompactionHooks>>,
}

impl Compactor {
    /// Compacts the context if [`is_due`](crate::CompactionConfig::is_due) returns true. Call this before each request
    /// to the model. Messages that [`usage`](AgentContext::usage) covers count with the reported tokens, which include
    /// the system prompt. Returns `None` if no compaction is due or if a hook refused it.
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

    /// Compacts the context, even if no compaction is due. Returns `None` if a hook refused it.
    ///
    /// # Errors
    /// With a session, the errors of the block strategy and of [`build_context_from_session`]. Without a session, the
    /// errors of the in-memory strategy. After an error, the messages of the agent are unchanged.
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

    /// With a session, makes blocks of its loops (runs of the agent) and builds the context from them. Without one,
    /// shortens the list of messages. Returns the ids of the loops that got a new block.
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
