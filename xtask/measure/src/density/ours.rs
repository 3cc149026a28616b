//! What the library shows of a conversation within a budget.

use std::sync::Arc;

use agent_memory::compaction::Background;
use agent_memory::compaction::CutPolicy;
use agent_memory::context::AssembleRequest;
use agent_memory::model::StepClock;
use agent_memory::retrieval::RecallAnswer;
use agent_memory::store::InMemoryStore;
use agent_memory::transcripts::{Origin, ReadOptions, read};
use agent_memory::{
    Budget, Builder, Context, ErrorKind, HandoffPolicy, Memory, Mode, Session, Strategy,
    context::AssemblyPolicy, model::Timestamp, retrieval::RecallArgs,
};
use anyhow::{Context as _, ensure};
use token_estimate::{Exact, TokenEstimator};
use tokio::runtime::Runtime;

use super::cases::Case;
use crate::retention::transcripts::plain;

/// The tokenizer of all figures.
pub(crate) const TOKENS: Exact = Exact::O200k;

/// A memory that reads no clock of the system.
pub(crate) fn memory() -> Builder {
    let clock = || Arc::new(StepClock::new(Timestamp(0), 0));
    Memory::builder()
        .store(InMemoryStore::new().with_clock(clock()))
        .clock(clock())
        .background(Background::off())
}

/// A conversation that the library holds, compacted as far as its defaults go.
pub(crate) struct Ours {
    runtime: Runtime,
    session: Session,
    /// The conversation as plain lines.
    pub(super) plain: String,
}

impl Ours {
    /// Imports and compacts the conversation of a case with the library's defaults.
    pub(super) fn of(case: &Case) -> anyhow::Result<Self> {
        Self::compacted(&case.before, memory().estimator(Arc::new(TOKENS)), 1)
    }

    /// Imports and compacts a transcript as the program does without options.
    pub(crate) fn by_program(transcript: &[u8], strategy: Strategy) -> anyhow::Result<Self> {
        Self::compacted(transcript, memory().strategy(strategy), 1)
    }

    /// Imports the conversation of a case in `handoffs` parts of equal length, and hands over after each: everything but the
    /// newest group, or what an eighth of the budget holds, goes into one summary of at most the budget.
    pub(super) fn handed_over(case: &Case, budget: u64, handoffs: usize) -> anyhow::Result<Self> {
        let keep = CutPolicy::RecentTokens { tokens: budget / 8 };
        let policy = HandoffPolicy {
            keep,
            summary_tokens: budget,
            prefix_tokens: budget / 2,
            split_turns: false,
            min_tokens: 0,
            max_source_tokens: None,
            ..HandoffPolicy::default()
        };
        let builder = memory().handoff(policy).estimator(Arc::new(TOKENS));
        Self::compacted(&case.before, builder, handoffs)
    }

    /// Imports a transcript's conversation in parts, and compacts after each. Nothing is read from the system's clock, so
    /// that every run has the same ids and figures.
    fn compacted(before: &[u8], builder: Builder, parts: usize) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .context("start a runtime")?;
        let transcript = read(before, &ReadOptions::default())?;
        let (session, plain) = runtime.block_on(async {
            let memory = builder.open().await?;
            let mut sessions = transcript.sessions.iter();
            let main = sessions.find(|session| session.origin == Origin::Root);
            let main = main.or(transcript.sessions.first());
            let main = main.context("no conversation")?;
            let session = memory.open_log(main).await?;
            let part = main.messages.len().div_ceil(parts).max(1);
            for messages in main.messages.chunks(part) {
                let stored = session.ingest_batch(messages.to_vec()).await?;
                ensure!(stored.conflicts() == 0, "a message was refused");
                session.compact(Mode::Full).await?;
            }
            anyhow::Ok((session, plain(&main.messages)))
        })?;
        Ok(Self {
            plain,
            runtime,
            session,
        })
    }

    /// Returns the text of the context within `budget` tokens; an empty one where the library says
    /// that the budget is too small.
    pub(super) fn text(&self, budget: u64) -> anyhow::Result<String> {
        let Some(context) = self.assembled(budget, &AssemblyPolicy::default())? else {
            return Ok(String::new());
        };
        let text = plain(&context.to_messages());
        let tokens = TOKENS.text(&text);
        ensure!(
            tokens.max(context.tokens) <= budget,
            "the context costs {} tokens, its text {tokens}: over its budget of {budget}",
            context.tokens
        );
        Ok(text)
    }

    /// Returns the context as the program's `context` makes it, and its text; `None` where the budget is too small.
    pub(crate) fn context(&self, budget: u64) -> anyhow::Result<Option<(Context, String)>> {
        let context = self.assembled(budget, &AssemblyPolicy::once())?;
        Ok(context.map(|context| {
            let text = plain(&context.to_messages());
            (context, text)
        }))
    }

    fn assembled(&self, budget: u64, policy: &AssemblyPolicy) -> anyhow::Result<Option<Context>> {
        let context = self
            .session
            .assemble(AssembleRequest::new(Budget::tokens(budget), policy.clone()));
        match self.runtime.block_on(context) {
            Ok(context) => Ok(Some(context)),
            Err(error) if matches!(error.kind(), ErrorKind::BudgetTooSmall { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Cost of all messages, in tokens of the session's estimator.
    pub(crate) fn log_tokens(&self) -> anyhow::Result<u64> {
        let info = self.runtime.block_on(self.session.info())?;
        Ok(info.conversation.tokens)
    }

    /// Returns what `memory_recall` answers a question within `budget` tokens.
    pub(crate) fn recall(&self, question: &str, budget: u64) -> anyhow::Result<RecallAnswer> {
        let args = RecallArgs {
            budget,
            ..RecallArgs::query(question)
        };
        let answer = self.session.retrieval();
        Ok(self.runtime.block_on(answer.recall(args))?)
    }
}
