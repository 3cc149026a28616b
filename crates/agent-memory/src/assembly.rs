//! Assembling a session's contexts.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, Form, Item, Preamble, assemble,
};
use handoff_compactor::FileLedger;
use memory_model::Accounting as _;
use memory_store::Snapshot;

use crate::assembly_exact::ExactCounter;
use crate::assembly_input::InputReader;
use crate::error::Result;
use crate::requests::Request;
use crate::session::Session;
use crate::strategy::Strategy;

/// Returns whether a view has a summary that an author wrote to continue from. Its messages are then not shown, even if
/// there is room for them. Extracts are only a place to look things up.
fn is_handed_over(view: &AssemblyInput) -> bool {
    let mut items = view.items.iter();
    items.any(|item| matches!(item, Item::Summary(summary) if !summary.provisional))
}

/// Divisor of the room. A live session's whole log is shown only if this part of the room stays free for new messages.
const ROOM_TO_GROW: u64 = 4;

/// Divisor of the room. The lists of files may cost this part of the room, but at most [`MOST_FILES`] tokens.
const FILES_SHARE: u64 = 16;
const MOST_FILES: u64 = 1_000;

/// Options for assembling a context: see [`Session::assemble`]. A [`Budget`] converts into a request.
#[derive(Debug, Clone)]
pub struct AssembleRequest {
    /// Maximum size of the context, in tokens and optionally in bytes.
    pub budget: Budget,
    /// Policy that selects and shortens the content of the context; `None` uses the memory's policy.
    pub policy: Option<AssemblyPolicy>,
}

impl AssembleRequest {
    /// Creates a request with this budget and this assembly policy.
    pub fn new(budget: Budget, policy: AssemblyPolicy) -> Self {
        Self {
            budget,
            policy: Some(policy),
        }
    }
}

impl From<Budget> for AssembleRequest {
    fn from(budget: Budget) -> Self {
        Self {
            budget,
            policy: None,
        }
    }
}

impl Session {
    /// Assembles a context, the list of messages to send to a model, within a [`Budget`]. A request without an
    /// assembly policy uses the memory's policy.
    ///
    /// The estimated cost is at most the budget divided by a safety factor. The factor is the budget's, or
    /// [`SessionUsage::safety_factor`](crate::tokens::SessionUsage::safety_factor) if the budget has none. With a
    /// policy like [`once`](AssemblyPolicy::once), the feature `exact` and a budget without a factor, the tokens are
    /// counted exactly instead, if this build has the tokenizer of the estimator and no other factor was learned. The
    /// context is then assembled again to use the budget.
    ///
    /// # Errors
    /// `BudgetTooSmall` if the last messages do not fit even if they are shortened, `TooFewBytes` if they do not fit in
    /// the budget's bytes, and `Store` if the store fails.
    pub async fn assemble(&self, request: impl Into<AssembleRequest>) -> Result<Context> {
        let snapshot = self.snapshot().await?;
        self.assemble_at(&snapshot, request.into()).await
    }

    /// Assembles a context from one state of the view.
    pub(crate) async fn assemble_at(
        &self,
        snapshot: &Snapshot,
        request: AssembleRequest,
    ) -> Result<Context> {
        let policy = request.policy.as_ref();
        let policy = policy.unwrap_or(&self.memory().inner.assembly);
        self.assemble_snapshot(snapshot, request.budget, policy)
            .await
    }

    pub(crate) async fn assemble_snapshot(
        &self,
        snapshot: &Snapshot,
        budget: Budget,
        policy: &AssemblyPolicy,
    ) -> Result<Context> {
        let scaled = self.scaled(budget).await?;
        // Identity files may change during the call, so they are read once for each context.
        let beginning = self.beginning();
        let preamble = beginning.preamble();
        let input = self.input(snapshot, &preamble, scaled, policy).await?;
        let accounting = self.accounting();
        let context = assemble(&input, &preamble, scaled, policy, accounting)?;
        let estimator = accounting.estimator();
        let is_cut = snapshot.log_tokens > context.receipt.limit;
        let is_estimated = budget.safety_factor().is_none()
            && scaled.safety_factor() == Some(estimator.safety_factor());
        let is_live = policy.form.is_live() || policy.whole_tail.is_some();
        if is_live || !is_cut || !is_estimated {
            return Ok(context);
        }
        match ExactCounter::of(estimator) {
            Some(counter) => {
                self.assemble_exactly(snapshot, &preamble, (scaled, policy), context, &counter)
                    .await
            }
            None => Ok(context),
        }
    }

    /// Reads the summaries and messages from which a context is assembled. The budget must have a safety factor.
    pub(crate) async fn input(
        &self,
        snapshot: &Snapshot,
        preamble: &Preamble<'_>,
        budget: Budget,
        policy: &AssemblyPolicy,
    ) -> Result<AssemblyInput> {
        let fixed = preamble.tokens(self.accounting());
        let mut limits = policy.input_limits(snapshot.tokens(), fixed, budget);
        let room = budget.limit().saturating_sub(fixed);
        let request = self.request(snapshot).await?;
        if request.largest <= limits.tokens_per_message {
            limits.tokens_per_message = u64::MAX;
        }
        let reader = InputReader {
            store: &*self.memory().inner.store,
            snapshot,
            limits,
            room,
        };
        let view = match self.strategy() {
            Some(Strategy::Handoff) => Some(reader.view().await?),
            _ => None,
        };
        let may_unfold = policy.whole_tail.is_none() && !view.as_ref().is_some_and(is_handed_over);
        let whole = match may_unfold && policy.form.is_live() {
            true => self.whole_log(&reader, &request).await?,
            false => None,
        };
        let mut input = match whole.or(view) {
            Some(input) => input,
            None => reader.view().await?,
        };
        if may_unfold && policy.form == Form::Once {
            reader.unfold(&mut input).await?;
            reader.fill(&mut input).await?;
        }
        // Between two turns of a live session no request is running, and the beginning of the context stays unchanged.
        if policy.form == Form::Once || request.reply.is_none() {
            input.requested = request.messages;
        }
        reader.quote(&mut input).await?;
        // The state has the same room for each factor that is tried, and so for each writer of the summaries.
        let of_estimator = self.accounting().estimator().safety_factor();
        let limit = budget.with_safety_factor(of_estimator).limit();
        let of_state = room.min(limit.saturating_sub(fixed));
        self.add_state(snapshot, (room, of_state), policy, &mut input)
            .await?;
        self.add_files(room, &mut input);
        Ok(input)
    }

    /// Adds the lists of files that the conversation read and modified to the last summary of handoffs. The lists cost
    /// at most a part of `room` tokens.
    fn add_files(&self, room: u64, input: &mut AssemblyInput) {
        let policy = || self.memory().inner.planners.handoff_policy();
        if self.strategy() != Some(Strategy::Handoff) || !policy().list_files {
            return;
        }
        let summaries = input.items.iter_mut().filter_map(|item| match item {
            Item::Summary(summary) => Some(summary),
            _ => None,
        });
        let (mut files, mut last) = (FileLedger::default(), None);
        for summary in summaries {
            files.add_ledger(&FileLedger::of(summary).unwrap_or_default());
            last = Some(summary);
        }
        let most = (room / FILES_SHARE).min(MOST_FILES);
        if let Some(summary) = last
            && let Some(body) = files.with_footer(&summary.body, most, self.accounting())
        {
            summary.body = body;
        }
    }

    /// Reads the whole log of a live session, for a context that shows shortened messages in place of summaries.
    /// Returns `None` if the view must be read instead: the log fits into the room, or it costs more than three
    /// quarters of the room even if large messages are shortened. The last quarter is left for new messages.
    async fn whole_log(
        &self,
        reader: &InputReader<'_>,
        request: &Request,
    ) -> Result<Option<AssemblyInput>> {
        let (room, log_tokens) = (reader.room, reader.snapshot.log_tokens);
        let within = room - room / ROOM_TO_GROW;
        let is_small = log_tokens <= reader.limits.tokens_per_message.max(room);
        if is_small || request.outgrown >= within {
            return Ok(None);
        }
        let all = reader.whole_log(within).await?;
        if all.is_none() {
            let requests = &self.memory().inner.requests;
            requests.outgrown(reader.snapshot.conversation, within);
        }
        Ok(all)
    }

    /// Returns the cost of the parts that every request has in addition to the view, in tokens: the system prompt, the
    /// tools, the identity and the request's overhead.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        self.beginning().preamble().tokens(self.accounting())
    }
}
