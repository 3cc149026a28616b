//! A model that fails, and rewriting of the summaries that were written without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Builder, DagPolicy, Mode, Session, Summarizer,
    compaction::{FreshTail, RedoPolicy, RedoStop, StopReason},
    model::{Child, Summary, SummaryId},
    models::{BreakerPolicy, GuardPolicy, SpendPolicy},
    summaries::{Ladder, SummarizerResponse, SummaryRequest},
};
use memory_model::{Accounting as _, SourceHasher, summary_overhead};
use proptest::prelude::*;
use summarize_escalation::testing::FakeTimer;
use summarize_escalation::{Error, FailureKind, Source, escalate};

use crate::support::Inspect as _;
use crate::support::{both, dump, lenient, talk};

/// A model that fails in random calls. It has the same id as a model that never fails.
#[derive(Debug, Clone)]
struct Flaky {
    sound: Scripted,
    /// Number of failing calls out of a hundred.
    failing: u64,
    calls: Arc<AtomicU64>,
}

impl Flaky {
    fn new(failing: u64) -> Self {
        Self {
            sound: Scripted::head_cut(),
            failing,
            calls: Arc::default(),
        }
    }
}

#[async_trait::async_trait]
impl Summarizer for Flaky {
    fn id(&self) -> &str {
        self.sound.id()
    }

    fn model(&self) -> Option<&str> {
        self.sound.model()
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        // Knuth's multiplicative hash: as random as it needs to be.
        let dice = call.wrapping_add(7).wrapping_mul(2_654_435_761) >> 8;
        if dice % 100 >= self.failing {
            return self.sound.summarize(request).await;
        }
        match dice % 5 {
            0 => Ok(SummarizerResponse::new("")),
            1 => Ok(SummarizerResponse::new(" \n")),
            2 => Ok(SummarizerResponse::new("much too long ".repeat(900))),
            _ => Err(Error::provider(self.id(), "503 service unavailable")),
        }
    }
}

/// Returns a policy with small leaves and pairs of summaries, so that a few messages give a deep tree.
fn small() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(4),
        leaf_min_messages: 4,
        max_source_tokens: Some(260),
        condensed_min: 2,
        condensed_max: Some(3),
        ..DagPolicy::default()
    }
}

fn with(summarizer: impl Summarizer + 'static) -> Builder {
    memory().dag(small()).summarizer(Arc::new(summarizer))
}

/// Returns all summaries that are reachable from the session's view.
pub(crate) async fn reached(session: &Session) -> BTreeMap<SummaryId, Summary> {
    let mut found = BTreeMap::new();
    let spans = session.spans().await.unwrap();
    let mut todo: Vec<SummaryId> = spans
        .iter()
        .filter_map(|span| match &span.body {
            agent_memory::model::SpanBody::Summary { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    while let Some(id) = todo.pop() {
        let summary = session.summaries(std::slice::from_ref(&id)).await.unwrap();
        let summary = summary.into_iter().flatten().next().unwrap();
        todo.extend(
            summary
                .children
                .iter()
                .filter_map(|child| child.summary().cloned()),
        );
        found.insert(id, summary);
    }
    found
}

/// Asserts that each summary equals the result of a model that never fails, for the same children and recipe.
async fn assert_sound(session: &Session) {
    assert_sound_by(session, &Scripted::head_cut(), &Ladder::default()).await;
}

pub(crate) async fn assert_sound_by(session: &Session, model: &dyn Summarizer, ladder: &Ladder) {
    let nodes = reached(session).await;
    let log = session.entries().await.unwrap();
    let accounting = session.accounting();
    for summary in nodes.values() {
        assert!(!summary.provisional, "{summary:?}");
        let (mut pieces, mut before) = (Vec::new(), Vec::new());
        let mut hasher = SourceHasher::new();
        let context = summary.sources.iter();
        let context = context.filter(|source| summary.is_context(source));
        for range in context.map(Child::range) {
            for entry in log.iter().filter(|entry| range.contains(entry.seq)) {
                hasher.message(entry.hash);
                before.push(Source::from(entry));
            }
        }
        for child in &summary.children {
            match child {
                Child::Messages { range } => {
                    for entry in log.iter().filter(|entry| range.contains(entry.seq)) {
                        hasher.message(entry.hash);
                        pieces.push(Source::from(entry));
                    }
                }
                Child::Summary { id, .. } => {
                    hasher.summary(nodes[id].hash);
                    pieces.push(Source::from(&nodes[id]));
                }
            }
        }
        let overhead =
            summary_overhead(accounting, summary.range, summary.depth, &summary.children);
        let request = SummaryRequest {
            before: &before,
            overhead_tokens: overhead,
            conventions: &message_formats::KnownAgents,
            ..SummaryRequest::new(&pieces, accounting.estimator())
        };
        let sound = escalate(model, ladder, &request).await.unwrap();
        assert_eq!(summary.source_hash, hasher.finish());
        assert_eq!(summary.recipe, sound.recipe);
        assert_eq!(summary.text(), sound.text);
        assert_eq!(summary.model, sound.model);
        let source: u64 = pieces.iter().chain(&before).map(Source::tokens).sum();
        assert_eq!(summary.source_tokens, source);
    }
}

pub(crate) async fn provisional(session: &Session) -> usize {
    let nodes = reached(session).await;
    nodes.values().filter(|summary| summary.provisional).count()
}

#[tokio::test]
async fn a_strict_ladder_leaves_the_view_as_it_is_when_the_model_fails() {
    let failures = [
        FailureKind::Auth,
        FailureKind::RateLimited,
        FailureKind::Overloaded,
        FailureKind::TimedOut,
        FailureKind::Empty,
        FailureKind::CutShort,
        FailureKind::Refused,
        FailureKind::BadAnswer,
        FailureKind::Unreachable,
    ];
    for kind in failures {
        for ladder in [crate::documents::ladder(), Ladder::default()] {
            let strict = ladder == crate::documents::ladder();
            let failing = Scripted::new([Answer::Failure(kind, None)]);
            let memory = with(failing).ladder(ladder).open().await.unwrap();
            let session = memory.session("s").await.unwrap();
            talk(&session, 40).await;
            let before = dump(&memory).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert!(session.verify().await.unwrap().is_ok());
            assert!(outcome.summarizer_error.is_some());
            if strict {
                assert_eq!(outcome.stop_reason, StopReason::SummarizerFailed);
                assert_eq!(dump(&memory).await, before, "{kind}");
            } else {
                let nodes = reached(&session).await;
                assert!(!nodes.is_empty());
                assert!(nodes.values().all(|summary| summary.provisional), "{kind}");
                assert!(outcome.after.tokens < outcome.before.tokens);
            }
        }
    }
}

#[tokio::test]
async fn redo_replaces_what_no_model_wrote_and_all_above_it() {
    for place in both(|| with(Scripted::fails())).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let olds = reached(&session).await;
        assert!(olds.len() > 8 && olds.values().any(|summary| summary.depth >= 2));
        assert_eq!(provisional(&session).await, olds.len());
        let plan = session.plan_redo(&RedoPolicy::default()).await.unwrap();
        assert_eq!(plan.provisional(), olds.len() as u64);

        let place = place.reopen(with(Scripted::head_cut())).await;
        let session = place.memory.session("s").await.unwrap();
        let redone = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!(redone.stop_reason, RedoStop::Done, "{redone:?}");
        assert_eq!((redone.provisional, redone.left), (olds.len() as u64, 0));
        assert_eq!(redone.replaced.len(), olds.len());
        assert_eq!(redone.calls, olds.len() as u64);
        assert_sound(&session).await;
        assert!(session.verify().await.unwrap().is_ok());
        // The old ones are still there.
        for id in olds.keys() {
            assert!(session.summaries(std::slice::from_ref(id)).await.unwrap()[0].is_some());
        }
        // Nothing is left to do, and nothing is asked for it.
        let before = dump(&place.memory).await;
        let again = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!((again.stop_reason, again.calls), (RedoStop::Done, 0));
        assert!(again.replaced.is_empty());
        assert_eq!(dump(&place.memory).await, before);
    }
}

#[tokio::test]
async fn one_bad_leaf_changes_only_itself_and_what_is_above() {
    // The third call fails in both styles.
    let script = [
        Answer::HeadCut,
        Answer::HeadCut,
        Answer::fail("503"),
        Answer::HeadCut,
    ];
    let flawed = Scripted::new(script);
    let memory = with(flawed).ladder(lenient()).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 60).await;
    session.compact(Mode::Full).await.unwrap();
    let olds = reached(&session).await;
    assert_eq!(provisional(&session).await, 1);
    // The last answer is repeated: the model is sound by now.
    let redone = session.redo(RedoPolicy::default()).await.unwrap();
    assert_eq!((redone.provisional, redone.left), (1, 0));
    let bad = olds.values().find(|summary| summary.provisional).unwrap();
    let above = olds
        .values()
        .filter(|summary| summary.depth > 0 && summary.range.contains(bad.range.first))
        .count();
    assert!(above > 0);
    assert_eq!(redone.replaced.len(), 1 + above);
    assert_eq!(redone.replaced[0].old, bad.id);
    assert_eq!(provisional(&session).await, 0);
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_limit_on_calls_is_kept_and_what_was_paid_for_is_not_paid_again() {
    for place in both(|| with(Scripted::fails())).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let all = reached(&session).await.len() as u64;
        let sound = Scripted::head_cut();
        let mut place = place;
        let (mut rounds, mut stopped) = (0, RedoStop::CallLimit);
        while stopped == RedoStop::CallLimit {
            // Each time in a process of its own.
            place = place.reopen(with(sound.clone())).await;
            let session = place.memory.session("s").await.unwrap();
            let policy = RedoPolicy {
                max_calls: Some(5),
                ..RedoPolicy::default()
            };
            let redone = session.redo(policy.clone()).await.unwrap();
            assert!(redone.calls <= 5, "{redone:?}");
            assert!(session.verify().await.unwrap().is_ok());
            stopped = redone.stop_reason;
            rounds += 1;
            assert!(rounds < 30, "{redone:?}");
        }
        assert_eq!(stopped, RedoStop::Done);
        assert!(rounds > 1);
        assert_eq!(u64::from(sound.calls()), all, "{}", place.name);
        let session = place.memory.session("s").await.unwrap();
        assert_sound(&session).await;
    }
}

#[tokio::test]
async fn with_one_call_at_a_time_every_run_writes_one_summary() {
    for place in both(|| with(Scripted::fails())).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let all = reached(&session).await.len() as u64;
        let sound = Scripted::head_cut();
        let place = place.reopen(with(sound.clone())).await;
        let session = place.memory.session("s").await.unwrap();
        let policy = RedoPolicy {
            max_calls: Some(1),
            ..RedoPolicy::default()
        };
        for run in 1..=all {
            let redone = session.redo(policy.clone()).await.unwrap();
            assert_eq!((redone.calls, redone.written), (1, 1), "{run}: {redone:?}");
            assert_eq!(
                redone.stop_reason == RedoStop::Done,
                run == all,
                "{redone:?}"
            );
        }
        assert_sound(&session).await;
        assert_eq!(u64::from(sound.calls()), all);
        let nothing = RedoPolicy {
            max_calls: Some(0),
            ..RedoPolicy::default()
        };
        let redone = session.redo(nothing).await.unwrap();
        assert_eq!(redone.stop_reason, RedoStop::Done);
    }
}

/// A model that refuses sources with one of these steps, and summarizes all others correctly.
#[derive(Debug)]
struct Picky {
    sound: Scripted,
    refused: Vec<usize>,
    /// For each call, whether the model refused it.
    calls: std::sync::Mutex<Vec<bool>>,
}

impl Picky {
    fn new(refused: impl IntoIterator<Item = usize>) -> Arc<Self> {
        Arc::new(Self {
            sound: Scripted::head_cut(),
            refused: refused.into_iter().collect(),
            calls: std::sync::Mutex::default(),
        })
    }

    /// Returns the number of calls since the previous use of this method, and the number of refused ones.
    fn taken(&self) -> (usize, usize) {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        (
            calls.len(),
            calls.iter().filter(|refused| **refused).count(),
        )
    }
}

#[async_trait::async_trait]
impl Summarizer for Picky {
    fn id(&self) -> &str {
        "picky@1"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let leaf = request.depth() == 0;
        let source = summarize_escalation::prompt::render(request).user;
        let names = |step: &usize| source.contains(&format!("Step {step}:"));
        let refused = leaf && self.refused.iter().any(names);
        self.calls.lock().unwrap().push(refused);
        match refused {
            true => Ok(SummarizerResponse::new("")),
            false => self.sound.summarize(request).await,
        }
    }
}

#[tokio::test]
async fn what_was_refused_is_asked_for_last_and_not_for_ever() {
    for place in both(|| with(Scripted::fails())).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let all = reached(&session).await.len();
        let picky = Picky::new([1]);
        let place = place.reopen(with(Arc::clone(&picky))).await;
        let session = place.memory.session("s").await.unwrap();
        let policy = RedoPolicy {
            max_calls: Some(2),
            ..RedoPolicy::default()
        };
        let first = session.redo(policy.clone()).await.unwrap();
        // In both styles, and then the calls are made.
        assert_eq!(picky.taken(), (2, 2), "{}", place.name);
        assert_eq!((first.written, first.failures.len()), (0, 1));
        assert_eq!(first.stop_reason, RedoStop::CallLimit);
        assert_eq!(first.model.causes[0].cause.kind, "empty_answer");
        // Every run after it writes two others, until only the refused one is left.
        let mut written = 0;
        loop {
            // Each time in a process of its own, for which the store has to remember.
            let again = session.redo(policy.clone()).await.unwrap();
            let (calls, refused) = picky.taken();
            assert!(calls <= 2, "{again:?}");
            written += again.written;
            if refused == 0 {
                assert!(again.made_progress(), "{again:?}");
                assert!(written <= all as u64, "{again:?}");
                continue;
            }
            assert_eq!(again.left, 1, "{}: {again:?}", place.name);
            assert_ne!(again.stop_reason, RedoStop::Done);
            break;
        }
        // Once it is written after all nothing is left.
        let place = place.reopen(with(Picky::new([]))).await;
        let session = place.memory.session("s").await.unwrap();
        let redone = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!((redone.stop_reason, redone.left), (RedoStop::Done, 0));
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_model_that_is_still_down_changes_nothing_and_is_soon_left_alone() {
    let failing = Scripted::fails();
    let memory = with(failing.clone()).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 60).await;
    session.compact(Mode::Full).await.unwrap();
    let (before, calls) = (dump(&memory).await, failing.calls());
    let redone = session.redo(RedoPolicy::default()).await.unwrap();
    assert_eq!(redone.stop_reason, RedoStop::SummarizerFailed);
    assert_eq!(redone.left, redone.provisional);
    assert!(redone.failures[0].error.contains("503"), "{redone:?}");
    assert_eq!(dump(&memory).await, before);
    // Three in a row, and those that were under way beside them.
    assert!(failing.calls() - calls <= 8, "{}", failing.calls() - calls);
    // A crash or not, the next redo asks again.
    let again = session.redo(RedoPolicy::default()).await.unwrap();
    assert!(again.calls > 0);
}

#[tokio::test]
async fn without_a_model_there_is_nothing_to_redo_with() {
    let memory = memory().dag(small()).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 40).await;
    session.compact(Mode::Full).await.unwrap();
    let error = session.redo(RedoPolicy::default()).await.unwrap_err();
    assert_eq!(error.kind(), agent_memory::ErrorKind::Invalid);
}

#[tokio::test]
async fn a_compaction_that_comes_between_wins_and_redo_goes_on_after_it() {
    let memory = with(Scripted::fails()).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 36).await;
    session.compact(Mode::Incremental).await.unwrap();
    let store = memory.store().clone();
    // While the first new summary is written, somebody else condenses what is there.
    #[derive(Debug)]
    struct Meddling(Scripted, std::sync::Mutex<Option<Session>>);
    #[async_trait::async_trait]
    impl Summarizer for Meddling {
        fn id(&self) -> &str {
            self.0.id()
        }
        async fn summarize(
            &self,
            request: &SummaryRequest<'_>,
        ) -> Result<SummarizerResponse, Error> {
            let other = self.1.lock().unwrap().take();
            if let Some(other) = other {
                other.compact(Mode::Full).await.unwrap();
            }
            self.0.summarize(request).await
        }
    }
    let meddling = Meddling(
        Scripted::head_cut(),
        std::sync::Mutex::new(Some(session.clone())),
    );
    let healthy = with(meddling)
        .store(store)
        .runner(agent_memory::compaction::RunnerPolicy {
            owner: Some("another".to_owned()),
            ..agent_memory::compaction::RunnerPolicy::default()
        });
    let healthy = healthy.open().await.unwrap();
    let session = healthy.session("s").await.unwrap();
    let redone = session.redo(RedoPolicy::default()).await.unwrap();
    assert_eq!(redone.stop_reason, RedoStop::Done, "{redone:?}");
    assert_eq!((redone.left, provisional(&session).await), (0, 0));
    assert!(session.verify().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_breaker_belongs_to_a_session_and_outlives_its_handle() {
    let timer = FakeTimer::new();
    let failing = Scripted::new([Answer::Failure(FailureKind::Overloaded, None)]);
    let breaker = BreakerPolicy {
        half_open_after_millis: None,
        ..BreakerPolicy::default()
    };
    let policy = GuardPolicy {
        breaker: Some(breaker),
        ..GuardPolicy::none()
    };
    let builder =
        with(failing.clone()).guards(agent_memory::models::Guards::new(policy, Arc::new(timer)));
    let memory = builder.open().await.unwrap();
    for key in ["a", "b"] {
        let session = memory.session(key).await.unwrap();
        talk(&session, 80).await;
        let before = failing.calls();
        session.compact(Mode::Full).await.unwrap();
        assert!((3..=6).contains(&(failing.calls() - before)), "{key}");
        let (open, spent) = (failing.calls(), session.guard().spent().calls);
        drop(session);
        let session = memory.session(key).await.unwrap();
        talk(&session, 80).await;
        let redone = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!(redone.stop_reason, RedoStop::SummarizerFailed);
        assert_eq!(failing.calls(), open, "an open breaker asks nobody");
        assert_eq!(session.guard().spent().calls, spent);
        session.guard().reset();
        session.redo(RedoPolicy::default()).await.unwrap();
        assert!(failing.calls() > open);
    }
    assert_eq!(memory.spent().calls, u64::from(failing.calls()));
}

#[tokio::test]
async fn the_fallback_writes_what_the_cheap_model_cannot_and_spends_from_the_same_purse() {
    let timer = FakeTimer::new();
    let cheap = Scripted::fails();
    let main = Scripted::head_cut();
    let policy = GuardPolicy {
        session_spend: SpendPolicy::calls(7),
        ..GuardPolicy::default()
    };
    let builder = with(cheap.clone())
        .summarizer(Arc::new(main.clone()))
        .guards(agent_memory::models::Guards::new(policy, Arc::new(timer)));
    let memory = builder.open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 200).await;
    session.compact(Mode::Full).await.unwrap();
    assert_eq!(session.guard().spent().calls, 7);
    assert_eq!(cheap.calls() + main.calls(), 7);
    let nodes = reached(&session).await;
    let by_model = nodes.values().filter(|summary| !summary.provisional);
    assert!(by_model.clone().count() > 0);
    for summary in by_model {
        assert_eq!(summary.model.as_deref(), Some("scripted-model"));
        assert!(summary.recipe.as_str().contains("fails@1|head-cut@1"));
    }
    // Beyond the limit everything went on without a model.
    assert!(provisional(&session).await > 0);
    assert!(session.verify().await.unwrap().is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_limited_redo_makes_progress_or_names_a_reason(
        refused in prop::collection::vec(1_usize..60, 0..4),
        calls in 1_u64..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = with(Scripted::fails()).open().await.unwrap();
            let session = memory.session("s").await.unwrap();
            talk(&session, 60).await;
            session.compact(Mode::Full).await.unwrap();
            let picky = Picky::new(refused);
            let memory = with(Arc::clone(&picky)).store(memory.store().clone());
            let memory = memory.open().await.unwrap();
            let session = memory.session("s").await.unwrap();
            let policy = RedoPolicy { max_calls: Some(calls), ..RedoPolicy::default() };
            let mut in_vain = 0;
            for _ in 0..60 {
                let redone = session.redo(policy.clone()).await.unwrap();
                let (made, _) = picky.taken();
                assert!(made as u64 <= calls && made as u64 == redone.calls, "{redone:?}");
                if redone.stop_reason == RedoStop::Done {
                    assert_eq!(redone.left, 0);
                    return;
                }
                // A reason for each: what was refused, or calls that are used up by what was written.
                assert!(redone.made_progress() || !redone.failures.is_empty(), "{redone:?}");
                in_vain = if redone.made_progress() { 0 } else { in_vain + 1 };
                if in_vain > 8 {
                    break;
                }
            }
            // Whatever is left was refused: all others have been written.
            for summary in reached(&session).await.values().filter(|s| s.provisional) {
                let log = session.entries().await.unwrap();
                let sources: Vec<_> = summary.sources.iter().map(Child::range).collect();
                let is_source = |seq| sources.iter().any(|range| range.contains(seq));
                let mut texts = log.iter().filter(|e| is_source(e.seq));
                let named = texts.any(|entry| {
                    let names = |step: &usize| entry.text().contains(&format!("Step {step}:"));
                    picky.refused.iter().any(names)
                });
                assert!(named, "{summary:?}");
            }
            assert!(session.verify().await.unwrap().is_ok());
        });
    }

    #[test]
    fn after_any_failures_redo_gives_what_a_sound_model_gives(
        failing in 0_u64..=100,
        messages in 10_usize..90,
        turns in 1_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = with(Flaky::new(failing)).open().await.unwrap();
            let session = memory.session("s").await.unwrap();
            for turn in 1..=turns {
                talk(&session, messages * turn / turns).await;
                let outcome = session.compact(Mode::Full).await.unwrap();
                assert!(outcome.after.tokens <= outcome.before.tokens);
            }
            let log = session.entries().await.unwrap();
            let healthy = with(Flaky::new(0)).store(memory.store().clone());
            let healthy = healthy.open().await.unwrap();
            let session = healthy.session("s").await.unwrap();
            let nodes = session.plan_redo(&RedoPolicy::default()).await.unwrap().nodes.len() as u64;
            let redone = session.redo(RedoPolicy::default()).await.unwrap();
            assert_eq!(redone.stop_reason, RedoStop::Done, "{redone:?}");
            assert_eq!(redone.left, 0);
            assert!(redone.calls <= nodes);
            for summary in reached(&session).await.values() {
                assert!(!summary.provisional);
                assert!(summary.tokens < summary.source_tokens);
            }
            assert!(session.verify().await.unwrap().is_ok());
            assert_eq!(session.entries().await.unwrap(), log);
        });
    }
}
