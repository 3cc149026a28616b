//! The compaction of a running agent: trigger, hooks, events, blocks or the reduction of a list.

use std::sync::Arc;

use compaction_plan::StopReason;
use futures::future::join_all;
use memory_model::{Clock, SystemClock};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::config::BlockCompactionStrategy;
use crate::context::build_context_from_session;
use crate::context_config::ContextConfig;
use crate::error::Result;
use crate::events::{
    BeforeCompaction, CompactionDecision, CompactionEvent, CompactionHooks, CompactionOutcome,
};
use crate::message::LoopMessage;
use crate::orchestrate::{BlockSettings, compact_session_loops};
use crate::reduce::{CompactionStrategy, DefaultCompaction, ReductionPolicy};
use crate::session::LoopSession;
use crate::strategy::DefaultBlockCompaction;

/// The working state of an agent: what its next request shows and, where it keeps one, the session.
///
/// With a session the messages are derived: the loops hold the originals, and compacting never changes
/// those.
#[derive(Debug, Clone)]
pub struct AgentContext<M> {
    /// The messages of the next request, without the system prompt.
    pub messages: Vec<M>,
    /// The session; `None` for an agent that keeps a list only.
    pub session: Option<LoopSession<M>>,
    /// Id of the loop that runs, in the session.
    pub current_loop: String,
}

impl<M: LoopMessage> AgentContext<M> {
    /// Creates the context of an agent without a session.
    pub fn of_messages(messages: Vec<M>) -> Self {
        Self {
            messages,
            session: None,
            current_loop: String::new(),
        }
    }

    /// Creates the context of a session: all messages of the chain of the running loop.
    pub fn of_session(session: LoopSession<M>, current_loop: impl Into<String>) -> Self {
        let current_loop = current_loop.into();
        let chain = session.chain(&current_loop).into_iter();
        Self {
            messages: chain
                .flat_map(|record| record.messages.iter().cloned())
                .collect(),
            session: Some(session),
            current_loop,
        }
    }

    /// Adds messages to the request and to the loop that runs.
    pub fn push(&mut self, messages: impl IntoIterator<Item = M>) {
        let added: Vec<M> = messages.into_iter().collect();
        if let Some(session) = &mut self.session {
            session.update(&self.current_loop, |record| {
                record.messages.extend(added.iter().cloned());
            });
        }
        self.messages.extend(added);
    }
}

/// Receives the events of one compaction, such as the sending half of a channel.
pub trait EventSender: Send + Sync {
    /// Takes an event. Must not block.
    fn send(&self, event: &CompactionEvent);
}

impl<F: Fn(&CompactionEvent) + Send + Sync> EventSender for F {
    fn send(&self, event: &CompactionEvent) {
        self(event);
    }
}

/// Compacts the context of an agent when it is due, or when it is asked to.
///
/// With a session it makes blocks; without one it reduces the list. Without a configuration it does
/// nothing.
#[derive(Debug, Clone)]
pub struct Compactor<M> {
    config: Option<ContextConfig<M>>,
    hooks: Vec<Arc<dyn CompactionHooks>>,
    clock: Arc<dyn Clock>,
}

impl<M: LoopMessage> Compactor<M> {
    /// Creates a compactor; `None` turns compaction off.
    pub fn new(config: impl Into<Option<ContextConfig<M>>>) -> Self {
        Self {
            config: config.into(),
            hooks: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Adds hooks. All are called at the same time.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn CompactionHooks>) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Sets what tells the time of blocks. Default: the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Call before each request, with the messages that steer the agent since the last one. Adds them,
    /// then compacts if that is due by [`is_due`](crate::CompactionConfig::is_due), so that what was
    /// added counts.
    ///
    /// # Errors
    /// Those of [`compact_context`](Self::compact_context).
    pub async fn before_request(
        &self,
        agent: &mut AgentContext<M>,
        steering: impl IntoIterator<Item = M>,
    ) -> Result<CompactionOutcome> {
        agent.push(steering);
        let Some(config) = &self.config else {
            return Ok(unchanged(agent, 0, StopReason::NothingEligible, true));
        };
        let tokens = config.counter().messages(&agent.messages);
        let (window, system) = (config.max_context_tokens, config.system_prompt_tokens);
        if !config.compaction.is_due(tokens, window, system) {
            let fits = tokens <= config.message_budget();
            return Ok(unchanged(agent, tokens, StopReason::BelowThreshold, fits));
        }
        self.run(config, agent, None).await
    }

    /// Compacts now, whether or not that is due. Does nothing without a configuration.
    ///
    /// # Errors
    /// Those of the strategies, of [`build_context_from_session`] and of
    /// [`compact_messages`](crate::compact_messages). Then the agent's context is as it was.
    pub async fn compact_context(&self, agent: &mut AgentContext<M>) -> Result<CompactionOutcome> {
        self.compact(agent, None).await
    }

    /// Like [`compact_context`](Self::compact_context), and tells `sender` the events too.
    ///
    /// # Errors
    /// Those of [`compact_context`](Self::compact_context).
    pub async fn compact_context_with_sender(
        &self,
        agent: &mut AgentContext<M>,
        sender: &dyn EventSender,
    ) -> Result<CompactionOutcome> {
        self.compact(agent, Some(sender)).await
    }

    async fn compact(
        &self,
        agent: &mut AgentContext<M>,
        sender: Option<&dyn EventSender>,
    ) -> Result<CompactionOutcome> {
        match &self.config {
            Some(config) => self.run(config, agent, sender).await,
            None => Ok(unchanged(agent, 0, StopReason::NothingEligible, true)),
        }
    }

    async fn run(
        &self,
        config: &ContextConfig<M>,
        agent: &mut AgentContext<M>,
        sender: Option<&dyn EventSender>,
    ) -> Result<CompactionOutcome> {
        let counter = config.counter();
        let messages = agent.messages.len();
        let tokens = counter.messages(&agent.messages);
        let before = BeforeCompaction { messages, tokens };
        let answers = join_all(self.hooks.iter().map(|hooks| hooks.before(&before))).await;
        if answers.contains(&CompactionDecision::Refuse) {
            let reason = StopReason::Cancelled;
            self.emit(sender, CompactionEvent::Skipped { reason }).await;
            let fits = tokens <= config.message_budget();
            return Ok(unchanged(agent, tokens, reason, fits));
        }
        let loop_id = agent.session.as_ref().map(|_| agent.current_loop.clone());
        let started = CompactionEvent::Started {
            loop_id,
            messages,
            tokens,
        };
        self.emit(sender, started).await;
        let loops_compacted = match self.shrink(config, &counter, agent, sender).await {
            Ok(loops) => loops,
            Err(error) => {
                let failed = CompactionEvent::Failed {
                    error: error.to_string(),
                };
                self.emit(sender, failed).await;
                return Err(error);
            }
        };
        let outcome = self.outcome(config, agent, &before, loops_compacted);
        let ended = CompactionEvent::Ended {
            stop: outcome.stop,
            messages_before: messages,
            messages_after: outcome.messages_after,
            tokens_before: tokens,
            tokens_after: outcome.tokens_after,
            loops_compacted: outcome.loops_compacted.len(),
        };
        self.emit(sender, ended).await;
        join_all(self.hooks.iter().map(|hooks| hooks.after(&outcome))).await;
        Ok(outcome)
    }

    /// Makes the blocks and the context, or reduces the list; returns the loops that got a block.
    async fn shrink(
        &self,
        config: &ContextConfig<M>,
        counter: &Arc<dyn TokenEstimator>,
        agent: &mut AgentContext<M>,
        sender: Option<&dyn EventSender>,
    ) -> Result<Vec<String>> {
        let compaction = &config.compaction;
        let Some(session) = &mut agent.session else {
            let policy = ReductionPolicy::from(config);
            let messages = agent.messages.clone();
            let strategy: &dyn CompactionStrategy<M> = match &compaction.in_memory_strategy {
                Some(strategy) => &**strategy,
                None => &DefaultCompaction,
            };
            agent.messages = strategy.compact(messages, &policy, counter).await?;
            return Ok(Vec::new());
        };
        let strategy: &dyn BlockCompactionStrategy<M> = match &compaction.block_strategy {
            Some(strategy) => &**strategy,
            None => &DefaultBlockCompaction,
        };
        let budget = config.message_budget();
        let settings = BlockSettings::new(compaction, budget, counter, self.clock.now());
        let made = compact_session_loops(session, &agent.current_loop, strategy, &settings).await?;
        agent.messages =
            build_context_from_session(session, &agent.current_loop, &settings)?.messages;
        let mut loops = Vec::with_capacity(made.len());
        for block in made {
            loops.push(block.loop_id.clone());
            let published = CompactionEvent::Published {
                loop_id: block.loop_id,
                source_tokens: block.source_tokens,
                tokens: block.tokens,
            };
            self.emit(sender, published).await;
        }
        Ok(loops)
    }

    fn outcome(
        &self,
        config: &ContextConfig<M>,
        agent: &AgentContext<M>,
        before: &BeforeCompaction,
        loops_compacted: Vec<String>,
    ) -> CompactionOutcome {
        let tokens_after = config.counter().messages(&agent.messages);
        CompactionOutcome {
            stop: StopReason::PassesDone,
            messages_before: before.messages,
            messages_after: agent.messages.len(),
            tokens_before: before.tokens,
            tokens_after,
            loops_compacted,
            fits: tokens_after <= config.message_budget(),
        }
    }

    async fn emit(&self, sender: Option<&dyn EventSender>, event: CompactionEvent) {
        if let Some(sender) = sender {
            sender.send(&event);
        }
        join_all(self.hooks.iter().map(|hooks| hooks.event(&event))).await;
    }
}

/// The outcome when nothing is done.
fn unchanged<M>(
    agent: &AgentContext<M>,
    tokens: u64,
    stop: StopReason,
    fits: bool,
) -> CompactionOutcome {
    CompactionOutcome {
        stop,
        messages_before: agent.messages.len(),
        messages_after: agent.messages.len(),
        tokens_before: tokens,
        tokens_after: tokens,
        loops_compacted: Vec::new(),
        fits,
    }
}
