//! Summarizers that fail, hooks that interfere, and work that must not be repeated.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use async_trait::async_trait;
use compaction_plan::{
    BoxError, Job, JobSink, Label, Mode, PassInput, Planner, StopReason, ViewSource,
};
use compaction_runner::{
    CompactionReason, Event, Hooks, JobDecision, PlannedJob, Recorder, SkipReason,
};
use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
use futures::channel::oneshot;
use memory_model::{Message, Part, Role, Seq, Span, SpanBody, Summary, Timestamp, ViewName};
use memory_store::{ConversationRef, InMemoryStore, NewConversation, Origin, Publish, Store};
use store_conformance::FaultyStore;
use summarize_escalation::testing::{Answer, Scripted};
use summarize_escalation::{
    Error, ExtractiveSummarizer, Ladder, Summarizer, SummarizerResponse, SummaryRequest, Tier,
};
use token_estimate::default_estimator;

use crate::world::{
    Lab, append, chat, dump, filled, open, plain, script, small, sound, spans, strict, summaries,
    view, whole,
};

#[tokio::test]
async fn under_the_default_ladder_a_failing_model_stops_nothing() {
    for model in [
        Scripted::fails(),
        Scripted::empty(),
        Scripted::longer(),
        Scripted::echo(),
        Scripted::new([Answer::Blank]),
        Scripted::fixed(Ok("<&>")),
    ] {
        let (store, id) = filled(InMemoryStore::new(), 64).await;
        let lab = Lab::new(small());
        let outcome = lab.full(&store, id, &model).await;
        assert_eq!(
            outcome.stop_reason,
            StopReason::NothingEligible,
            "{model:?}"
        );
        assert!(outcome.after.tokens < outcome.before.tokens);
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.calls, u64::from(model.calls()));
        for summary in summaries(&store, id).await {
            assert!(summary.tokens < summary.source_tokens, "{summary:?}");
        }
        whole(&store, id, 0).await;
        sound(&store, id).await;
    }
}

/// A summarizer that answers when the test says so. It counts the begun and the waiting calls.
#[derive(Debug, Default)]
struct Gated {
    begun: AtomicU32,
    waiting: Mutex<VecDeque<oneshot::Sender<bool>>>,
}

impl Gated {
    /// Returns the number of begun calls, and of calls that wait for an answer.
    fn state(&self) -> (u32, usize) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.retain(|call| !call.is_canceled());
        (self.begun.load(Ordering::SeqCst), waiting.len())
    }

    /// Answers the oldest calls, with a text if `well` is true, otherwise with a failure.
    fn answer(&self, calls: usize, well: bool) {
        let mut waiting = self.waiting.lock().unwrap();
        for call in waiting.drain(..calls) {
            call.send(well).unwrap();
        }
    }
}

#[async_trait]
impl Summarizer for Gated {
    fn id(&self) -> &str {
        "gated@1"
    }

    fn model(&self) -> Option<&str> {
        Some("gated-model")
    }

    async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap().push_back(sender);
        match answer.await {
            Ok(true) => Ok(SummarizerResponse::new("what happened, in short")),
            _ => Err(Error::provider("gated@1", "503")),
        }
    }
}

/// Polls a run until it needs an answer to continue.
fn settle<T>(run: &mut Pin<&mut impl Future<Output = T>>, model: &Gated) {
    let mut before = None;
    let mut still = 0;
    while still < 8 {
        let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the run ended early");
        let state = model.state();
        still = if before == Some(state) { still + 1 } else { 0 };
        before = Some(state);
    }
}

#[tokio::test]
async fn a_strict_ladder_stops_where_the_provider_fails_and_keeps_what_is_done() {
    let (store, id) = filled(InMemoryStore::new(), 400).await;
    let lab = Lab::new(small()).with_ladder(strict());
    let cut = Answer::text("what happened, in short");
    let model = Scripted::new([cut.clone(), cut, Answer::fail("503")]);
    let recorder = Recorder::new();
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &recorder;
    run.policy.concurrency = 1;
    let outcome = run.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::SummarizerFailed);
    assert_eq!(outcome.published.get("leaf"), 2);
    let failure = outcome.failure.unwrap();
    assert!(failure.contains("503"), "{failure}");
    assert_eq!(failures(&recorder), 1);
    // No call was begun after the failure.
    assert_eq!((model.calls(), outcome.calls), (3, 3));
    whole(&store, id, 0).await;
    sound(&store, id).await;
    // The failed job is free. Another owner with a working model of the same name does it.
    let model = Scripted::new([Answer::text("done")]);
    let mut other = lab.compaction(&store, id, &model);
    other.policy.owner = Some("other".to_owned());
    let outcome = other.run(Mode::Full).await.unwrap();
    assert_ne!(outcome.stop_reason, StopReason::Held);
    whole(&store, id, 0).await;
}

fn failures(recorder: &Recorder) -> usize {
    let events = recorder.events();
    let failed = events.iter().filter(|e| matches!(e, Event::Failed { .. }));
    failed.count()
}

#[tokio::test]
async fn four_calls_are_under_way_at_once_and_a_failure_begins_no_other() {
    let (store, id) = filled(InMemoryStore::new(), 400).await;
    let lab = Lab::new(small()).with_ladder(strict());
    let model = Gated::default();
    let recorder = Recorder::new();
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &recorder;
    let mut run = pin!(run.run(Mode::Full));
    settle(&mut run, &model);
    assert_eq!(model.state(), (4, 4));
    // The first two calls succeed, and two others begin.
    model.answer(2, true);
    settle(&mut run, &model);
    assert_eq!(model.state(), (6, 4));
    // All calls in progress fail, and no further call is begun.
    model.answer(4, false);
    let outcome = run.await.unwrap();
    assert_eq!(model.state(), (6, 0));
    assert_eq!(outcome.stop_reason, StopReason::SummarizerFailed);
    assert_eq!((outcome.published.get("leaf"), outcome.calls), (2, 6));
    assert_eq!(failures(&recorder), 4);
    whole(&store, id, 0).await;
    sound(&store, id).await;
}

#[tokio::test]
async fn a_strict_ladder_takes_what_is_short_enough() {
    for (model, leaves) in [
        (Scripted::fails(), false),
        (Scripted::empty(), true),
        (Scripted::longer(), true),
        (Scripted::echo(), true),
    ] {
        let (store, id) = filled(InMemoryStore::new(), 64).await;
        let lab = Lab::new(plain()).with_ladder(strict());
        let outcome = lab.full(&store, id, &model).await;
        assert_eq!(
            outcome.published.get("leaf"),
            u64::from(leaves),
            "{model:?}"
        );
        if !leaves {
            assert_eq!(outcome.stop_reason, StopReason::SummarizerFailed);
            assert_eq!(outcome.before, outcome.after);
        }
        whole(&store, id, 0).await;
        sound(&store, id).await;
    }
}

/// Returns a ladder without a usable tier, so that no text can be made shorter.
fn hopeless() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive],
        ..Ladder::default()
    }
}

#[tokio::test]
async fn an_exhausted_state_is_not_tried_again() {
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 30).await;
    let lab = Lab::new(small()).with_ladder(hopeless());
    let model = Scripted::longer();
    for mode in [Mode::Full, Mode::Incremental] {
        let outcome = lab.compaction(&store, id, &model).run(mode).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Exhausted);
        assert_eq!(
            (outcome.published.get("leaf"), outcome.after),
            (0, outcome.before)
        );
    }
    let tried = model.calls();
    assert!(tried > 0);
    let (writes, before) = (store.writes(), dump(&store, id).await);
    let outcome = lab.full(&store, id, &model).await;
    assert_eq!(
        (outcome.stop_reason, outcome.calls),
        (StopReason::Exhausted, 0)
    );
    assert_eq!(model.calls(), tried);
    assert_eq!((store.writes(), dump(&store, id).await), (writes, before));
    // With another policy, other instructions or a new message, the state is tried again.
    let mut asked = lab.compaction(&store, id, &model);
    asked.instructions = Some("be short".to_owned());
    assert!(asked.run(Mode::Full).await.unwrap().calls > 0);
    let other = Lab::new(DagPolicy {
        leaf_min_messages: 5,
        ..small()
    })
    .with_ladder(hopeless());
    assert!(other.full(&store, id, &model).await.calls > 0);
    append(&store, id, chat(31, 1)).await;
    let outcome = lab.full(&store, id, &model).await;
    assert!(outcome.calls > 0);
    // A ladder with usable tiers continues from there.
    let outcome = Lab::new(small()).full(&store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    sound(store.inner(), id).await;
}

#[tokio::test]
async fn what_could_not_shrink_does_not_keep_the_rest_from_being_done() {
    let (store, id) = filled(InMemoryStore::new(), 64).await;
    let lab = Lab::new(small()).with_ladder(hopeless());
    // The first two calls are for the same job.
    let model = Scripted::new([Answer::Longer, Answer::Longer, Answer::HeadCut]);
    let mut run = lab.compaction(&store, id, &model);
    run.policy.concurrency = 1;
    let outcome = run.run(Mode::Incremental).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::PassesDone);
    assert!(outcome.published.get("leaf") > 0);
    // Further jobs are possible: no state was remembered that would stop the next run.
    let outcome = lab.full(&store, id, &model).await;
    assert!(outcome.published.get("leaf") > 0, "{outcome:?}");
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    whole(&store, id, 0).await;
    sound(&store, id).await;
}

/// Hooks that refuse a job or supply a text, depending on the first position of the job.
#[derive(Debug, Default)]
struct StepsIn {
    cancel: Option<u32>,
    supply: Option<(u32, String)>,
    asked: Mutex<Vec<u32>>,
    after: Mutex<Vec<Summary>>,
}

#[async_trait]
impl Hooks for StepsIn {
    async fn before(&self, job: &PlannedJob<'_>) -> JobDecision {
        let first = job.job.range.first.0;
        self.asked.lock().unwrap().push(first);
        match &self.supply {
            _ if self.cancel == Some(first) => JobDecision::Cancel,
            Some((at, text)) if *at == first => JobDecision::Supply(text.clone()),
            _ => JobDecision::Proceed,
        }
    }

    async fn after(&self, summary: &Summary) {
        self.after.lock().unwrap().push(summary.clone());
    }
}

#[tokio::test]
async fn hooks_cancel_and_supply() {
    let (store, id) = filled(InMemoryStore::new(), 20).await;
    let lab = Lab::new(DagPolicy {
        max_source_tokens: None,
        ..small()
    });
    let model = Scripted::head_cut();
    let no = StepsIn {
        cancel: Some(1),
        ..StepsIn::default()
    };
    for _ in 0..2 {
        let mut run = lab.compaction(&store, id, &model);
        run.hooks = &no;
        let outcome = run.run(Mode::Full).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::NoProgress);
        assert_eq!((outcome.published.get("leaf"), model.calls()), (0, 0));
    }
    // The hook was asked in each run, because its answer may change.
    assert_eq!(no.asked.lock().unwrap().len(), 2);
    let text = "the hook's <words> & nothing else".to_owned();
    let yes = StepsIn {
        supply: Some((1, text.clone())),
        ..StepsIn::default()
    };
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &yes;
    let outcome = run.run(Mode::Full).await.unwrap();
    assert_eq!((outcome.published.get("leaf"), model.calls()), (1, 0));
    let after = yes.after.lock().unwrap().clone();
    assert_eq!(after[0].text(), text);
    assert_eq!(after[0].tier, "supplied");
    assert_eq!(after, summaries(&store, id).await);
    sound(&store, id).await;
    // A supplied text must be shorter than its sources too.
    append(&store, id, chat(21, 40)).await;
    let long = StepsIn {
        supply: Some((after[0].range.last.0 + 1, "<&> ".repeat(9_000))),
        ..StepsIn::default()
    };
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &long;
    let outcome = run.run(Mode::Incremental).await.unwrap();
    assert!(outcome.after.tokens < outcome.before.tokens);
    sound(&store, id).await;
}

#[tokio::test]
async fn events_tell_the_story_in_order() {
    let (store, id) = filled(InMemoryStore::new(), 64).await;
    let lab = Lab::new(small());
    let recorder = Recorder::new();
    let model = Scripted::head_cut();
    let mut run = lab.compaction(&store, id, &model);
    run.hooks = &recorder;
    let outcome = run.run(Mode::Full).await.unwrap();
    let events = recorder.events();
    let (why, rest) = events.split_first().unwrap();
    let reason = CompactionReason::Manual;
    assert_eq!(*why, Event::Triggered { reason });
    let (first, rest) = rest.split_first().unwrap();
    let (last, middle) = rest.split_last().unwrap();
    let tokens = outcome.before.tokens;
    assert_eq!(
        *first,
        Event::Started {
            conversation: id,
            view: view(),
            tokens
        }
    );
    let tokens = outcome.after.tokens;
    assert_eq!(
        *last,
        Event::Ended {
            stop: StopReason::NothingEligible,
            tokens,
            will_retry: false,
        }
    );
    let mut saved = 0;
    let mut published = Vec::new();
    for event in middle {
        let Event::Published {
            summary,
            source_tokens,
            tokens,
            ..
        } = event
        else {
            panic!("{event:?}");
        };
        saved += source_tokens - tokens;
        published.extend(summary.clone());
    }
    assert_eq!(published, outcome.summaries);
    assert_eq!(saved, outcome.before.tokens - outcome.after.tokens);
    let ranges: Vec<_> = middle[..outcome.published.get("leaf") as usize]
        .iter()
        .map(|event| match event {
            Event::Published { range, .. } => range.first,
            _ => Seq::NONE,
        })
        .collect();
    assert!(ranges.is_sorted(), "{ranges:?}");

    let held = Recorder::new();
    append(&store, id, chat(65, 40)).await;
    let hopeless = Lab::new(small()).with_ladder(hopeless());
    let model = Scripted::longer();
    let mut run = hopeless.compaction(&store, id, &model);
    run.hooks = &held;
    run.run(Mode::Full).await.unwrap();
    let skipped = held.events();
    let (mut failed, mut left) = (Vec::new(), Vec::new());
    for event in &skipped[2..skipped.len() - 1] {
        match event {
            Event::ModelFailed { range, .. } => failed.push(*range),
            Event::Skipped {
                range,
                reason: SkipReason::CannotShrink,
            } => left.push(*range),
            other => panic!("{other:?}"),
        }
    }
    failed.sort();
    assert!(!left.is_empty());
    assert_eq!(failed, left);
}

/// A summarizer that records its instructions.
#[derive(Debug, Default)]
struct Hears(Mutex<Vec<Option<String>>>);

#[async_trait]
impl Summarizer for Hears {
    fn id(&self) -> &str {
        "hears@1"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.0
            .lock()
            .unwrap()
            .push(request.instructions.map(str::to_owned));
        Ok(SummarizerResponse::new("in short"))
    }
}

#[tokio::test]
async fn instructions_reach_the_model_and_make_another_summary() {
    let (store, id) = filled(InMemoryStore::new(), 20).await;
    let lab = Lab::new(DagPolicy {
        max_source_tokens: None,
        ..small()
    });
    let model = Hears::default();
    let mut run = lab.compaction(&store, id, &model);
    run.instructions = Some("mind the ports".to_owned());
    run.run(Mode::Full).await.unwrap();
    undo(&store, id).await;
    lab.full(&store, id, &model).await;
    let heard = model.0.lock().unwrap().clone();
    assert_eq!(heard, [Some("mind the ports".to_owned()), None]);
}

/// Makes the whole view raw again.
async fn undo(store: &dyn Store, id: memory_model::ConversationId) {
    let found = store.conversation(&ConversationRef::Id(id)).await.unwrap();
    let at = found.unwrap().range().unwrap();
    let mut expect = spans(store, id).await;
    if let Some(last) = expect.last_mut() {
        last.range.last = Some(at.last);
    }
    let publish = Publish {
        view: view(),
        at,
        expect,
        spans: vec![Span::closed(at, SpanBody::Raw, 0)],
        summaries: Vec::new(),
        fence: None,
        erasures: 0,
        now: Timestamp(5),
    };
    let done = store.publish(id, &publish).await.unwrap();
    assert!(matches!(done, memory_store::Published::Done(_)), "{done:?}");
}

#[tokio::test]
async fn the_same_summary_is_not_paid_for_twice() {
    let (store, id) = filled(InMemoryStore::new(), 64).await;
    let lab = Lab::new(small());
    let model = Scripted::head_cut();
    let first = lab.full(&store, id, &model).await;
    assert!(first.published.get("condensed") > 0);
    let (compacted, made, paid) = (
        spans(&store, id).await,
        summaries(&store, id).await,
        model.calls(),
    );
    undo(&store, id).await;
    assert_eq!(spans(&store, id).await.len(), 1);
    let second = lab.full(&store, id, &model).await;
    assert_eq!((second.calls, model.calls()), (0, paid));
    assert_eq!(second.summaries, first.summaries);
    assert_eq!(spans(&store, id).await, compacted);
    assert_eq!(summaries(&store, id).await, made);
    sound(&store, id).await;
}

#[tokio::test]
async fn an_iteration_cap_and_the_modes() {
    let (store, id) = filled(InMemoryStore::new(), 200).await;
    let model = Scripted::head_cut();
    let policy = DagPolicy {
        condensed_min: 2,
        condensed_max: Some(2),
        ..small()
    };
    let plan = Lab::new(policy.clone());
    let planned = plan.compaction(&store, id, &model).plan().await.unwrap();
    assert!(planned.jobs.iter().all(|job| job.depth() == Some(0)));
    assert_eq!(
        (model.calls(), store.views(id).await.unwrap().len()),
        (0, 0)
    );
    let outcome = plan
        .compaction(&store, id, &model)
        .run(Mode::Incremental)
        .await
        .unwrap();
    assert_eq!(outcome.stop_reason, StopReason::PassesDone);
    assert_eq!(outcome.published.get("leaf") as usize, planned.jobs.len());
    assert_eq!(
        outcome.published.get("condensed"),
        outcome.published.get("leaf") / 2
    );
    let mut capped = policy.clone();
    capped.max_iterations = Some(1);
    let outcome = Lab::new(capped).full(&store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::IterationCap);
    let outcome = plan.full(&store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    let again = plan.full(&store, id, &model).await;
    assert_eq!((again.before, again.published.total()), (outcome.after, 0));
    whole(&store, id, 0).await;
    sound(&store, id).await;
}

#[tokio::test]
async fn nothing_eligible_writes_nothing() {
    let notes = || (0..40).map(|_| Message::note(Role::System, vec![Part::text("a note")]));
    for (messages, times) in [
        (Vec::new(), 0),
        (notes().collect(), 0),
        (chat(1, 5), 0),
        (script(&"u a+x ".repeat(3)), 0),
        (chat(1, 64), 1),
    ] {
        let store = FaultyStore::new(InMemoryStore::new());
        let id = open(&store, "chat").await;
        append(&store, id, messages).await;
        let (lab, model) = (Lab::new(small()), Scripted::head_cut());
        for _ in 0..times {
            lab.full(&store, id, &model).await;
        }
        let (writes, calls, before) = (store.writes(), model.calls(), dump(&store, id).await);
        for mode in [Mode::Incremental, Mode::Full] {
            let outcome = lab.compaction(&store, id, &model).run(mode).await.unwrap();
            assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
            assert_eq!(outcome.before, outcome.after);
        }
        assert!(
            lab.compaction(&store, id, &model)
                .plan()
                .await
                .unwrap()
                .jobs
                .is_empty()
        );
        assert_eq!((store.writes(), model.calls()), (writes, calls));
        assert_eq!(dump(&store, id).await, before);
    }
}

#[tokio::test]
async fn a_fork_is_compacted_by_itself() {
    let store = InMemoryStore::new();
    let parent = open(&store, "chat").await;
    append(&store, parent, chat(1, 64)).await;
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    lab.full(&store, parent, &model).await;
    let before = dump(&store, parent).await;
    let mut new = NewConversation::root("fork", default_estimator().id(), Timestamp(1));
    new.origin = Origin::Fork {
        parent,
        at: Seq(40),
    };
    let fork = store.open(&new).await.unwrap().id;
    append(&store, fork, chat(200, 30)).await;
    let outcome = lab.full(&store, fork, &ExtractiveSummarizer::new()).await;
    assert_eq!(outcome.before.messages, 70);
    assert!(outcome.after.tokens < outcome.before.tokens);
    whole(&store, fork, 0).await;
    sound(&store, fork).await;
    assert_eq!(dump(&store, parent).await, before);
}

#[tokio::test]
async fn a_run_longer_than_what_is_kept_at_hand_is_read_again() {
    let store = InMemoryStore::new();
    let id = open(&store, "chat").await;
    append(&store, id, script(&"u a ".repeat(6_000))).await;
    let policy = DagPolicy {
        fresh_tail: FreshTail::messages(4),
        ..plain()
    };
    let lab = Lab::new(policy);
    let outcome = lab.full(&store, id, &Scripted::head_cut()).await;
    assert_eq!(
        (outcome.published.get("leaf"), outcome.messages_compacted),
        (1, 11_996)
    );
    whole(&store, id, 0).await;
    sound(&store, id).await;
}

#[tokio::test]
async fn a_call_that_still_waits_is_not_covered_however_short_the_tail() {
    let policy = DagPolicy {
        fresh_tail: FreshTail::messages(1),
        leaf_min_messages: 1,
        ..small()
    };
    let lab = Lab::new(policy);
    for waits in ["a+x", "a/r+x", "a/r+x n a/r", "u+x"] {
        let store = InMemoryStore::new();
        let id = open(&store, "chat").await;
        let before = 60;
        let log = format!("{} {waits} {}", "u ".repeat(before), "u ".repeat(40));
        append(&store, id, script(&log)).await;
        lab.full(&store, id, &Scripted::head_cut()).await;
        let covered = spans(&store, id).await;
        let raw = covered.last().unwrap();
        assert_eq!(raw.body, SpanBody::Raw);
        // A last range that is too small to shrink may stay. Ranges that wait must not.
        let first = raw.range.first.0 as usize;
        assert!(
            (before - 8..=before + 1).contains(&first),
            "{waits}: {first}"
        );
        assert!(covered.len() > 1);
        // With the result, the group is complete and is summarized as a whole.
        append(&store, id, script("t-x u a u a u")).await;
        lab.full(&store, id, &Scripted::head_cut()).await;
        assert!(spans(&store, id).await.last().unwrap().range.first > Seq(101));
        whole(&store, id, 0).await;
        sound(&store, id).await;
    }
}

/// A summarizer that records which events its hooks were told of before it was asked.
#[derive(Debug)]
struct Watches {
    recorder: Recorder,
    model: Scripted,
    seen: Mutex<Vec<Vec<Event>>>,
}

#[async_trait]
impl Summarizer for Watches {
    fn id(&self) -> &str {
        self.model.id()
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.seen.lock().unwrap().push(self.recorder.events());
        self.model.summarize(request).await
    }
}

#[tokio::test]
async fn a_compaction_is_announced_before_the_model_is_asked() {
    let (store, id) = filled(InMemoryStore::new(), 64).await;
    let lab = Lab::new(small());
    let recorder = Recorder::new();
    let watches = Watches {
        recorder: recorder.clone(),
        model: Scripted::head_cut(),
        seen: Mutex::default(),
    };
    let mut run = lab.compaction(&store, id, &watches);
    run.hooks = &recorder;
    run.run(Mode::Full).await.unwrap();
    let seen = watches.seen.into_inner().unwrap();
    assert!(!seen.is_empty());
    for events in seen {
        let is_started = |event: &Event| matches!(event, Event::Started { .. });
        let is_ended = |event: &Event| matches!(event, Event::Ended { .. });
        assert!(events.iter().any(is_started) && !events.iter().any(is_ended));
    }
}

/// A planner that plans one leaf in each iteration.
#[derive(Debug)]
struct OneLeaf(DagPlanner);

#[async_trait]
impl Planner for OneLeaf {
    fn view(&self) -> ViewName {
        self.0.view()
    }

    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    fn passes(&self) -> &[Label] {
        &self.0.passes()[..1]
    }

    fn max_iterations(&self) -> Option<u32> {
        self.0.max_iterations()
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let mut planned: Vec<Job> = Vec::new();
        self.0.plan(input, view, &mut planned).await?;
        jobs.extend(planned.into_iter().take(1));
        Ok(())
    }
}

#[tokio::test]
async fn a_full_compaction_ends_after_ten_iterations_if_the_policy_says_so() {
    for (max_iterations, stop) in [
        (Some(10), StopReason::IterationCap),
        (None, StopReason::NothingEligible),
    ] {
        let (store, id) = filled(InMemoryStore::new(), 200).await;
        let lab = Lab::new(small());
        let planner = OneLeaf(DagPlanner::new(DagPolicy {
            max_iterations,
            ..small()
        }));
        let model = Scripted::head_cut();
        let mut run = lab.compaction(&store, id, &model);
        run.planner = &planner;
        let outcome = run.run(Mode::Full).await.unwrap();
        assert_eq!(outcome.stop_reason, stop);
        // There is more to do than ten iterations do.
        let made = outcome.published.get("leaf");
        assert_eq!(made == 10, max_iterations.is_some());
        assert!(made >= 10, "{made}");
    }
}
