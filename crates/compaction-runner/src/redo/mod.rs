//! Replacing summaries that were written without a model.

mod plan;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::{Job, Label, Work};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use memory_model::{Body, Child, SeqRange, Span, Summary, SummaryId};
use memory_store::{Fence, Publish, Published};
use serde::{Deserialize, Serialize};
use summarize_escalation::Tier;

use crate::error::Result;
use crate::events::{Event, SkipReason};
use crate::outcome::Measure;
use crate::owners::HeldBy;
use crate::prepare::{Done, Prepared};
use crate::report::{Cause, ModelReport};
use crate::run::Compaction;
use crate::watch::Watch;
use plan::{Nodes, Tree, trees};
use refused::Refused;

pub use plan::{RedoNode, RedoPlan};

/// The label of jobs that make a summary anew.
const REDO: Label = Label::from_static("redo");
/// How many summaries are looked up at once.
const LOOK_UP: usize = 256;
/// How often in a row somebody else may be first before it is left to them.
const LOST_RACES: u32 = 3;

/// How far a redo goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RedoPolicy {
    /// Maximum number of calls of the summarizer; what they wrote is kept for the next redo. No
    /// limit. Calls that guards make again are not seen here: limit what the guards may spend.
    pub max_calls: Option<u64>,
    /// Maximum number of consecutive failed summaries before it stops. 3, as koda's
    /// breaker.
    pub max_failures: u32,
}

impl Default for RedoPolicy {
    fn default() -> Self {
        Self {
            max_calls: None,
            max_failures: 3,
        }
    }
}

impl Redone {
    /// Whether something was written or published: the next run has less to do.
    pub fn made_progress(&self) -> bool {
        self.written > 0 || !self.replaced.is_empty()
    }
}

impl RedoPolicy {
    /// Sets how many calls it may make.
    pub fn with_max_calls(mut self, calls: Option<u64>) -> Self {
        self.max_calls = calls;
        self
    }

    /// Sets after how many failures in a row it stops.
    pub fn with_max_failures(mut self, failures: u32) -> Self {
        self.max_failures = failures;
        self
    }
}

/// What a redo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Redone {
    /// The view before.
    pub before: Measure,
    /// The view after.
    pub after: Measure,
    /// Summaries in the view's tree that were written without a model, before.
    pub provisional: u64,
    /// Those that are still there.
    pub left: u64,
    /// Which summary took the place of which, those above included.
    pub replaced: Vec<Replaced>,
    /// Calls of the summarizer, failed ones too.
    pub calls: u64,
    /// Summaries that were written in this run: published, or kept for the run that completes the
    /// summaries above them.
    pub written: u64,
    /// The summaries that could not be made, and why.
    pub failures: Vec<RedoFailure>,
    /// How many summaries the model was asked for, and why some were not made.
    pub model: ModelReport,
    /// Fewest calls that a summary takes here; known where calls were limited.
    pub needed_calls: Option<u64>,
    /// Who was at work on a summary that this run therefore passed over, last.
    pub held: Option<HeldBy>,
    /// Why it stopped.
    pub stop_reason: RedoStop,
}

/// A summary that took the place of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// The one before; it stays in the history.
    pub old: SummaryId,
    /// The one in its place.
    pub new: SummaryId,
}

/// A summary that could not be made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedoFailure {
    /// The summary, which stays.
    pub id: SummaryId,
    /// What it covers.
    pub range: SeqRange,
    /// Why.
    pub error: String,
}

/// Why a redo stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedoStop {
    /// Nothing in the view is left that was written without a model.
    Done,
    /// The summarizer needs no model itself: what it writes would have to be redone again.
    NoModel,
    /// Some summaries could not be made.
    SummarizerFailed,
    /// The calls it was allowed are made.
    CallLimit,
    /// The calls it was allowed are fewer than one summary takes; nothing was written.
    CallLimitTooLow,
    /// Somebody else changed the view again and again.
    LostRace,
    /// Somebody else is at work on the rest.
    Held,
    /// The caller asked to stop.
    Cancelled,
}

/// What is known of a redo so far.
#[derive(Debug, Default)]
struct Progress {
    watch: Watch,
    given_up: BTreeSet<SummaryId>,
    failed_in_a_row: u32,
    held: bool,
    /// Whether a limit on calls or tokens was reached.
    limited: bool,
    written: u64,
    failures: Vec<RedoFailure>,
    replaced: Vec<Replaced>,
    refused: Refused,
}

/// What was made for one tree and is not published yet.
#[derive(Debug, Default)]
struct Made {
    /// By id.
    summaries: BTreeMap<SummaryId, Summary>,
    /// Old id to new.
    instead: BTreeMap<SummaryId, SummaryId>,
    /// In the order of their making.
    order: Vec<SummaryId>,
    fences: Vec<Fence>,
}

impl Made {
    /// What took the place of what, as far as the new top leads to it, in the order of making. A
    /// summary whose parent could not be made is kept in the store, but it replaced nothing.
    fn replaced(&self, top: &SummaryId) -> Vec<Replaced> {
        let mut reached = BTreeSet::new();
        let mut todo = vec![top];
        while let Some(summary) = todo.pop().and_then(|id| self.summaries.get(id)) {
            reached.insert(&summary.id);
            let sources = summary.source_summaries();
            todo.extend(sources.filter(|id| self.summaries.contains_key(*id)));
        }
        let mut pairs: Vec<(usize, Replaced)> = Vec::new();
        for (old, new) in &self.instead {
            let place = self.order.iter().position(|id| id == new);
            if let Some(place) = place.filter(|_| reached.contains(new)) {
                let (old, new) = (old.clone(), new.clone());
                pairs.push((place, Replaced { old, new }));
            }
        }
        pairs.sort_by_key(|(place, _)| *place);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }
}

/// How a tree ended.
enum Ended {
    Published,
    /// Somebody else changed the view first.
    Lost,
    /// Nothing could be published; it is in the progress why.
    Kept,
    Stop(RedoStop),
}

impl Compaction<'_> {
    /// What [`Compaction::redo`] would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self) -> Result<RedoPlan> {
        let snapshot = self.snapshot().await?;
        let spans = self.spans(&snapshot).await?;
        let nodes = self.reach(&spans).await?;
        let trees = trees(&spans, &nodes, &BTreeSet::new());
        let stale = trees.iter().flat_map(|tree| &tree.stale);
        let nodes = stale.filter_map(|id| nodes.get(id)).map(|old| RedoNode {
            id: old.id.clone(),
            range: old.range,
            depth: old.depth,
            provisional: old.provisional,
        });
        Ok(RedoPlan {
            view: snapshot.view,
            version: snapshot.version,
            nodes: nodes.collect(),
        })
    }

    /// Replaces the summaries in the view that were written without a model by what the summarizer
    /// writes for the same sources, and all summaries that were made from them. The old ones stay in
    /// the history.
    ///
    /// A span of the view is replaced in one publish, with everything that it was made from, if the view still
    /// holds it. What was made before a crash, a lost race or a limit is kept and found again.
    /// Until a span is replaced it stays as it is: the view is valid at every moment. A summary
    /// that the summarizer cannot make stays, and those above it are made from it. It is
    /// remembered: the next redo by the same summarizer asks for all others first, and for the one
    /// that was refused most recently last.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<Redone> {
        let start = self.snapshot().await?;
        let before = self.measure(&start).await?;
        let spans = self.spans(&start).await?;
        let provisional = provisional(&self.reach(&spans).await?);
        let mut progress = Progress::default();
        progress.watch.max_calls = policy.max_calls;
        let stop = match self.summarizer.provisional() && provisional > 0 {
            true => RedoStop::NoModel,
            false => self.redo_all(policy, &mut progress).await?,
        };
        let end = self.snapshot().await?;
        let after = self.measure(&end).await?;
        let left = provisional_in(self, &end).await?;
        let mut redone = Redone {
            before,
            after,
            provisional,
            left,
            replaced: progress.replaced,
            calls: progress.watch.calls.load(Ordering::Relaxed),
            written: progress.written,
            failures: progress.failures,
            model: progress.watch.report().for_redo(),
            needed_calls: progress.watch.needed(),
            held: progress.watch.held_by(),
            stop_reason: stop,
        };
        let nothing = !redone.made_progress() && redone.failures.is_empty();
        if stop == RedoStop::CallLimit && nothing {
            redone.stop_reason = RedoStop::CallLimitTooLow;
        }
        Ok(redone)
    }

    async fn redo_all(&self, policy: &RedoPolicy, progress: &mut Progress) -> Result<RedoStop> {
        let mut lost = 0;
        progress.refused = self.refused().await?;
        // Those that were refused before wait until all others are made, then each has its turn.
        let mut waiting = progress.refused.sources().to_vec();
        loop {
            let snapshot = self.snapshot().await?;
            let spans = self.spans(&snapshot).await?;
            let nodes = self.reach(&spans).await?;
            let waits = |node: &&Summary| waiting.contains(&node.source_hash);
            let mut skipped = progress.given_up.clone();
            skipped.extend(nodes.values().filter(waits).map(|node| node.id.clone()));
            let trees = trees(&spans, &nodes, &skipped);
            if trees.is_empty() && !waiting.is_empty() {
                waiting.remove(0);
                continue;
            }
            if trees.is_empty() {
                return Ok(match () {
                    () if !progress.failures.is_empty() => RedoStop::SummarizerFailed,
                    () if progress.held => RedoStop::Held,
                    () => RedoStop::Done,
                });
            }
            let mut was_lost = false;
            for tree in &trees {
                match self.redo_tree(tree, &nodes, policy, progress).await? {
                    Ended::Published => lost = 0,
                    Ended::Lost => was_lost = true,
                    Ended::Kept => {}
                    Ended::Stop(reason) => return Ok(reason),
                }
            }
            if was_lost {
                lost += 1;
                if lost >= LOST_RACES {
                    return Ok(RedoStop::LostRace);
                }
            }
        }
    }

    async fn redo_tree(
        &self,
        tree: &Tree,
        nodes: &Nodes,
        policy: &RedoPolicy,
        progress: &mut Progress,
    ) -> Result<Ended> {
        let mut made = Made::default();
        let ended = self
            .make_tree(tree, nodes, policy, progress, &mut made)
            .await;
        let published = match ended {
            Ok(None) => self.publish_tree(tree, &made, progress).await,
            Ok(Some(stop)) => Ok(Ended::Stop(stop)),
            Err(error) => Err(error),
        };
        let done = matches!(published, Ok(Ended::Published));
        // What was written and is not published is kept for the next time.
        let settled = match done {
            true => self.release(made.fences).await,
            false => self.hand_back(made.fences).await,
        };
        if published.is_ok() {
            settled?;
        }
        published
    }

    /// Makes what is stale in a tree, the lowest first; `Some` when it has to stop.
    async fn make_tree(
        &self,
        tree: &Tree,
        nodes: &Nodes,
        policy: &RedoPolicy,
        progress: &mut Progress,
        made: &mut Made,
    ) -> Result<Option<RedoStop>> {
        let stale: Vec<&Summary> = tree.stale.iter().filter_map(|id| nodes.get(id)).collect();
        let mut rest = stale.as_slice();
        while let Some(first) = rest.first() {
            if self.cancel.is_cancelled() {
                return Ok(Some(RedoStop::Cancelled));
            }
            if progress.failed_in_a_row >= policy.max_failures.max(1) {
                return Ok(Some(RedoStop::SummarizerFailed));
            }
            let Some(room) = self.room(policy, &progress.watch) else {
                return Ok(Some(RedoStop::CallLimit));
            };
            // Those of one depth do not need each other, unless one is a source of another.
            let mut level = BTreeSet::new();
            let apart = rest.iter().take_while(|old| {
                let needs = old.source_summaries().any(|id| level.contains(id));
                level.insert(&old.id);
                old.depth == first.depth && !needs
            });
            let some = apart.take(room).count();
            let (now, later) = rest.split_at(some);
            rest = later;
            if let Some(stop) = self.make_some(now, nodes, progress, made).await? {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// How many summaries may be made at the same time; `None` when no call is left. Several are
    /// begun only while each of them has calls enough to be asked for in every style.
    fn room(&self, policy: &RedoPolicy, watch: &Watch) -> Option<usize> {
        let at_once = self.policy.concurrency.max(1);
        let Some(most) = policy.max_calls else {
            return Some(at_once);
        };
        let asks = |tier: &&Tier| matches!(tier, Tier::Normal | Tier::Aggressive);
        let each = self.ladder.tiers.iter().filter(asks).count().max(1) as u64;
        let left = most.saturating_sub(watch.calls.load(Ordering::Relaxed));
        let room = usize::try_from(left / each).unwrap_or(usize::MAX);
        (left > 0).then(|| room.clamp(1, at_once))
    }

    async fn make_some(
        &self,
        olds: &[&Summary],
        nodes: &Nodes,
        progress: &mut Progress,
        made: &mut Made,
    ) -> Result<Option<RedoStop>> {
        let mut jobs = Vec::with_capacity(olds.len());
        for &old in olds {
            if let Some(job) = self.job_anew(old, nodes, made).await? {
                jobs.push((old, job));
            }
        }
        let asked: Vec<&Job> = jobs.iter().map(|(_, job)| job).collect();
        let done = self.make(&asked, made, &progress.watch).await?;
        let mut stop = None;
        let mut remembered = false;
        let mut released = Vec::new();
        for ((old, _), mut done) in jobs.iter().zip(done) {
            let fence = done.fence.take();
            let prepared = std::mem::replace(&mut done.prepared, Prepared::NotBegun);
            let kept = matches!(&prepared, Prepared::Summary(ready) if !ready.summary.provisional);
            match kept {
                true => made.fences.extend(fence),
                false => released.extend(fence),
            }
            let (error, asked) = match prepared {
                Prepared::Summary(ready) if kept => {
                    progress.failed_in_a_row = 0;
                    progress.written += u64::from(ready.fresh);
                    remembered |= progress.refused.forget(old.source_hash);
                    let summary = ready.summary;
                    made.instead.insert(old.id.clone(), summary.id.clone());
                    made.order.push(summary.id.clone());
                    made.summaries.insert(summary.id.clone(), summary);
                    continue;
                }
                Prepared::Summary(ready) => {
                    // An extract is what is there already.
                    if ready.cause.as_ref().is_some_and(Cause::is_limit) {
                        progress.limited = true;
                        continue;
                    }
                    let asked = ready.cause.as_ref().is_none_or(Cause::was_asked);
                    let said = ready.cause.map(|cause| cause.to_string());
                    let said = said.unwrap_or_else(|| "the ladder asks no model".to_owned());
                    (said, asked)
                }
                Prepared::Failed { cause, .. } if cause.is_limit() => {
                    progress.limited = true;
                    continue;
                }
                Prepared::Failed { error, cause } => (error, cause.was_asked()),
                Prepared::Cancelled | Prepared::NotBegun | Prepared::Replacement => {
                    stop = Some(RedoStop::Cancelled);
                    continue;
                }
                Prepared::Skipped(SkipReason::CannotShrink) => {
                    ("nothing shorter could be made of it".to_owned(), true)
                }
                Prepared::Skipped(SkipReason::Vetoed) => ("a hook said no".to_owned(), true),
                Prepared::Skipped(_) => {
                    progress.held = true;
                    progress.given_up.insert(old.id.clone());
                    continue;
                }
            };
            if asked {
                progress.refused.remember(old.source_hash);
                remembered = true;
            }
            progress.failed_in_a_row += 1;
            progress.given_up.insert(old.id.clone());
            let range = old.range;
            self.emit(Event::Failed {
                range,
                error: error.clone(),
            })
            .await;
            progress.failures.push(RedoFailure {
                id: old.id.clone(),
                range,
                error,
            });
        }
        self.release(released).await?;
        if remembered {
            self.remember_refused(&mut progress.refused).await?;
        }
        if progress.limited {
            stop.get_or_insert(RedoStop::CallLimit);
        }
        Ok(stop)
    }

    /// Makes jobs at the same time, and keeps what was written as drafts.
    async fn make<'j>(
        &self,
        jobs: &[&'j Job],
        made: &Made,
        watch: &Watch,
    ) -> Result<Vec<Done<'j>>> {
        // A summary that fails does not keep those beside it from being made.
        let stops = |_: &&Job| AtomicBool::new(false);
        let stops: Vec<AtomicBool> = jobs.iter().map(stops).collect();
        let begun = self.begin(jobs, &[], &made.summaries, watch).await?;
        let work: Vec<BoxFuture<'_, Done<'j>>> = begun
            .into_iter()
            .zip(&stops)
            .map(|(begun, stop)| self.call(begun, watch, stop).boxed())
            .collect();
        let at_once = self.policy.concurrency.max(1);
        let work = futures::stream::iter(work).buffered(at_once);
        let mut done: Vec<Done<'j>> = work.collect().await;
        self.keep_drafts(&mut done).await;
        Ok(done)
    }

    /// The job that makes a summary again, from the new versions of its sources; `None` when
    /// there is no reason to.
    async fn job_anew(&self, old: &Summary, nodes: &Nodes, made: &Made) -> Result<Option<Job>> {
        let anew = |child: &Child| match child {
            Child::Messages { .. } => child.clone(),
            Child::Summary { id, range } => Child::Summary {
                range: *range,
                id: made.instead.get(id).unwrap_or(id).clone(),
            },
        };
        let sources: Vec<Child> = old.sources.iter().map(anew).collect();
        if sources == old.sources && !old.provisional {
            return Ok(None);
        }
        let children = match old.children == old.sources {
            true => None,
            false => Some(old.children.iter().map(anew).collect()),
        };
        let mut source_tokens = 0_u64;
        for source in &sources {
            let tokens = match source {
                Child::Messages { range } => {
                    let at = [range.first.prev(), range.last];
                    let running = self.store.running(self.conversation, &at).await?;
                    match running.as_slice() {
                        [before, through] => through.saturating_sub(*before),
                        _ => 0,
                    }
                }
                Child::Summary { id, .. } => {
                    let summary = made.summaries.get(id).or_else(|| nodes.get(id));
                    summary.map_or(0, |summary| summary.tokens)
                }
            };
            source_tokens = source_tokens.saturating_add(tokens);
        }
        Ok(Some(Job {
            kind: REDO,
            range: old.range,
            expect: Vec::new(),
            work: Work::Summarize {
                sources,
                children,
                depth: old.depth,
            },
            request: None,
            source_tokens,
            why: match old.provisional {
                true => "it was written without a model".to_owned(),
                false => "a summary that it was made from was made anew".to_owned(),
            },
        }))
    }

    async fn publish_tree(
        &self,
        tree: &Tree,
        made: &Made,
        progress: &mut Progress,
    ) -> Result<Ended> {
        let Body::Summary { id: old, .. } = &tree.span.body else {
            return Ok(Ended::Kept);
        };
        let new = made.instead.get(old).and_then(|id| made.summaries.get(id));
        let (Some(new), Some(at)) = (new, tree.span.closed_range()) else {
            // It stays, and so does all below it.
            progress.given_up.insert(old.clone());
            return Ok(Ended::Kept);
        };
        let body = Body::Summary {
            id: new.id.clone(),
            depth: new.depth,
        };
        let in_order = made.order.iter().filter_map(|id| made.summaries.get(id));
        let publish = Publish {
            view: self.planner.view(),
            at,
            expect: vec![tree.span.clone()],
            spans: vec![Span::closed(at, body, new.tokens)],
            summaries: in_order.clone().cloned().collect(),
            fence: None,
            now: self.clock.now(),
        };
        match self.store.publish(self.conversation, &publish).await? {
            Published::Done(_) => {}
            Published::Already(_) | Published::Lost { .. } => return Ok(Ended::Lost),
        }
        progress.replaced.extend(made.replaced(&new.id));
        for summary in in_order {
            self.emit(Event::Published {
                kind: REDO,
                summary: Some(summary.id.clone()),
                range: summary.range,
                source_tokens: summary.source_tokens,
                tokens: summary.tokens,
            })
            .await;
            self.hooks.after(summary).await;
        }
        Ok(Ended::Published)
    }

    /// All summaries that these spans show or that went into one of those.
    async fn reach(&self, spans: &[Span]) -> Result<Nodes> {
        let mut nodes = Nodes::new();
        let mut todo: Vec<SummaryId> = spans
            .iter()
            .filter_map(|span| match &span.body {
                Body::Summary { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        while !todo.is_empty() {
            let some: Vec<SummaryId> = todo.drain(..todo.len().min(LOOK_UP)).collect();
            let found = self.store.summaries(self.conversation, &some).await?;
            for summary in found.into_iter().flatten() {
                let sources = summary.source_summaries();
                todo.extend(sources.filter(|id| !nodes.contains_key(*id)).cloned());
                nodes.insert(summary.id.clone(), summary);
            }
        }
        Ok(nodes)
    }
}

fn provisional(nodes: &Nodes) -> u64 {
    nodes.values().filter(|node| node.provisional).count() as u64
}

async fn provisional_in(
    compaction: &Compaction<'_>,
    snapshot: &memory_store::Snapshot,
) -> Result<u64> {
    let spans = compaction.spans(snapshot).await?;
    Ok(provisional(&compaction.reach(&spans).await?))
}
