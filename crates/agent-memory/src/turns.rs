//! The moments of an agent's turn, and what is done in them.
//!
//! An agent loop calls [`Session::before_turn`] when a user speaks, [`Session::before_call`] for
//! each context that it sends to a model, and [`Session::after_turn`] when it has answered. The
//! [`TurnPolicy`] says which of them compacts, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compaction_runner::{Ahead, Cancel, ModelReport, Outcome, Trigger, WindowUse};
use context_assembler::{Budget, Context};
use memory_model::{ConversationId, Mode};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::session::Session;

/// How often one moment compacts at most while its trigger still fires.
const ROUNDS: usize = 4;

/// A model's window, and how much of it a context may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The model's window, in tokens.
    pub tokens: u64,
    /// What is kept free for the answer, in tokens. 8,192 (pi's document), but no more than a
    /// quarter of the window.
    pub reserve: u64,
    /// What the host's own system prompt and its tools cost, in tokens.
    #[serde(default)]
    pub system_tokens: u64,
}

impl Window {
    /// A window with the default reserve, and nothing of the host's own in it.
    pub fn new(tokens: u64) -> Self {
        Self {
            tokens,
            reserve: (tokens / 4).min(8_192),
            system_tokens: 0,
        }
    }

    /// Sets what is kept free for the answer.
    pub fn with_reserve(mut self, tokens: u64) -> Self {
        self.reserve = tokens;
        self
    }

    /// Sets what the host puts beside the context.
    pub fn with_system_tokens(mut self, tokens: u64) -> Self {
        self.system_tokens = tokens;
        self
    }

    /// What is left for a context.
    pub fn budget(&self) -> Budget {
        let taken = self.reserve.saturating_add(self.system_tokens);
        Budget::tokens(self.tokens.saturating_sub(taken))
    }
}

/// What a moment does about compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Nothing.
    #[default]
    Nothing,
    /// Above the hard threshold, publishes what is ready; waits for no model.
    Publish,
    /// As `Publish`; and above the soft threshold makes summaries ahead, beside the turns where
    /// the memory has somewhere to run them, and before it returns where it has not.
    Prepare,
    /// Above the hard threshold, compacts and waits for the model (anna's and koda's rule).
    Compact,
}

/// When and how an agent's turns compact.
///
/// By default summaries are made ahead, after the turn, from half of the window on; they are
/// published from three quarters on (anna's threshold), where a turn or a call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TurnPolicy {
    /// From when on summaries are made ahead. Above 0.5 of the window.
    pub soft: Trigger,
    /// From when on the view is compacted. Above 0.75 of the window, anna's default.
    pub hard: Trigger,
    /// What is done when a user's turn begins.
    pub before_turn: Action,
    /// What is done before each call of the model.
    pub before_call: Action,
    /// What is done when the turn is over.
    pub after_turn: Action,
}

impl Default for TurnPolicy {
    fn default() -> Self {
        Self {
            soft: Trigger::Fraction { of_window: 0.5 },
            hard: Trigger::default(),
            before_turn: Action::Publish,
            before_call: Action::Publish,
            after_turn: Action::Prepare,
        }
    }
}

impl TurnPolicy {
    /// anna's rule: after the turn, above three quarters of the window, compact and wait.
    pub fn anna() -> Self {
        Self {
            soft: Trigger::Never,
            hard: Trigger::default(),
            before_turn: Action::Nothing,
            before_call: Action::Nothing,
            after_turn: Action::Compact,
        }
    }

    /// No turn compacts; [`Session::compact`] does when it is asked to.
    pub fn manual() -> Self {
        Self {
            soft: Trigger::Never,
            hard: Trigger::Never,
            before_turn: Action::Nothing,
            before_call: Action::Nothing,
            after_turn: Action::Nothing,
        }
    }

    /// Sets the thresholds.
    pub fn with_thresholds(mut self, soft: Trigger, hard: Trigger) -> Self {
        (self.soft, self.hard) = (soft, hard);
        self
    }

    /// Sets what the three moments do: before a turn, before a call, after a turn.
    pub fn with_actions(mut self, actions: [Action; 3]) -> Self {
        [self.before_turn, self.before_call, self.after_turn] = actions;
        self
    }
}

/// What a moment did about compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upkeep {
    /// What the view cost when the moment began, in tokens, beside the window.
    pub usage: WindowUse,
    /// The compactions that it ran, in order.
    pub compactions: Vec<Outcome>,
    /// What was made ahead: by this moment where it waited for it, else beside the turns since
    /// the moment before.
    pub prepared: Option<Ahead>,
    /// How many summaries the model did not write, and why: those of `compactions` and of
    /// `prepared`. A summary that was made ahead is told of when it is made and when it is
    /// published.
    pub model: ModelReport,
    /// Whether summaries are being made beside the turns.
    pub preparing: bool,
    /// Why a compaction failed. The turn goes on with the history as it is.
    pub failure: Option<String>,
}

impl Upkeep {
    /// How many summaries were published.
    pub fn published(&self) -> u64 {
        self.compactions.iter().map(|c| c.leaf + c.condensed).sum()
    }

    /// Adds what came of making summaries ahead.
    fn made_ahead(&mut self, made: MadeAhead) {
        match made {
            Ok(ahead) => {
                self.failure = ahead.failure.clone().or(self.failure.take());
                self.model.merge(&ahead.model);
                self.prepared = Some(ahead);
            }
            Err(error) => self.failure = Some(error),
        }
    }
}

/// A context for a call of the model, and what was done before it was assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The context.
    pub context: Context,
    /// What was done.
    pub upkeep: Upkeep,
}

/// Work that goes on beside the host's turns.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where work goes on beside the host's turns.
pub trait Background: Send + Sync + Debug {
    /// Begins the work and returns at once.
    fn spawn(&self, work: Work);
}

/// Work goes on in a tokio runtime.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone)]
pub struct TokioBackground(tokio::runtime::Handle);

#[cfg(feature = "tokio")]
impl TokioBackground {
    /// The runtime that the caller runs in, if it runs in one.
    pub fn current() -> Option<Self> {
        tokio::runtime::Handle::try_current().ok().map(Self)
    }
}

#[cfg(feature = "tokio")]
impl Background for TokioBackground {
    fn spawn(&self, work: Work) {
        self.0.spawn(work);
    }
}

impl Session {
    /// A user's turn begins.
    ///
    /// # Errors
    /// When the store cannot be read. What fails in a compaction is in [`Upkeep::failure`].
    pub async fn before_turn(&self, window: &Window) -> Result<Upkeep> {
        self.upkeep(self.memory().inner.turns.before_turn, window)
            .await
    }

    /// A model is about to be called: its context, within what the window leaves for it.
    ///
    /// # Errors
    /// `BudgetTooSmall`; or when the store cannot be read. What fails in a compaction is in
    /// [`Upkeep::failure`].
    pub async fn before_call(&self, window: &Window) -> Result<Call> {
        let action = self.memory().inner.turns.before_call;
        let upkeep = self.upkeep(action, window).await?;
        let context = self.assemble(window.budget()).await?;
        Ok(Call { context, upkeep })
    }

    /// The turn is over.
    ///
    /// # Errors
    /// As [`Session::before_turn`].
    pub async fn after_turn(&self, window: &Window) -> Result<Upkeep> {
        self.upkeep(self.memory().inner.turns.after_turn, window)
            .await
    }

    /// Makes the summaries that a compaction would make, and publishes none of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prepare_ahead(&self) -> Result<Ahead> {
        let cancel = self.memory().inner.closing.clone();
        Ok(self.compaction(cancel).prepare_ahead().await?)
    }

    /// Publishes the summaries that were made ahead, and calls no model. With a summarizer whose
    /// work costs nothing it is an incremental compaction.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        Ok(self.compaction(Cancel::new()).publish_ready().await?)
    }

    /// What the view costs beside the window: what a provider said last and the estimate of what
    /// came after, where there is such a figure.
    async fn usage(&self, window: &Window) -> Result<WindowUse> {
        Ok(WindowUse {
            tokens: self.context_tokens().await?.tokens(),
            window: window.tokens,
            system_tokens: window.system_tokens,
        })
    }

    async fn upkeep(&self, action: Action, window: &Window) -> Result<Upkeep> {
        let mut upkeep = Upkeep::default();
        if let Some(ended) = self.memory().inner.preparing.ended(self.id()) {
            upkeep.made_ahead(ended);
        }
        if action == Action::Nothing {
            return Ok(upkeep);
        }
        let mut usage = self.usage(window).await?;
        upkeep.usage = usage;
        let policy = &self.memory().inner.turns;
        for _ in 0..ROUNDS {
            if !policy.hard.fires(&usage) {
                break;
            }
            let compacted = match action {
                Action::Compact => self.compact(Mode::Incremental).await,
                _ => self.publish_ready().await,
            };
            let outcome = match compacted {
                Ok(outcome) => outcome,
                Err(error) => {
                    tracing::warn!(session = %self.key(), %error, "a compaction failed");
                    upkeep.failure = Some(error.to_string());
                    return Ok(upkeep);
                }
            };
            let published = outcome.leaf + outcome.condensed;
            usage.tokens = outcome.after.tokens;
            upkeep.failure = outcome.failure.clone().or(upkeep.failure.take());
            upkeep.model.merge(&outcome.model);
            upkeep.compactions.push(outcome);
            if published == 0 {
                break;
            }
        }
        if action == Action::Prepare && policy.soft.fires(&usage) {
            self.prepare_beside(&mut upkeep).await;
        }
        Ok(upkeep)
    }

    /// Makes summaries ahead: beside the turns where that can be, here where it cannot.
    async fn prepare_beside(&self, upkeep: &mut Upkeep) {
        let inner = &self.memory().inner;
        if self.needs_no_model() {
            return;
        }
        let Some(alone) = inner.preparing.begin(self.id()) else {
            upkeep.preparing = true;
            return;
        };
        if let Some(background) = &inner.background {
            let session = self.clone();
            background.spawn(Box::pin(async move {
                let made = session.prepare_ahead().await;
                if let Err(error) = &made {
                    tracing::warn!(session = %session.key(), %error, "nothing was made ahead");
                }
                alone.ended(made.map_err(|error| error.to_string()));
            }));
            upkeep.preparing = true;
            return;
        }
        match self.prepare_ahead().await {
            Ok(ahead) => upkeep.made_ahead(Ok(ahead)),
            Err(error) => {
                tracing::warn!(session = %self.key(), %error, "nothing was made ahead");
                upkeep.made_ahead(Err(error.to_string()));
            }
        }
    }
}

/// What came of making summaries ahead; an error as its text.
type MadeAhead = std::result::Result<Ahead, String>;

/// Maximum number of conversations whose ended work is kept until their next moment; beyond it
/// that of the oldest conversation is forgotten.
const ENDED: usize = 1_024;

/// The conversations that summaries are being made for, one at a time each, and what came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preparing(Arc<Mutex<Beside>>);

/// The state of the work beside the turns.
#[derive(Debug, Default)]
struct Beside {
    under_way: BTreeSet<ConversationId>,
    /// What no moment has told of yet.
    ended: BTreeMap<ConversationId, MadeAhead>,
}

impl Preparing {
    /// `None` when somebody is at it already.
    fn begin(&self, id: ConversationId) -> Option<Alone> {
        let new = self.lock().under_way.insert(id);
        new.then(|| Alone(self.clone(), id))
    }

    /// Takes what came of the work that ended since it was last asked.
    fn ended(&self, id: ConversationId) -> Option<MadeAhead> {
        self.lock().ended.remove(&id)
    }

    fn lock(&self) -> MutexGuard<'_, Beside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A conversation's place in [`Preparing`], given back when dropped.
struct Alone(Preparing, ConversationId);

impl Alone {
    /// Keeps what came of the work for the next moment.
    fn ended(self, made: MadeAhead) {
        let mut beside = self.0.lock();
        beside.ended.insert(self.1, made);
        while beside.ended.len() > ENDED {
            beside.ended.pop_first();
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.lock().under_way.remove(&self.1);
    }
}
