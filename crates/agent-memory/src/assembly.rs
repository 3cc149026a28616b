//! Assembling a session's contexts.

use context_assembler::{AssemblyPolicy, Budget, Context, assemble_with_preamble};
use memory_store::Snapshot;

use crate::assembly_input::{read_input, read_whole_view};
use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Assembles a context of at most `budget` tokens, by the memory's assembly policy. The estimate
    /// stays below the budget divided by [`Session::safety_factor`], unless the budget has a factor
    /// of its own.
    ///
    /// # Errors
    /// `BudgetTooSmall` when the newest messages do not fit even shortened; or when the store fails.
    pub async fn assemble(&self, budget: Budget) -> Result<Context> {
        self.assemble_with(budget, &self.memory().inner.assembly.clone())
            .await
    }

    /// Assembles a context as [`Session::assemble`], by this policy.
    ///
    /// # Errors
    /// As [`Session::assemble`].
    pub async fn assemble_with(&self, budget: Budget, policy: &AssemblyPolicy) -> Result<Context> {
        let snapshot = self.snapshot().await?;
        self.assemble_snapshot(&snapshot, budget, policy).await
    }

    pub(crate) async fn assemble_snapshot(
        &self,
        snapshot: &Snapshot,
        budget: Budget,
        policy: &AssemblyPolicy,
    ) -> Result<Context> {
        let budget = self.scaled(budget).await?;
        let store = &*self.memory().inner.store;
        // Identity files may change meanwhile: they are read once for a context.
        let beginning = self.beginning();
        let preamble = beginning.preamble();
        let (view_tokens, fixed) = (snapshot.tokens(), preamble.tokens(self.accounting()));
        let input = match policy.input_limits(view_tokens, fixed, budget) {
            Some(limits) => read_whole_view(store, snapshot, limits).await?,
            None => {
                let tokens_before = policy.first_needed_token(view_tokens, fixed, budget);
                read_input(store, snapshot, tokens_before, policy.most_tail_messages()).await?
            }
        };
        Ok(assemble_with_preamble(
            &input,
            &preamble,
            budget,
            policy,
            self.accounting(),
        )?)
    }

    /// Cost of every request besides the view, in tokens: the system prompt, the tools, the identity and the
    /// request's overhead.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        self.beginning().preamble().tokens(self.accounting())
    }
}
