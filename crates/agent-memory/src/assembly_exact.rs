//! Assembles a context again with an exact token count, so that the context fills its budget.

use context_assembler::{AssemblyPolicy, Budget, Context, ContextAccounting, Preamble, assemble};
use memory_model::Accounting;
use memory_store::Snapshot;
use token_estimate::{SafetyFactor, TokenEstimator};

use crate::error::Result;
use crate::session::Session;

/// Maximum number of attempts. Each attempt corrects the safety factor by the exact count of the previous attempt.
const ROUNDS: usize = 4;

/// Counts tokens with the tokenizer that an estimator approximates.
pub(crate) struct ExactCounter {
    accounting: ContextAccounting,
    estimated: SafetyFactor,
}

impl ExactCounter {
    /// Returns the counter for an estimator; `None` if the tokenizer is not public or is not part of this build.
    pub(crate) fn of(estimator: &dyn TokenEstimator) -> Option<Self> {
        let name = match estimator.id().name() {
            "calibrated" => "o200k",
            "calibrated-cl100k" => "cl100k",
            _ => return None,
        };
        Some(Self {
            accounting: ContextAccounting::new(token_estimate::estimator(name).ok()?),
            estimated: estimator.safety_factor(),
        })
    }

    /// Counts the tokens of a request exactly, except for its tools: their estimate is multiplied by the estimator's
    /// safety factor.
    fn count(&self, context: &Context) -> u64 {
        let messages = context.messages.iter();
        let messages = messages.map(|message| self.accounting.parts(message.role, &message.parts));
        let tools = context.receipt.tools_tokens;
        let overhead = context.receipt.request_tokens.saturating_sub(tools);
        messages
            .chain([overhead, self.estimated.multiply(tools)])
            .fold(0, u64::saturating_add)
    }
}

impl Session {
    /// Assembles a context again, with the ratio of the exact to the estimated cost of `context` as the safety factor.
    /// Returns the first context whose exact cost is within the budget. If no attempt succeeds, returns `context` if
    /// its exact cost is within the budget, otherwise the last attempt.
    pub(crate) async fn assemble_exactly(
        &self,
        snapshot: &Snapshot,
        preamble: &Preamble<'_>,
        (within, policy): (Budget, &AssemblyPolicy),
        context: Context,
        counter: &ExactCounter,
    ) -> Result<Context> {
        let budget = context.budget;
        let counted = counter.count(&context);
        let mut factor = counted as f64 / estimated(&context).max(1) as f64;
        let mut input = None;
        let mut newest = context.clone();
        for _ in 0..ROUNDS {
            // Rounded up: a factor has three decimals.
            let rounded = SafetyFactor::new(factor + 0.001);
            let within = within.with_safety_factor(rounded);
            // Later rounds have less room, so the input of the first round is sufficient for them.
            let input = match &input {
                Some(input) => input,
                None => input.insert(self.input(snapshot, preamble, within, policy).await?),
            };
            newest = assemble(input, preamble, within, policy, self.accounting())?;
            let counted = counter.count(&newest);
            if counted <= budget {
                return Ok(newest);
            }
            // With this factor the limit is lower than the cost of this context, so the next context differs.
            let least = budget as f64 / (estimated(&newest).max(2) - 1) as f64;
            let scaled = factor.max(1.0) * counted as f64 / budget.max(1) as f64;
            factor = scaled.max(least);
        }
        Ok(match counted <= budget {
            true => context,
            false => newest,
        })
    }
}

/// Returns the estimated cost of a context and of the other parts of its request, in tokens.
fn estimated(context: &Context) -> u64 {
    let request = context.receipt.request_tokens;
    context.tokens.saturating_add(request)
}
