//! What the library shows of a conversation within a budget.

use std::sync::Arc;

use agent_memory::model::StepClock;
use agent_memory::store::InMemoryStore;
use agent_memory::transcripts::{ReadOptions, read};
use agent_memory::{Budget, ErrorKind, Memory, Mode, Session, Timestamp};
use anyhow::{Context as _, ensure};
use token_estimate::{Exact, TokenEstimator};
use tokio::runtime::Runtime;

use super::cases::Case;
use crate::retention::transcripts::plain;

/// The tokenizer of all figures.
pub(super) const TOKENS: Exact = Exact::O200k;

/// A conversation that the library holds, compacted as far as its defaults go.
pub(super) struct Ours {
    runtime: Runtime,
    session: Session,
    /// The conversation as plain lines.
    pub(super) plain: String,
}

impl Ours {
    /// Imports and compacts the conversation of a case. Nothing is read from the system's clock, so
    /// that every run has the same ids and figures.
    pub(super) fn of(case: &Case) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .context("start a runtime")?;
        let transcript = read(case.before.as_slice(), &ReadOptions::default())?;
        let clock = || Arc::new(StepClock::new(Timestamp(0), 0));
        let session = runtime.block_on(async {
            let memory = Memory::builder()
                .store(Arc::new(InMemoryStore::new().with_clock(clock())))
                .clock(clock())
                .owner("bench")
                .without_background()
                .estimator(Arc::new(TOKENS))
                .open()
                .await?;
            let imported = memory.import(&transcript).await?;
            let main = imported.main(&transcript).context("no conversation")?;
            let session = memory.get_session(main.clone()).await?;
            session.compact(Mode::Full).await?;
            anyhow::Ok(session)
        })?;
        let main = transcript.sessions.iter().find(|s| s.key == *session.key());
        Ok(Self {
            plain: main.map_or_else(String::new, |log| plain(&log.messages)),
            runtime,
            session,
        })
    }

    /// Returns the text of the context within `budget` tokens; an empty one where the library says
    /// that the budget is too small.
    pub(super) fn text(&self, budget: u64) -> anyhow::Result<String> {
        let context = self.session.assemble(Budget::tokens(budget));
        let context = match self.runtime.block_on(context) {
            Ok(context) => context,
            Err(error) if matches!(error.kind(), ErrorKind::BudgetTooSmall { .. }) => {
                return Ok(String::new());
            }
            Err(error) => return Err(error.into()),
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
}
