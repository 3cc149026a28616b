//! Assembles a context again by its exact count, so that it fills its budget.

use context_assembler::{AssemblyPolicy, Budget, Context, ContextAccounting, Preamble, assemble};
use memory_model::Accounting;
use memory_store::Snapshot;
use token_estimate::{SafetyFactor, TokenEstimator};

use crate::error::Result;
use crate::session::Session;

/// Maximum number of contexts that are assembled by the counts of earlier ones.
const ROUNDS: usize = 4;

/// Counts tokens with the tokenizer that an estimator approximates.
pub(crate) struct ExactCounter {
    accounting: ContextAccounting,
    estimated: SafetyFactor,
}

impl ExactCounter {
    /// Returns the counter for an estimator; `None` if its tokenizer is not public, or not in this build.
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

    /// Counts the tokens of a request. Tools are counted by their estimate and the estimator's factor.
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
    /// Assembles `context` again with the ratio of its exact to its estimated cost as the factor. The result is within
    /// the budget by its exact count.
    pub(crate) async fn assemble_exactly(
        &self,
        snapshot: &Snapshot,
        preamble: &Preamble<'_>,
        within: Budget,
        context: Context,
        counter: &ExactCounter,
    ) -> Result<Context> {
        let budget = context.budget;
        let counted = counter.count(&context);
        let mut factor = counted as f64 / estimated(&context).max(1) as f64;
        let policy = AssemblyPolicy::once();
        let mut input = None;
        let mut newest = context.clone();
        for _ in 0..ROUNDS {
            // Rounded up: a factor has three decimals.
            let rounded = SafetyFactor::new(factor + 0.001);
            let within = within.with_safety_factor(rounded);
            // Later rounds have less room: what was read for the first one is enough.
            let input = match &input {
                Some(input) => input,
                None => input.insert(self.input(snapshot, preamble, within, &policy).await?),
            };
            newest = assemble(input, preamble, within, &policy, self.accounting())?;
            let counted = counter.count(&newest);
            if counted <= budget {
                return Ok(newest);
            }
            // Less than this context costs, so that the next one is another.
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

/// The estimated cost of a request with a context, in tokens.
fn estimated(context: &Context) -> u64 {
    let request = context.receipt.request_tokens;
    context.tokens.saturating_add(request)
}
