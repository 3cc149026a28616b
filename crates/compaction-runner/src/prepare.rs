//! Making one summary, with nothing held and nothing written but a lease.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::Aborted;
use memory_model::{
    Child, EntryKind, FieldHasher, Job, LogEntry, Part, RawJson, Recipe, SourceHasher, Summary,
    SummaryFigures, SummaryId, Timestamp, summary_hash, summary_id, summary_overhead,
};
use memory_store::{Claim, Draft, Fence, JobKey, JobOutcome, Owner};
use serde::{Deserialize, Serialize};
use summarize_escalation::{
    Error as SummaryError, ErrorKind as SummaryErrorKind, Failure, FailureKind, OnGrowth, Source,
    Stop, Summarizer, SummaryRequest, SummaryText, cut_to_tokens, escalate, recipe,
};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::events::{Before, Event, SkipReason};
use crate::owners::HeldBy;
use crate::report::{Cause, ModelReport};
use crate::run::{Compaction, Stage};

/// What came of preparing a job.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A summary to publish.
    Ready(Box<Ready>),
    /// Nothing to publish, and no harm.
    Skipped(SkipReason),
    /// The summarizer failed, and the ladder says to stop there.
    Failed {
        /// The error and its causes.
        error: String,
        cause: Cause,
    },
    /// The compaction was cancelled.
    Cancelled,
}

/// A summary to publish, and the lease that it was made under.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) summary: Summary,
    pub(crate) fence: Option<Fence>,
    /// Why the model did not write it.
    pub(crate) cause: Option<Cause>,
    /// Whether it was written in this run.
    pub(crate) fresh: bool,
}

/// What the jobs of a run share while they are prepared.
#[derive(Debug)]
pub(crate) struct Watch {
    /// How often the summarizer was called.
    pub(crate) calls: AtomicU64,
    /// Maximum number of calls of the summarizer; a call beyond it fails without being made.
    pub(crate) max_calls: Option<u64>,
    /// Fewest calls that a summary of this run takes; counted where calls are limited.
    needed: AtomicU64,
    /// Stops what is under way once the store has failed.
    pub(crate) halt: Cancel,
    /// What the summarizer said when it last failed.
    pub(crate) said: Mutex<Option<String>>,
    /// What the model wrote and what it did not.
    pub(crate) model: Mutex<ModelReport>,
    /// Who was at work on a job that was passed over, last.
    pub(crate) held: Mutex<Option<HeldBy>>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            calls: AtomicU64::default(),
            max_calls: None,
            needed: AtomicU64::new(u64::MAX),
            halt: Cancel::default(),
            said: Mutex::default(),
            model: Mutex::default(),
            held: Mutex::default(),
        }
    }
}

impl Watch {
    /// Who was at work on a job that was passed over, last.
    pub(crate) fn held_by(&self) -> Option<HeldBy> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// Passes a job over that somebody else has.
    fn held(&self, owner: &Owner, until: Timestamp) -> Prepared {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(HeldBy::new(owner, until));
        Prepared::Skipped(SkipReason::Held)
    }

    /// Fewest calls that a summary takes, as far as it was found out.
    pub(crate) fn needed(&self) -> Option<u64> {
        let needed = self.needed.load(Ordering::Relaxed);
        (needed < u64::MAX).then_some(needed)
    }

    /// Records why the summarizer gave nothing that can be taken.
    fn say(&self, what: String) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// What the summarizer said when it last failed.
    pub(crate) fn last_error(&self) -> Option<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.clone()
    }

    /// What the model wrote and what it did not.
    pub(crate) fn report(&self) -> ModelReport {
        self.model().clone()
    }

    fn model(&self) -> MutexGuard<'_, ModelReport> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The summarizer, its calls counted.
#[derive(Debug)]
struct Counted<'a> {
    summarizer: &'a dyn Summarizer,
    watch: &'a Watch,
}

#[async_trait]
impl Summarizer for Counted<'_> {
    fn id(&self) -> &str {
        self.summarizer.id()
    }

    fn model(&self) -> Option<&str> {
        self.summarizer.model()
    }

    fn provisional(&self) -> bool {
        self.summarizer.provisional()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummaryText, SummaryError> {
        let taken = match self.watch.max_calls {
            None => 1,
            Some(most) => {
                let needed = self.summarizer.calls_needed(request).max(1);
                self.watch.needed.fetch_min(needed, Ordering::Relaxed);
                needed.min(most.saturating_add(1))
            }
        };
        let made = self.watch.calls.fetch_add(taken, Ordering::Relaxed);
        if let Some(most) = self.watch.max_calls
            && made.saturating_add(taken) > most
        {
            self.watch.calls.fetch_sub(taken, Ordering::Relaxed);
            let what =
                format!("{made} of {most} calls are made, and the next summary takes {taken}");
            let failure = Failure::new(FailureKind::SpendLimit, what);
            return Err(SummaryError::provider(self.id(), failure));
        }
        let answer = self.summarizer.summarize(request).await;
        match &answer {
            Ok(written) => {
                // A long source takes several.
                let more = u64::from(written.calls).saturating_sub(taken);
                self.watch.calls.fetch_add(more, Ordering::Relaxed);
                if written.stop != Stop::Complete {
                    let what = format!("summarizer {}: {}", self.id(), written.stop);
                    self.watch.say(what);
                }
            }
            Err(error) => self.watch.say(with_causes(error)),
        }
        answer
    }
}

/// What a summarizer wrote, as it is kept until it is published.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    text: String,
    tier: String,
    model: Option<String>,
    provisional: bool,
    recipe: Recipe,
    /// How it came about: see [`Outcome::meta`](summarize_escalation::Outcome::meta).
    #[serde(default)]
    meta: Option<RawJson>,
    /// Why the model did not write it.
    #[serde(default)]
    cause: Option<Cause>,
}

/// A job's sources, in the order of its children.
struct Sources<'a> {
    entries: Vec<Cow<'a, LogEntry>>,
    summaries: Vec<Summary>,
}

impl Sources<'_> {
    /// The pieces in the order of the job's children.
    fn pieces(&self, job: &Job) -> Vec<Source<'_>> {
        let mut pieces = Vec::with_capacity(self.entries.len() + self.summaries.len());
        let (mut entries, mut summaries) = (self.entries.iter(), self.summaries.iter());
        for child in &job.children {
            match child {
                Child::Messages { range } => {
                    let some = entries.by_ref().take(range.len() as usize);
                    pieces.extend(some.map(|entry| Source::from(entry.as_ref())));
                }
                Child::Summary { .. } => pieces.extend(summaries.next().map(Source::from)),
            }
        }
        pieces
    }

    fn hash(&self, job: &Job) -> memory_model::Hash {
        let mut hasher = SourceHasher::new();
        let (mut entries, mut summaries) = (self.entries.iter(), self.summaries.iter());
        for child in &job.children {
            match child {
                Child::Messages { range } => entries
                    .by_ref()
                    .take(range.len() as usize)
                    .for_each(|entry| hasher.message(entry.hash)),
                Child::Summary { .. } => {
                    if let Some(summary) = summaries.next() {
                        hasher.summary(summary.hash);
                    }
                }
            }
        }
        hasher.finish()
    }
}

impl Compaction<'_> {
    /// Makes the summary of a job. `entries` are those of its range, if they are at hand.
    pub(crate) async fn prepare(
        &self,
        job: &Job,
        entries: &[LogEntry],
        watch: &Watch,
    ) -> Result<Prepared> {
        self.prepare_from(job, entries, &BTreeMap::new(), watch)
            .await
    }

    /// As [`Compaction::prepare`], where some of the job's summaries are not in the store yet.
    pub(crate) async fn prepare_from(
        &self,
        job: &Job,
        entries: &[LogEntry],
        made: &BTreeMap<SummaryId, Summary>,
        watch: &Watch,
    ) -> Result<Prepared> {
        let supplied = match self.unless_stopped(watch, self.hooks.before(job)).await {
            Ok(Before::Proceed) => None,
            Ok(Before::Cancel) => return Ok(Prepared::Skipped(SkipReason::Vetoed)),
            Ok(Before::Supply(text)) => Some(text),
            Err(Aborted) => return Ok(Prepared::Cancelled),
        };
        let Some(sources) = self.sources(job, entries, made).await? else {
            return Ok(Prepared::Skipped(SkipReason::Lost));
        };
        let source_hash = sources.hash(job);
        let pieces = sources.pieces(job);
        let overhead = summary_overhead(self.accounting, job.range, job.depth, &job.children);
        let estimator = self.accounting.estimator();
        let mut request = SummaryRequest::new(&pieces, estimator).with_overhead_tokens(overhead);
        if let Some(instructions) = &self.instructions {
            request = request.with_instructions(instructions);
        }
        if let Some(text) = supplied {
            let written = Written {
                text,
                tier: "supplied".to_owned(),
                model: None,
                meta: None,
                cause: None,
                provisional: false,
                recipe: Recipe::new("supplied@1"),
            };
            let made = (written, false);
            return self.finish(job, &sources, source_hash, made, None).await;
        }
        let recipe = recipe(self.summarizer.id(), self.ladder, &request);

        // What costs nothing needs no lease.
        let mut fence = None;
        let mut draft = None;
        // Until this is over.
        let mut _in_hand = None;
        if !self.summarizer.provisional() {
            let key = job_key(self.planner.view().as_str(), job, source_hash, &recipe);
            let now = self.clock.now();
            let until = Timestamp(now.0.saturating_add(self.policy.lease_micros));
            _in_hand = match self.in_hand.take(self.conversation, &key, now, until) {
                Ok(taken) => Some(taken),
                Err(until) => return Ok(watch.held(&self.owner, until)),
            };
            match self.claim(&key, now).await? {
                Claim::Held { owner, until } => return Ok(watch.held(&owner, until)),
                Claim::Granted(granted) => fence = Some(granted),
                Claim::Ready(granted, kept) => (fence, draft) = (Some(granted), Some(kept)),
            }
        }
        // Looked up under the lease: another run may have published it a moment ago.
        if let Some(summary) = self
            .store
            .made_from(self.conversation, source_hash, &recipe)
            .await?
            && summary.range == job.range
        {
            let ready = Ready {
                summary,
                fence,
                cause: None,
                fresh: false,
            };
            return Ok(Prepared::Ready(Box::new(ready)));
        }
        if let Some(draft) = draft
            && let Ok(written) = serde_json::from_str::<Written>(draft.0.as_str())
        {
            watch.model().written(written.cause.as_ref());
            let made = (written, false);
            return self.finish(job, &sources, source_hash, made, fence).await;
        }
        if self.stage == Stage::PublishReady && fence.is_some() {
            self.settle(fence, &JobOutcome::Release).await?;
            return Ok(Prepared::Skipped(SkipReason::NotReady));
        }
        let counted = Counted {
            summarizer: self.summarizer,
            watch,
        };
        let outcome = match self
            .unless_stopped(watch, escalate(&counted, self.ladder, &request))
            .await
        {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                let message = with_causes(&error);
                return match error.kind() {
                    SummaryErrorKind::CannotShrink | SummaryErrorKind::Exhausted => {
                        let cause = Cause::of_unmade(error.refused());
                        if let Some(cause) = cause.filter(|_| !self.summarizer.provisional()) {
                            watch.model().unmade(&cause);
                            self.model_failed(job, cause).await;
                        }
                        self.settle(fence, &JobOutcome::Release).await?;
                        Ok(Prepared::Skipped(SkipReason::CannotShrink))
                    }
                    _ => {
                        // Nothing is worth keeping: a job that changes with every message would
                        // leave a row at each failure.
                        let cause = Cause::of_error(&error, message.clone());
                        watch.model().unmade(&cause);
                        self.model_failed(job, cause.clone()).await;
                        self.settle(fence, &JobOutcome::Release).await?;
                        Ok(Prepared::Failed {
                            error: message,
                            cause,
                        })
                    }
                };
            }
            Err(Aborted) => {
                self.settle(fence, &JobOutcome::Release).await?;
                return Ok(Prepared::Cancelled);
            }
        };
        let replaced = outcome.provisional && !self.summarizer.provisional();
        let cause = Cause::of(&outcome.refused).filter(|_| replaced);
        if !self.summarizer.provisional() {
            watch.model().written(cause.as_ref());
        }
        if let Some(cause) = &cause {
            self.model_failed(job, cause.clone()).await;
        }
        let written = Written {
            cause,
            meta: outcome.meta(),
            text: outcome.text,
            tier: outcome.tier.as_str().to_owned(),
            model: outcome.model,
            provisional: outcome.provisional,
            recipe: outcome.recipe,
        };
        if let Some(held) = &fence
            && let Ok(draft) = RawJson::from_value(&written)
        {
            let prepared = JobOutcome::Prepared(Draft(draft));
            // The lease may have ended before the model answered, or the store may be busy. What
            // was written is good all the same: it is published next.
            if let Err(error) = self.store.settle(held, &prepared, self.clock.now()).await {
                tracing::warn!(range = %job.range, %error, "a draft could not be kept");
            }
        }
        self.finish(job, &sources, source_hash, (written, true), fence)
            .await
    }

    /// Tells that the model did not write a summary.
    async fn model_failed(&self, job: &Job, cause: Cause) {
        tracing::warn!(
            conversation = self.conversation.0,
            range = %job.range,
            %cause,
            advice = cause.advice,
            "a summary was not written by the model"
        );
        let range = job.range;
        self.emit(Event::ModelFailed { range, cause }).await;
    }

    /// Runs a future unless the run is cancelled or the store has failed.
    async fn unless_stopped<F: Future>(
        &self,
        watch: &Watch,
        future: F,
    ) -> std::result::Result<F::Output, Aborted> {
        self.cancel.guard(watch.halt.guard(future)).await?
    }

    /// From what was written to a summary that is shorter than its source, rendered.
    async fn finish(
        &self,
        job: &Job,
        sources: &Sources<'_>,
        source_hash: memory_model::Hash,
        (written, fresh): (Written, bool),
        fence: Option<Fence>,
    ) -> Result<Prepared> {
        let (earliest_at, latest_at) = times(sources);
        let meta = with_figures(written.meta, figures(sources));
        let mut summary = Summary {
            id: summary_id(source_hash),
            range: job.range,
            depth: job.depth,
            children: job.children.clone(),
            text: written.text,
            messages: None,
            tokens: 0,
            source_tokens: job.source_tokens,
            provisional: written.provisional,
            recipe: written.recipe,
            tier: written.tier,
            model: written.model,
            meta,
            earliest_at,
            latest_at,
            created_at: self.clock.now(),
            source_hash,
            hash: source_hash,
        };
        self.sign(&mut summary);
        // The ladder counted the text; escaping may have made it longer.
        while self.ladder.on_growth == OnGrowth::NextTier && summary.tokens >= summary.source_tokens
        {
            let text = self.accounting.text(&summary.text);
            // As much of it as would fit if all of it rendered alike, and at least an eighth less.
            let share = u128::from(text) * u128::from(summary.source_tokens)
                / u128::from(summary.tokens.max(1));
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            let limit = share.min(text.saturating_sub((text / 8).max(1)));
            let cut = cut_to_tokens(&summary.text, limit, self.accounting.estimator());
            match cut {
                Some(cut) if !cut.is_empty() && cut.len() < summary.text.len() => {
                    summary.text = cut;
                }
                _ => {
                    self.settle(fence, &JobOutcome::Release).await?;
                    return Ok(Prepared::Skipped(SkipReason::CannotShrink));
                }
            }
            self.sign(&mut summary);
        }
        Ok(Prepared::Ready(Box::new(Ready {
            summary,
            fence,
            cause: written.cause,
            fresh,
        })))
    }

    /// Hash and id of a summary's text, and then its cost: the id is rendered, and counts.
    fn sign(&self, summary: &mut Summary) {
        summary.hash = summary_hash(
            summary.source_hash,
            summary.range,
            summary.depth,
            &summary.recipe,
            &summary.text,
            None,
        );
        summary.id = summary_id(summary.hash);
        summary.tokens = self.accounting.summary(summary);
    }

    /// The job's messages and summaries; `None` when some of them are gone, which only a lost race
    /// explains.
    async fn sources<'e>(
        &self,
        job: &Job,
        at_hand: &'e [LogEntry],
        made: &BTreeMap<SummaryId, Summary>,
    ) -> Result<Option<Sources<'e>>> {
        let mut entries: Vec<Cow<'e, LogEntry>> = Vec::new();
        let mut summaries = Vec::new();
        let mut ids = Vec::new();
        for child in &job.children {
            match child {
                Child::Summary { id, .. } => ids.push(id.clone()),
                Child::Messages { range } => {
                    let first = at_hand.partition_point(|entry| entry.seq < range.first);
                    let last = at_hand.partition_point(|entry| entry.seq <= range.last);
                    let found = at_hand.get(first..last).unwrap_or_default();
                    if found.len() as u64 == range.len() {
                        entries.extend(found.iter().map(Cow::Borrowed));
                        continue;
                    }
                    let read = self.read(*range).await?;
                    if read.len() as u64 != range.len() {
                        return Ok(None);
                    }
                    entries.extend(read.into_iter().map(Cow::Owned));
                }
            }
        }
        let asked: Vec<SummaryId> = ids
            .iter()
            .filter(|id| !made.contains_key(*id))
            .cloned()
            .collect();
        let mut stored = match asked.is_empty() {
            true => Vec::new(),
            false => self.store.summaries(self.conversation, &asked).await?,
        }
        .into_iter();
        for id in &ids {
            let found = match made.get(id) {
                Some(summary) => Some(summary.clone()),
                None => stored.next().flatten(),
            };
            match found {
                Some(summary) => summaries.push(summary),
                None => return Ok(None),
            }
        }
        Ok(Some(Sources { entries, summaries }))
    }

    async fn settle(&self, fence: Option<Fence>, outcome: &JobOutcome) -> Result<()> {
        let Some(fence) = fence else { return Ok(()) };
        match self.store.settle(&fence, outcome, self.clock.now()).await {
            Ok(()) => Ok(()),
            // Somebody else has the job by now: it is theirs to settle.
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a job back that nobody wants any more.
    pub(crate) async fn release(&self, fence: Option<Fence>) -> Result<()> {
        self.settle(fence, &JobOutcome::Release).await
    }

    /// Gives a job back whose work is done but not published: whoever claims it next has it.
    pub(crate) async fn hand_back(&self, fence: Option<Fence>) -> Result<()> {
        let now = JobOutcome::Renew { ttl_micros: 0 };
        self.settle(fence, &now).await
    }
}

fn job_key(view: &str, job: &Job, source: memory_model::Hash, recipe: &Recipe) -> JobKey {
    let mut hasher = FieldHasher::new("agent-memory job 1");
    hasher.hash(source);
    hasher.bytes(recipe.as_str().as_bytes());
    let hash = hasher.finish().to_string();
    JobKey(format!(
        "{view}/{}/{}",
        job.range,
        hash.get(..16).unwrap_or(&hash)
    ))
}

/// The earliest and the latest time of the sources; those without a time do not count.
fn times(sources: &Sources<'_>) -> (Timestamp, Timestamp) {
    let entries = sources.entries.iter().map(|e| (e.created_at, e.created_at));
    let summaries = sources
        .summaries
        .iter()
        .map(|s| (s.earliest_at, s.latest_at));
    entries
        .chain(summaries)
        .filter(|(_, latest)| *latest != Timestamp::default())
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or_default()
}

/// How much of the log a summary of these sources stands for; `None` when one of them does not say.
fn figures(sources: &Sources<'_>) -> Option<SummaryFigures> {
    let mut figures = SummaryFigures::default();
    for entry in &sources.entries {
        if entry.kind == EntryKind::Message {
            figures.add_message(rows(&entry.parts), entry.tokens);
        }
    }
    for summary in &sources.summaries {
        figures.add_summary(&summary.figures()?, summary.tokens);
    }
    Some(figures)
}

/// Number of rows that a message has in the older memory engine's tables: one for its text or its
/// blocks, and one for each reasoning, tool call and tool result.
fn rows(parts: &[Part]) -> u64 {
    let apart = |part: &&Part| {
        matches!(
            part,
            Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. }
        )
    };
    let said = |part: &Part| match part {
        Part::Text { text } => !text.is_empty(),
        part => !apart(&part),
    };
    parts.iter().filter(apart).count() as u64 + u64::from(parts.iter().any(said))
}

/// How a summary came about, with its figures.
fn with_figures(meta: Option<RawJson>, figures: Option<SummaryFigures>) -> Option<RawJson> {
    let Some(figures) = figures else { return meta };
    let fields = meta.as_ref().map(RawJson::as_str).unwrap_or("{}");
    let mut fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(fields).ok()?;
    fields.insert("figures".to_owned(), serde_json::to_value(figures).ok()?);
    RawJson::from_value(&fields).ok().or(meta)
}

/// An error and its causes on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
