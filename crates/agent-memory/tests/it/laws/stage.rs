//! A store whose writes fail, whose calls take turns, and whose answers can be falsified; and a
//! model that misbehaves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_memory::{FullStore, Role, Summarizer, SummarizerResponse, SummaryRequest};
use async_trait::async_trait;
use memory_model::{
    ConversationId, Hash, LogEntry, RawJson, Recipe, Seq, SeqRange, Span, Summary, SummaryId,
    Timestamp, ViewName, ViewVersion,
};
use memory_store::*;
use summarize_escalation::testing::{Answer, Scripted};

use super::ops::{Behaviour, Crash};
use super::random::Random;

/// What is falsified, to see that a law can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// A span is missing when a view is read.
    DroppedSpan,
    /// An entry is missing when the log is read.
    DroppedEntry,
    /// Two entries have changed places.
    SwappedEntries,
    /// An entry's hash is not that of its content.
    SkippedHash,
    /// A look-up of a running sum is one too high.
    WrongSum,
    /// An entry's running sum is one too high.
    WrongRunning,
    /// A summary has lost a child.
    LostChild,
    /// A summary says that it covers a message less than it was made from.
    WrongRange,
    /// A summary costs more than its source.
    Grown,
    /// A failed append has stored its first message.
    HalfWrite,
    /// A failed publish has been done, and the caller was not told.
    SilentPublish,
    /// The tail is compacted too.
    NoTail,
    /// Compacting a finished session changes it.
    Restless,
    /// In a context, a result is missing.
    SplitPair,
    /// In a context, two messages have changed places.
    SwappedMessages,
    /// A context costs one token more than it says.
    MiscountedContext,
    /// A context is over its budget.
    OverBudget,
}

#[derive(Debug, Default)]
struct State {
    /// How many writes there are before one fails, and whether that is done all the same.
    crash: Option<Crash>,
    crashed: bool,
    /// Publishes that were done.
    published: u64,
    yields: Option<Random>,
}

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

    /// Lets a write fail, and every one after it.
    pub(crate) fn crash(&self, crash: Crash) {
        self.state().crash = Some(crash);
    }

    /// Lets all writes succeed again; whether one failed.
    pub(crate) fn heal(&self) -> bool {
        let mut state = self.state();
        state.crash = None;
        std::mem::take(&mut state.crashed)
    }

    pub(crate) fn published(&self) -> u64 {
        self.state().published
    }

    /// Lets calls take turns, in an order that follows from the seed; or no more.
    pub(crate) fn take_turns(&self, seed: Option<u64>) {
        self.state().yields = seed.map(Random);
    }

    fn does(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    fn spoil(&self, page: &mut Page<Summary, SummaryId>) {
        if self.does(Sabotage::WrongRange)
            && let Some(summary) = page.items.iter_mut().find(|s| s.range.len() > 1)
        {
            let range = summary.range;
            summary.range = SeqRange::new(range.first, range.last.prev()).unwrap();
        }
        if self.does(Sabotage::Grown) {
            for summary in &mut page.items {
                summary.source_tokens = summary.tokens;
            }
        }
    }

    async fn turn(&self) {
        let turns = {
            let mut state = self.state();
            state.yields.as_mut().map_or(0, |random| random.below(4))
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Does a write, or fails it.
    async fn write<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.turn().await;
        let fails = {
            let mut state = self.state();
            match &mut state.crash {
                None => None,
                Some(crash) if crash.write > 1 => {
                    crash.write -= 1;
                    None
                }
                Some(crash) => {
                    let after = std::mem::take(&mut crash.after);
                    state.crashed = true;
                    Some(after)
                }
            }
        };
        let failed = || Err(Error::new(ErrorKind::Io, "the power went"));
        match fails {
            None => write.await,
            Some(false) => failed(),
            Some(true) => {
                write.await?;
                failed()
            }
        }
    }
}

#[async_trait]
impl Store for Stage {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        self.write(self.inner.open(new)).await
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        self.inner.conversation(which).await
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        self.inner.list(filter, after, limit).await
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.write(self.inner.update(conversation, patch, now))
            .await
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        let done = self.write(self.inner.append(conversation, append)).await;
        if done.is_err() && self.does(Sabotage::HalfWrite) {
            let mut half = append.clone();
            half.entries.truncate(1);
            self.inner.append(conversation, &half).await?;
        }
        done
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        self.turn().await;
        let mut page = self.inner.read(conversation, read).await?;
        let items = &mut page.items;
        if self.does(Sabotage::DroppedEntry) && items.len() > 2 {
            items.remove(1);
        }
        if self.does(Sabotage::SwappedEntries) && items.len() > 2 {
            let (a, b) = (items[0].message.clone(), items[1].message.clone());
            (items[0].message, items[1].message) = (b, a);
        }
        if self.does(Sabotage::SkippedHash) && items.len() > 2 {
            items[1].hash = Hash::ZERO;
        }
        if self.does(Sabotage::WrongRunning) && items.len() > 2 {
            items[1].running += 1;
        }
        Ok(page)
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        self.turn().await;
        let mut sums = self.inner.running(conversation, at).await?;
        if self.does(Sabotage::WrongSum)
            && let Some(last) = sums.last_mut()
        {
            *last += 1;
        }
        Ok(sums)
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        self.inner.seq_at(conversation, running).await
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        self.inner.find(conversation, ids).await
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        self.turn().await;
        self.inner.snapshot(conversation, view).await
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        self.inner.views(conversation).await
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        self.turn().await;
        let mut page = self.inner.spans(snapshot, range, order, limit).await?;
        if self.does(Sabotage::DroppedSpan) && page.items.len() > 1 && order == Order::OldestFirst {
            page.items.remove(0);
        }
        Ok(page)
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        let counted = async {
            let outcomes = self.inner.publish_all(conversation, publishes).await?;
            let done = |outcome: &&Result<Published>| matches!(outcome, Ok(Published::Done(_)));
            self.state().published += outcomes.iter().filter(done).count() as u64;
            Ok(outcomes)
        };
        let done = self.write(counted).await;
        if done.is_err() && self.does(Sabotage::SilentPublish) {
            self.inner.publish_all(conversation, publishes).await?;
        }
        done
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        self.inner
            .publications(conversation, view, after, limit)
            .await
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let mut found = self.inner.summaries(conversation, ids).await?;
        if self.does(Sabotage::LostChild) {
            for summary in found.iter_mut().flatten().filter(|s| s.children.len() > 1) {
                summary.children.pop();
            }
        }
        Ok(found)
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut page = self.inner.summary_log(conversation, after, limit).await?;
        self.spoil(&mut page);
        Ok(page)
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut page = self.inner.own_summaries(conversation, after, limit).await?;
        self.spoil(&mut page);
        Ok(page)
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        self.inner.parents(conversation, summary).await
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        self.turn().await;
        self.inner.summaries_by_source(conversation, sources).await
    }

    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        let claims = self
            .inner
            .claim_all(conversation, keys, owner, ttl, erasures);
        self.write(claims).await
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        self.write(self.inner.settle_all(settled)).await
    }

    async fn state(
        &self,
        conversation: ConversationId,
        key: &str,
    ) -> Result<Option<memory_store::State>> {
        self.inner.state(conversation, key).await
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        self.write(self.inner.put_state(conversation, key, revision, value))
            .await
    }
}

#[async_trait]
impl Maintain for Stage {
    async fn check(&self) -> Result<Vec<Violation>> {
        self.inner.check().await
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

/// A model that does as it was told last.
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
