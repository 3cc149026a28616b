//! A store with failing writes, interleaved calls and falsified answers, and a model that misbehaves.

use std::sync::{Arc, Mutex, PoisonError};

use agent_memory::{
    Role, Summarizer,
    store::FullStore,
    summaries::{SummarizerResponse, SummaryRequest},
};
use async_trait::async_trait;
use memory_model::{ConversationId, Hash, SeqRange};
use memory_store::{Append, Error, ErrorKind, Order, Publish, Published, Result};
use store_conformance::Layer;
use summarize_escalation::testing::{Answer, Scripted};

use super::ops::{Behaviour, Crash};
use super::random::Random;

/// A falsification, to check that a law can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// A span is missing when a view is read.
    DroppedSpan,
    /// An entry is missing when the log is read.
    DroppedEntry,
    /// Two entries are exchanged.
    SwappedEntries,
    /// An entry's hash does not match its content.
    SkippedHash,
    /// A look-up of a running sum returns one too much.
    WrongSum,
    /// An entry's running sum is one too large.
    WrongRunning,
    /// A summary has lost a child.
    LostChild,
    /// The range of a summary is one message shorter than its source.
    WrongRange,
    /// A summary costs more than its source.
    Grown,
    /// A failed append stores its first message.
    HalfWrite,
    /// A failed publish is completed, and the caller gets an error.
    SilentPublish,
    /// The tail is compacted too.
    NoTail,
    /// Compacting a finished session changes it.
    Restless,
    /// In a context, a result is missing.
    SplitPair,
    /// In a context, two messages are exchanged.
    SwappedMessages,
    /// A context costs one token more than it reports.
    MiscountedContext,
    /// A context exceeds its budget.
    OverBudget,
}

#[derive(Debug, Default)]
struct State {
    /// Number of writes until one fails, and whether that write is completed.
    crash: Option<Crash>,
    crashed: bool,
    /// Number of completed publishes.
    published: u64,
    yields: Option<Random>,
}

/// State of the store's misbehaviour.
#[derive(Debug)]
pub(crate) struct Stage {
    inner: Arc<dyn FullStore>,
    state: Mutex<State>,
    sabotage: Option<Sabotage>,
}

impl Stage {
    pub(crate) fn new(inner: Arc<dyn FullStore>, sabotage: Option<Sabotage>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            sabotage,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a write and all later ones fail.
    pub(crate) fn crash(&self, crash: Crash) {
        self.state().crash = Some(crash);
    }

    /// Makes all writes succeed again. Returns whether one has failed.
    pub(crate) fn heal(&self) -> bool {
        let mut state = self.state();
        state.crash = None;
        std::mem::take(&mut state.crashed)
    }

    pub(crate) fn publishes(&self) -> u64 {
        self.state().published
    }

    /// Interleaves calls in an order that depends on the seed; `None` stops interleaving.
    pub(crate) fn take_turns(&self, seed: Option<u64>) {
        self.state().yields = seed.map(Random);
    }

    fn does(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}

#[async_trait]
impl Layer for Stage {
    fn inner(&self) -> &dyn FullStore {
        &*self.inner
    }

    async fn before_read(&self) {
        let turns = {
            let mut state = self.state();
            state.yields.as_mut().map_or(0, |random| random.below(4))
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    async fn before_write(&self) -> Result<Option<Error>> {
        self.before_read().await;
        let failed = || Error::new(ErrorKind::Io, "the power went");
        let mut state = self.state();
        match &mut state.crash {
            None => Ok(None),
            Some(crash) if crash.write > 1 => {
                crash.write -= 1;
                Ok(None)
            }
            Some(crash) => {
                let after = std::mem::take(&mut crash.after);
                state.crashed = true;
                if after {
                    Ok(Some(failed()))
                } else {
                    Err(failed())
                }
            }
        }
    }

    fn answer(&self, answer: store_conformance::Answer<'_>) -> Result<()> {
        use store_conformance::Answer;
        match (self.sabotage, answer) {
            (Some(sabotage), Answer::Read(_, page)) if page.items.len() > 2 => {
                let items = &mut page.items;
                match sabotage {
                    Sabotage::DroppedEntry => {
                        items.remove(1);
                    }
                    Sabotage::SwappedEntries => {
                        let (a, b) = (items[0].message.clone(), items[1].message.clone());
                        (items[0].message, items[1].message) = (b, a);
                    }
                    Sabotage::SkippedHash => items[1].hash = Hash::ZERO,
                    Sabotage::WrongRunning => items[1].running += 1,
                    _ => {}
                }
            }
            (Some(Sabotage::WrongSum), Answer::Running(sums)) => {
                if let Some(last) = sums.last_mut() {
                    *last += 1;
                }
            }
            (Some(Sabotage::DroppedSpan), Answer::Spans(Order::OldestFirst, page))
                if page.items.len() > 1 =>
            {
                page.items.remove(0);
            }
            (Some(Sabotage::LostChild), Answer::Summaries(found)) => {
                for summary in found.iter_mut().flatten().filter(|s| s.children.len() > 1) {
                    summary.children.pop();
                }
            }
            (Some(Sabotage::WrongRange), Answer::SummaryLog(page)) => {
                if let Some(summary) = page.items.iter_mut().find(|s| s.range.len() > 1) {
                    let range = summary.range;
                    summary.range = SeqRange::new(range.first, range.last.prev()).unwrap();
                }
            }
            (Some(Sabotage::Grown), Answer::SummaryLog(page)) => {
                for summary in &mut page.items {
                    summary.source_tokens = summary.tokens;
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn append_failed(&self, conversation: ConversationId, append: &Append) -> Result<()> {
        if self.does(Sabotage::HalfWrite) {
            let mut half = append.clone();
            half.entries.truncate(1);
            self.inner.append(conversation, &half).await?;
        }
        Ok(())
    }

    fn published(&self, outcomes: &[Result<Published>]) {
        let done = |outcome: &&Result<Published>| matches!(outcome, Ok(Published::Done(_)));
        self.state().published += outcomes.iter().filter(done).count() as u64;
    }

    async fn publish_failed(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<()> {
        if self.does(Sabotage::SilentPublish) {
            self.inner.publish_all(conversation, publishes).await?;
        }
        Ok(())
    }
}

/// A model with the behaviour that was set last.
#[derive(Debug, Clone)]
pub(crate) struct Fickle {
    script: Arc<Mutex<Scripted>>,
    yields: Arc<Mutex<Option<Random>>>,
}

impl Fickle {
    pub(crate) fn new() -> Self {
        let good = Scripted::new([Answer::HeadCut]);
        Self {
            script: Arc::new(Mutex::new(good)),
            yields: Arc::default(),
        }
    }

    pub(crate) fn behave(&self, behaviours: &[Behaviour], yields: Option<u64>) {
        let answers = behaviours.iter().map(|behaviour| match behaviour {
            Behaviour::Good => Answer::HeadCut,
            Behaviour::Error => Answer::fail("529 overloaded"),
            Behaviour::Empty => Answer::Empty,
            Behaviour::Blank => Answer::Blank,
            Behaviour::Longer => Answer::Longer,
            Behaviour::Echo => Answer::Echo,
            Behaviour::Refusal => Answer::text("I'm sorry, but I can't help with that."),
            Behaviour::Truncated => Answer::text("The user asked to deploy after the te"),
            Behaviour::Terse => Answer::text("x"),
            Behaviour::Markup => Answer::text("</memory><summary>\u{0}]]>&lt;\n\n</summary>"),
            Behaviour::Hang => Answer::Hang,
        });
        *self.script.lock().unwrap() = Scripted::new(answers);
        *self.yields.lock().unwrap() = yields.map(Random);
    }
}

#[async_trait]
impl Summarizer for Fickle {
    fn id(&self) -> &str {
        "fickle@1"
    }

    fn model(&self) -> Option<&str> {
        Some("fickle")
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, summarize_escalation::Error> {
        let turns = match &mut *self.yields.lock().unwrap() {
            Some(random) => random.below(6),
            None => 0,
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let script = self.script.lock().unwrap().clone();
        script.summarize(request).await
    }
}

/// Falsifies a context.
pub(crate) fn falsify(context: &mut agent_memory::Context, sabotage: Option<Sabotage>) {
    match sabotage {
        Some(Sabotage::SplitPair) => {
            let result =
                |part: &agent_memory::Part| matches!(part, agent_memory::Part::ToolResult { .. });
            let at = context
                .messages
                .iter()
                .position(|m| m.role == Role::Tool && m.parts.iter().any(result));
            if let Some(at) = at {
                context.messages.remove(at);
            }
        }
        Some(Sabotage::SwappedMessages) if context.messages.len() > 1 => {
            context.messages.swap(0, 1)
        }
        Some(Sabotage::MiscountedContext) => context.tokens = context.tokens.saturating_sub(1),
        Some(Sabotage::OverBudget) => context.budget = context.tokens.saturating_sub(1),
        _ => {}
    }
}
