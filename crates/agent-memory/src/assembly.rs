//! Assembling a session's contexts.

use context_assembler::{AssemblyPolicy, Budget, Context, assemble};
use memory_store::Snapshot;

use crate::assembly_input::{fill, quote, read_view};
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
        self.assemble_with(budget, &self.memory().inner.assembly)
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
        let fixed = preamble.tokens(self.accounting());
        let limits = policy.input_limits(snapshot.tokens(), fixed, budget);
        let mut input = read_view(store, snapshot, limits).await?;
        if policy.steps == 0 && policy.whole_tail.is_none() {
            let room = budget.limit().saturating_sub(fixed);
            fill(store, snapshot, room, &mut input).await?;
        }
        let request = self.request(snapshot).await?;
        // Between two turns of a live session nothing is asked for, and the beginning stays as it is.
        if policy.steps == 0 || request.reply.is_none() {
            input.requested = request.messages;
        }
        quote(store, snapshot, &mut input).await?;
        let room = budget.limit().saturating_sub(fixed);
        self.add_state(snapshot, room, policy, &mut input);
        Ok(assemble(
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
