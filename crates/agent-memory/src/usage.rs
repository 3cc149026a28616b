//! What providers say that requests cost, and what follows from it. Counts stay as they are stored;
//! budgets are scaled.

use context_assembler::{Budget, Context};
use memory_model::{Accounting as _, RawJson, Seq, SeqRange, ViewName};
use memory_store::{LogRead, Snapshot};
use serde::{Deserialize, Serialize};
use token_estimate::{Calibration, ContextTokens, Outcome, SafetyFactor, Usage, UsageTracker};

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// The key of the store's state.
const KEY: &str = "usage";
/// How often a write that another process came before is tried again.
const TRIES: usize = 8;
/// The factor that is in use is a multiple of this, in thousandths, so that the start of a context
/// does not move with every figure.
const STEP: u32 = 25;
/// By how much the learnt factor must be below the one in use before that falls, in thousandths.
const SLACK: u32 = 100;

/// What a provider said about one request of a session.
#[derive(Debug, Clone)]
#[must_use]
pub struct ObservedUsage {
    model: String,
    usage: Usage,
    outcome: Outcome,
    at: Option<Seq>,
    estimated: Option<u64>,
    left_out: u64,
}

impl ObservedUsage {
    /// The figures of a completed response, which is the newest message of the session.
    pub fn new(model: impl Into<String>, usage: Usage) -> Self {
        Self {
            model: model.into(),
            usage,
            outcome: Outcome::Completed,
            at: None,
            estimated: None,
            left_out: 0,
        }
    }

    /// The context that was sent. Only with it the model's factor is learnt, and what the context
    /// left out for its budget is not forgotten in [`Session::context_tokens`].
    pub fn with_context(mut self, context: &Context) -> Self {
        let dropped = context.receipt.dropped.iter().map(|dropped| dropped.tokens);
        self.left_out = dropped.fold(0, u64::saturating_add);
        self.estimated = Some(context.tokens.saturating_add(self.estimated.unwrap_or(0)));
        self
    }

    /// The estimate, in tokens, of what was sent besides the context: instructions, tools. Without
    /// it they raise the model's factor, so that budgets leave room for them.
    pub fn with_more_sent(mut self, tokens: u64) -> Self {
        self.estimated = Some(tokens.saturating_add(self.estimated.unwrap_or(0)));
        self
    }

    /// How the response ended. The figures of aborted and failed ones do not count.
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Where the response stands in the log, if it is not the newest message.
    pub fn with_position(mut self, at: Seq) -> Self {
        self.at = Some(at);
        self
    }
}

/// What is kept in the store.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Of the newest request that counted.
    model: Option<String>,
    /// The factor in use for each model's budgets is that of the newest model.
    safety_factor: Option<SafetyFactor>,
    calibration: Calibration,
    tracker: UsageTracker,
    /// The view that the figure was about.
    view: Option<ViewName>,
    version: u64,
    /// The cost of the log through the figure's position, and of what its context left out.
    covered: u64,
    left_out: u64,
}

impl Kept {
    /// Figures that are older than the newest compaction do not count.
    fn settle(&mut self, now: &Snapshot) {
        if (self.view.as_ref(), self.version) == (Some(&now.view), now.version.0) {
            return;
        }
        if let Some(at) = self.tracker.reported_at() {
            self.tracker.compacted(at);
        }
        self.view = Some(now.view.clone());
        self.version = now.version.0;
    }

    fn tokens(mut self, now: &Snapshot) -> ContextTokens {
        self.settle(now);
        let after = now.log_tokens.saturating_sub(self.covered);
        self.tracker
            .measure_sums(now.tokens(), after.saturating_add(self.left_out))
    }

    /// `documented` is what the estimator says of itself.
    fn learn(&mut self, model: String, estimated: u64, real: u64, documented: SafetyFactor) {
        if !self.calibration.observe(&model, estimated, real) {
            return;
        }
        let learnt = self.calibration.safety_factor_or(&model, documented);
        let same = self.model.as_deref() == Some(&model);
        let in_use = self.safety_factor.filter(|_| same);
        let learnt = learnt.thousandths();
        let keep = in_use
            .filter(|used| (learnt..learnt.saturating_add(SLACK)).contains(&used.thousandths()));
        let stepped = learnt.div_ceil(STEP).saturating_mul(STEP);
        self.safety_factor = keep.or(Some(SafetyFactor::from_thousandths(stepped)));
        self.model = Some(model);
    }
}

impl Session {
    /// Notes what a provider said that a request cost, and says whether it is of use. Figures of 0,
    /// of aborted or failed responses, older than the newest compaction, or older than one already
    /// noted are not.
    ///
    /// Store the response first. From then on [`Session::context_tokens`] and
    /// [`Session::needs_compaction`] begin with the real figure, and [`Session::assemble`] scales
    /// budgets by what was learnt of the model. Both survive reopening.
    ///
    /// # Errors
    /// `Invalid` when the response's position is not in the log; or when the store fails.
    pub async fn observe_usage(&self, observed: &ObservedUsage) -> Result<bool> {
        let store = &*self.memory().inner.store;
        let documented = self.accounting().estimator().safety_factor();
        let mut tries = 0;
        loop {
            let snapshot = self.snapshot().await?;
            let at = observed.at.unwrap_or(snapshot.head);
            let covered = self.covered(&snapshot, at).await?;
            let (mut kept, revision) = self.kept().await?;
            kept.settle(&snapshot);
            let counts = kept
                .tracker
                .observe(at.0.into(), &observed.usage, observed.outcome);
            if !counts {
                return Ok(false);
            }
            (kept.covered, kept.left_out) = (covered, observed.left_out);
            if let Some(estimated) = observed.estimated {
                let real = observed.usage.prompt_tokens();
                kept.learn(observed.model.clone(), estimated, real, documented);
            }
            let value = RawJson::from_value(&kept)
                .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
            match store
                .put_state(self.id(), KEY, revision, Some(&value))
                .await
            {
                Err(error) if error.kind() == memory_store::ErrorKind::Stale && tries < TRIES => {
                    tries += 1;
                }
                put => {
                    put?;
                    return Ok(true);
                }
            }
        }
    }

    /// What the session's view costs: the last figure of a provider and the estimate of what came
    /// after it, or the estimate of all of it while there is no figure newer than the newest
    /// compaction.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn context_tokens(&self) -> Result<ContextTokens> {
        let snapshot = self.snapshot().await?;
        Ok(self.kept().await?.0.tokens(&snapshot))
    }

    /// The factor that budgets of this session are divided by: an upper quantile of real / estimated,
    /// learnt for the model of the newest request, or the estimator's own while nothing was learnt.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn safety_factor(&self) -> Result<SafetyFactor> {
        let documented = self.accounting().estimator().safety_factor();
        Ok(self.kept().await?.0.safety_factor.unwrap_or(documented))
    }

    /// The size of the view by a provider's last figure, and the factor of budgets: both
    /// from one look-up.
    pub(crate) async fn size_and_factor(
        &self,
        now: &Snapshot,
    ) -> Result<(ContextTokens, SafetyFactor)> {
        let documented = self.accounting().estimator().safety_factor();
        let kept = self.kept().await?.0;
        let factor = kept.safety_factor.unwrap_or(documented);
        Ok((kept.tokens(now), factor))
    }

    /// The budget with the session's factor, unless it has one.
    pub(crate) async fn scaled(&self, budget: Budget) -> Result<Budget> {
        match budget.safety_factor() {
            Some(_) => Ok(budget),
            None => Ok(budget.with_safety_factor(self.safety_factor().await?)),
        }
    }

    /// The cost of the log through `at`.
    async fn covered(&self, snapshot: &Snapshot, at: Seq) -> Result<u64> {
        if at == snapshot.head {
            return Ok(snapshot.log_tokens);
        }
        let page = match SeqRange::new(at, at).filter(|_| at < snapshot.head) {
            Some(range) => {
                let read = LogRead::new(range);
                let store = &self.memory().inner.store;
                store.read(self.id(), &read).await?.items
            }
            None => Vec::new(),
        };
        page.first().map(|entry| entry.running).ok_or_else(|| {
            let text = format!(
                "session {} has no message {at}: store the response before its usage",
                self.key()
            );
            Error::new(ErrorKind::Invalid, text)
        })
    }

    /// What is kept, and its revision. What cannot be read was written by a newer version, and is
    /// begun anew.
    async fn kept(&self) -> Result<(Kept, u64)> {
        let store = &self.memory().inner.store;
        let Some(state) = store.state(self.id(), KEY).await? else {
            return Ok((Kept::default(), 0));
        };
        let kept = serde_json::from_str(state.value.as_str()).unwrap_or_default();
        Ok((kept, state.revision))
    }
}
