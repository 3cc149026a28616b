//! Token usage that providers report, and the safety factor that is learned from it. Stored token counts never change:
//! budgets are divided by the factor instead.

use compaction_runner::{CancellationToken, Trigger, WindowUse};
use context_assembler::{Budget, Context};
use memory_model::{Accounting as _, RawJson, Seq, SeqRange, ViewName};
use memory_store::{LogRead, Snapshot};
use serde::{Deserialize, Serialize};
use token_estimate::{
    Calibration, ContextTokens, ResponseStatus, SafetyFactor, Usage, UsageTracker,
};

use crate::error::{Error, ErrorKind, Result};
use crate::sent::SentContext;
use crate::session::Session;

/// Key under which the store keeps a session's usage.
const KEY: &str = "usage";
/// Maximum number of retries of a write. A retry is needed if another process has changed the stored value.
const MAX_RETRIES: usize = 8;
/// Step of the applied safety factor, in thousandths. The applied factor is a multiple of it, so that small changes of
/// the learned factor do not change the beginning of contexts.
const STEP: u32 = 25;
/// Minimum decrease of the applied safety factor, in thousandths. The applied factor stays while the learned factor is
/// less than this amount below it.
const SLACK: u32 = 100;

/// Token usage that a provider reported for one request of a session.
#[derive(Debug, Clone)]
#[must_use]
pub struct ObservedUsage {
    /// Name of the model that answered.
    pub model: String,
    /// Numbers of tokens that the provider reported.
    pub usage: Usage,
    /// Status with which the response ended. The usage of an aborted or failed response is ignored.
    pub status: ResponseStatus,
    /// Position of the response in the log; `None` if the response is the last message.
    pub at: Option<Seq>,
    /// Estimated number of tokens that were sent in addition to the context, such as instructions and tools that the
    /// session does not know: see [`OpenSession::system`](crate::OpenSession::system). If the number is left at 0,
    /// these tokens raise the model's safety factor, so that budgets leave space for them.
    pub other_tokens: u64,
    /// Estimated cost of the context that was sent, in tokens; `None` if it is not known. See [`Self::with_context`].
    pub context_tokens: Option<u64>,
    /// Estimated cost of the content that the context left out to fit its budget, in tokens.
    pub left_out: u64,
}

impl ObservedUsage {
    /// Creates the usage of a completed response, which is the last message of the session.
    pub fn new(model: impl Into<String>, usage: Usage) -> Self {
        Self {
            model: model.into(),
            usage,
            status: ResponseStatus::Completed,
            at: None,
            other_tokens: 0,
            context_tokens: None,
            left_out: 0,
        }
    }

    /// Sets the context that was sent. Without a context, the model's safety factor is not adjusted, and
    /// [`Session::usage`] does not count the content that the context left out to fit its budget.
    pub fn with_context(self, context: &Context) -> Self {
        self.with_sent(SentContext::of(context))
    }

    pub(crate) fn with_sent(mut self, sent: SentContext) -> Self {
        self.context_tokens = Some(sent.tokens);
        self.left_out = sent.left_out;
        self
    }
}

/// Cost of a session's view, and the safety factor by which its budgets are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionUsage {
    /// Cost of the view (the compacted log), in tokens: the last usage that the provider reported, plus the estimated
    /// cost of later messages. Without a report since the last compaction, it is the estimated cost of the whole view.
    pub context: ContextTokens,
    /// Factor by which the session's budgets are divided before estimates are compared with them. It is an upper
    /// quantile of reported tokens / estimated tokens, learned for the model of the last report. If no factor was
    /// learned, it is the estimator's documented factor.
    pub safety_factor: SafetyFactor,
}

/// Usage of a session in the form in which it is stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredUsage {
    /// Model of the last accepted report.
    model: Option<String>,
    /// Safety factor that was learned for this model.
    pub(crate) safety_factor: Option<SafetyFactor>,
    calibration: Calibration,
    tracker: UsageTracker,
    /// Name of the view at the last report. [`Self::version`] is its version.
    view: Option<ViewName>,
    version: u64,
    /// Cost of the log through the position of the last report, in tokens. [`Self::left_out`] is the cost of the
    /// content that the reported context left out.
    covered: u64,
    left_out: u64,
}

impl StoredUsage {
    /// Drops the report if the view was compacted after it.
    fn drop_outdated(&mut self, now: &Snapshot) {
        if (self.view.as_ref(), self.version) == (Some(&now.view), now.version.0) {
            return;
        }
        if let Some(at) = self.tracker.reported_at() {
            self.tracker.compacted(at);
        }
        self.view = Some(now.view.clone());
        self.version = now.version.0;
    }

    pub(crate) fn tokens(mut self, now: &Snapshot) -> ContextTokens {
        self.drop_outdated(now);
        let after = now.log_tokens.saturating_sub(self.covered);
        self.tracker
            .measure_sums(now.tokens(), after.saturating_add(self.left_out))
    }

    /// Learns the model's safety factor from one request. `documented` is the estimator's factor, which is the minimum
    /// until enough requests were observed.
    fn learn(&mut self, model: String, estimated: u64, reported: u64, documented: SafetyFactor) {
        if !self.calibration.observe(&model, estimated, reported) {
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
    /// Records token usage that a provider reported. Returns whether the report was accepted. Ignores reports of 0
    /// tokens, reports of aborted or failed responses, and reports that are older than the last compaction or the last
    /// accepted report.
    ///
    /// Append the response before this call; [`Session::reply`] does both. After the report, [`Session::usage`] and
    /// [`Memory::needs_compaction`](crate::Memory::needs_compaction) start from the reported number, and
    /// [`Session::assemble`] divides budgets by the safety factor that was learned for the model. The report and the
    /// factor are stored.
    ///
    /// # Errors
    /// `Invalid` if the response's position is not in the log, and `Store` if the store fails.
    pub async fn observe_usage(&self, observed: &ObservedUsage) -> Result<bool> {
        let store = &*self.memory().inner.store;
        let documented = self.accounting().estimator().safety_factor();
        let mut retries = 0;
        loop {
            let snapshot = self.snapshot().await?;
            let at = observed.at.unwrap_or(snapshot.head);
            let covered = self.covered(&snapshot, at).await?;
            let (mut usage, revision) = self.stored_usage().await?;
            usage.drop_outdated(&snapshot);
            let counts = usage
                .tracker
                .observe(at.0.into(), &observed.usage, observed.status);
            if !counts {
                return Ok(false);
            }
            (usage.covered, usage.left_out) = (covered, observed.left_out);
            if let Some(context) = observed.context_tokens {
                let estimated = context.saturating_add(observed.other_tokens);
                let reported = observed.usage.prompt_tokens();
                usage.learn(observed.model.clone(), estimated, reported, documented);
            }
            let value = RawJson::from_value(&usage)
                .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
            match store
                .put_state(self.id(), KEY, revision, Some(&value))
                .await
            {
                Err(error)
                    if error.kind() == memory_store::ErrorKind::Stale && retries < MAX_RETRIES =>
                {
                    retries += 1;
                }
                put => {
                    put?;
                    return Ok(true);
                }
            }
        }
    }

    /// Returns the cost of the session's view, and the safety factor by which its budgets are divided.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn usage(&self) -> Result<SessionUsage> {
        let snapshot = self.snapshot().await?;
        let (stored, _) = self.stored_usage().await?;
        let documented = self.accounting().estimator().safety_factor();
        Ok(SessionUsage {
            safety_factor: stored.safety_factor.unwrap_or(documented),
            context: stored.tokens(&snapshot),
        })
    }

    /// Returns whether a trigger fires for the session's view and a compaction would change the view.
    pub(crate) async fn needs_compaction(&self, trigger: &Trigger) -> Result<bool> {
        let usage = WindowUse {
            tokens: self.usage().await?.context.tokens(),
            stored_tokens: self.stored_tokens_for([trigger]).await?,
            ..WindowUse::default()
        };
        if !trigger.fires(&usage) {
            return Ok(false);
        }
        Ok(self.compaction(CancellationToken::new()).has_work().await?)
    }

    /// Returns the estimate over the session's stored lines if one of these triggers asks for it, otherwise 0.
    pub(crate) async fn stored_tokens_for<'a>(
        &self,
        triggers: impl IntoIterator<Item = &'a Trigger>,
    ) -> Result<u64> {
        let mut triggers = triggers.into_iter();
        match triggers.any(|trigger| matches!(trigger, Trigger::StoredLines { .. })) {
            true => self.stored_tokens().await,
            false => Ok(0),
        }
    }

    #[cfg(not(feature = "conventions"))]
    async fn stored_tokens(&self) -> Result<u64> {
        Err(Error::new(
            ErrorKind::Invalid,
            "the trigger `StoredLines` needs the feature `conventions`: enable it, or use another trigger",
        ))
    }

    /// Returns the budget with a safety factor: the budget's own factor if it has one, otherwise the session's.
    pub(crate) async fn scaled(&self, budget: Budget) -> Result<Budget> {
        match budget.safety_factor() {
            Some(_) => Ok(budget),
            None => {
                let stored = self.stored_usage().await?.0.safety_factor;
                let documented = self.accounting().estimator().safety_factor();
                Ok(budget.with_safety_factor(stored.unwrap_or(documented)))
            }
        }
    }

    /// Returns the cost of the log through position `at`, in tokens.
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
                "the session {} has no message {at}: ingest the response before its usage",
                self.key()
            );
            Error::new(ErrorKind::Invalid, text)
        })
    }

    /// Reads the stored usage and its revision. Stored usage that cannot be parsed was written by a newer version. It
    /// counts as empty usage.
    pub(crate) async fn stored_usage(&self) -> Result<(StoredUsage, u64)> {
        let store = &self.memory().inner.store;
        let Some(state) = store.state(self.id(), KEY).await? else {
            return Ok((StoredUsage::default(), 0));
        };
        let usage = serde_json::from_str(state.value.as_str()).unwrap_or_default();
        Ok((usage, state.revision))
    }
}
