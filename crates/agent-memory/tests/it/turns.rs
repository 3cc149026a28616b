//! The steps of an agent's turn: when summaries are prefetched and published.

use agent_memory::CompactRequest;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Builder, DagPolicy, Message, Mode, Part, RawJson, Role, Session, TurnPolicy, Window,
    compaction::{Action, Event, Recorder, StopReason, Task, Trigger},
    context::{ContextMessage, MessageOrigin},
    tokens::{ObservedUsage, Usage as ResponseUsage},
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use summarize_escalation::FailureKind;

use crate::support::Inspect as _;
use crate::support::{both, lenient, made, say, talk};

/// Size of a window, in tokens. 40 messages of `talk` use more than half of it.
const WINDOW: u64 = 4_000;

/// Returns a memory with a model and with these thresholds.
fn with(summarizer: &Scripted, soft: u64, hard: u64) -> Builder {
    let thresholds = |tokens| Trigger::Absolute { tokens };
    memory()
        .dag(DagPolicy::for_window(WINDOW))
        .summarizer(Arc::new(summarizer.clone()))
        .turns(TurnPolicy {
            soft: thresholds(soft),
            hard: thresholds(hard),
            ..TurnPolicy::default()
        })
        .runner(small())
}

fn small() -> agent_memory::compaction::RunnerPolicy {
    agent_memory::compaction::RunnerPolicy {
        prefetch_min_tokens: 200,
        ..agent_memory::compaction::RunnerPolicy::default()
    }
}

async fn version(session: &Session) -> u64 {
    session.snapshot().await.unwrap().version.0
}

#[tokio::test]
async fn a_turn_prepares_and_a_later_one_publishes_without_a_call() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    for place in both(|| with(&model, 500, 2_000)).await {
        let session = place.talked(40).await;
        let session = session.in_window(window).await;
        let tokens = session.snapshot().await.unwrap().tokens();
        assert!(tokens > 500 && tokens < 2_000, "{tokens}");

        let before = model.calls();
        let report = session.after_turn().await.unwrap();
        let prefetch = report.prefetched.unwrap();
        assert!(
            prefetch.prepared > 0 && prefetch.ready == prefetch.prepared,
            "{prefetch:?}"
        );
        assert_eq!(u64::from(model.calls() - before), prefetch.calls);
        assert_eq!((version(&session).await, report.compactions.len()), (0, 0));

        // Again there is nothing new to make.
        let called = model.calls();
        let again = session.after_turn().await.unwrap().prefetched.unwrap();
        assert_eq!(
            (again.prepared, again.ready, again.calls),
            (0, prefetch.ready, 0)
        );

        talk(&session, 60).await;
        let call = session.context().await.unwrap();
        assert_eq!(model.calls(), called, "a foreground called the model");
        assert_eq!(call.report.published(), prefetch.ready);
        assert!(call.context.tokens <= window.budget().get());
        assert_eq!(version(&session).await, prefetch.ready);
        for summary in &call.report.compactions[0].summaries {
            let found = session
                .summaries(std::slice::from_ref(summary))
                .await
                .unwrap();
            assert!(!found[0].as_ref().unwrap().provisional);
        }
        assert!(session.verify().await.unwrap().is_ok(), "{}", place.name);
    }
}

#[tokio::test]
async fn what_was_prepared_outlives_the_process() {
    let model = Scripted::head_cut();
    let build = || with(&model, 500, 2_000);
    for place in both(build).await {
        let session = place.talked(30).await;
        let prefetch = session.prefetch_summaries().await.unwrap();
        assert!(prefetch.ready > 0);
        drop(session);
        let called = model.calls();
        let place = place.reopen(build()).await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session
            .compact(CompactRequest {
                ready_only: true,
                ..CompactRequest::default()
            })
            .await
            .unwrap();
        assert_eq!(outcome.published.get("leaf"), prefetch.ready);
        assert_eq!(
            (outcome.calls, model.calls()),
            (0, called),
            "{}",
            place.name
        );
        assert!(outcome.after.tokens < outcome.before.tokens);
        // It is published once.
        let again = session
            .compact(CompactRequest {
                ready_only: true,
                ..CompactRequest::default()
            })
            .await
            .unwrap();
        assert_eq!(again.stop_reason, StopReason::NothingEligible);
    }
}

#[tokio::test]
async fn what_a_compaction_took_first_is_not_published_again() {
    let model = Scripted::head_cut();
    for place in both(|| with(&model, 500, 2_000)).await {
        let session = place.talked(60).await;
        session.prefetch_summaries().await.unwrap();
        // The same jobs: it takes what is prepared, and calls only for what is not.
        let called = model.calls();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") > 0
                && u64::from(model.calls() - called) < outcome.published.total()
        );
        let before = version(&session).await;
        let late = session
            .compact(CompactRequest {
                ready_only: true,
                ..CompactRequest::default()
            })
            .await
            .unwrap();
        assert_eq!((late.published.get("leaf"), late.calls), (0, 0));
        assert_eq!(late.stop_reason, StopReason::LostRace);
        assert_eq!(version(&session).await, before);
        assert!(session.verify().await.unwrap().is_ok(), "{}", place.name);
    }
}

#[tokio::test]
async fn a_failing_model_costs_a_turn_nothing() {
    let window = Window::new(WINDOW);
    for which in [0, 1] {
        // A script of its own for each store: it fails once.
        let model = Scripted::new([Answer::fail("503"), Answer::HeadCut]);
        let build = || with(&model, 500, 2_000).ladder(crate::documents::ladder());
        let places = both(build).await;
        let place = &places[which];
        let session = place.talked(60).await;
        let session = session.in_window(window).await;
        let report = session.after_turn().await.unwrap();
        assert!(report.failure.unwrap().contains("503"), "{}", place.name);
        assert_eq!(
            (report.model.not_made, model.calls()),
            (1, 1),
            "{}",
            place.name
        );
        let call = session.context().await.unwrap();
        assert!(call.context.tokens <= window.budget().get());
        assert_eq!(version(&session).await, 0, "{}", place.name);
        assert!(session.verify().await.unwrap().is_ok());
        // It answers again, and the next turns go on as if nothing had been.
        let report = session.after_turn().await.unwrap();
        assert!(report.model.is_ok() && report.prefetched.unwrap().ready > 0);
    }
}

#[tokio::test]
async fn a_model_that_fails_beside_the_turns_is_in_the_next_turns_report() {
    let window = Window::new(WINDOW);
    for beside in [true, false] {
        let refused = Answer::Failure(FailureKind::Auth, None);
        let model = Scripted::new([refused]);
        let later = Arc::new(Later::default());
        let heard = Recorder::new();
        let build = || {
            let builder = with(&model, 500, 1_500).hooks(Arc::new(heard.clone()));
            match beside {
                true => builder.background(agent_memory::compaction::Background::spawner(
                    later.spawner(),
                )),
                false => builder,
            }
        };
        for place in both(build).await {
            let session = place.memory.session("s").await.unwrap();
            let session = session.in_window(window).await;
            let (mut told, mut failed) = (0, 0);
            for turn in 1..=60 {
                talk(&session, 40 + 2 * turn).await;
                let called = model.calls();
                let after = session.after_turn().await.unwrap();
                let begun = std::mem::take(&mut *later.0.lock().unwrap());
                for work in begun {
                    work.await;
                }
                let asked = u64::from(model.calls() - called);
                let before = session.before_turn().await.unwrap();
                let report = if beside { before.model } else { after.model };
                // Each failed call is one summary: the ladder asks a model that failed once.
                assert!(report.without_model >= asked, "{turn}: {report}");
                if asked > 0 {
                    assert_eq!(report.causes[0].cause.kind, "auth", "{report}");
                    assert_eq!(report.advice(), Some("check the key"));
                    assert!(
                        report.to_string().contains("written without the model: "),
                        "{report}"
                    );
                    told += 1;
                }
                failed += asked;
            }
            assert!(told > 1, "{} {beside}", place.name);
            let events = heard.events();
            let events = events.iter().filter(
                |event| matches!(event, Event::ModelFailed { cause, .. } if cause.kind == "auth"),
            );
            assert!(events.count() as u64 >= failed, "{}", place.name);
        }
    }
}

/// Background tasks that are kept until the test runs them.
#[derive(Default)]
struct Later(Mutex<Vec<Task>>);

impl Later {
    fn spawner(self: &Arc<Self>) -> impl Fn(Task) + Send + Sync + 'static {
        let later = Arc::clone(self);
        move |task| later.0.lock().unwrap().push(task)
    }
}

#[tokio::test]
async fn work_beside_the_turns_is_begun_once_and_waited_for_by_nobody() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let later = Arc::new(Later::default());
    let build = || {
        with(&model, 500, 2_000).background(agent_memory::compaction::Background::spawner(
            later.spawner(),
        ))
    };
    for place in both(build).await {
        let session = place.talked(80).await;
        let session = session.in_window(window).await;
        let called = model.calls();
        assert!(session.after_turn().await.unwrap().prefetching);
        assert!(session.after_turn().await.unwrap().prefetching);
        // Nothing is ready: the turn goes on without.
        let call = session.context().await.unwrap();
        assert_eq!((call.report.published(), model.calls()), (0, called));
        let work = std::mem::take(&mut *later.0.lock().unwrap());
        assert_eq!(work.len(), 1, "{}", place.name);
        for work in work {
            work.await;
        }
        let call = session.context().await.unwrap();
        assert!(call.report.published() > 0);
        // What is done makes place for the next.
        talk(&session, 40).await;
        session.after_turn().await.unwrap();
        assert_eq!(std::mem::take(&mut *later.0.lock().unwrap()).len(), 1);
    }
}

/// Spawns tasks in the current runtime, and counts the tasks that have ended.
#[derive(Debug, Default)]
struct Watched {
    begun: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

impl Watched {
    fn spawner(self: &Arc<Self>) -> impl Fn(Task) + Send + Sync + 'static {
        let watched = Arc::clone(self);
        move |task| {
            watched.begun.fetch_add(1, Ordering::SeqCst);
            let ended = Arc::clone(&watched.ended);
            tokio::spawn(async move {
                task.await;
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
    }
}

#[tokio::test]
async fn closing_waits_until_background_work_has_ended_and_given_its_leases_back() {
    let window = Window::new(WINDOW);
    let model = Scripted::hangs();
    let watched = Arc::new(Watched::default());
    let build = || {
        with(&model, 500, 2_000).background(agent_memory::compaction::Background::spawner(
            watched.spawner(),
        ))
    };
    for (closed, place) in (1..).zip(both(build).await) {
        let session = place.talked(60).await;
        let session = session.in_window(window).await;
        let called = model.calls();
        session.after_turn().await.unwrap();
        while model.calls() == called {
            tokio::task::yield_now().await;
        }
        place.memory.close().await.unwrap();
        let ended = watched.ended.load(Ordering::SeqCst);
        assert_eq!(
            ended, closed,
            "{}: a background task still runs",
            place.name
        );
        // Whoever comes next finds no lease: not in ten minutes, but now.
        let answers = Arc::new(Scripted::head_cut());
        let place = place
            .reopen(
                memory()
                    .runner(agent_memory::compaction::RunnerPolicy {
                        owner: Some("another".to_owned()),
                        ..agent_memory::compaction::RunnerPolicy::default()
                    })
                    .summarizer(answers),
            )
            .await;
        let session = place.memory.session("s").await.unwrap();
        let session = session.in_window(window).await;
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
        assert!(
            outcome.published.get("leaf") > 0,
            "{}: {outcome:?}",
            place.name
        );
    }
}

#[tokio::test]
async fn work_that_begins_after_closing_touches_nothing() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let later = Arc::new(Later::default());
    let build = || {
        with(&model, 500, 2_000).background(agent_memory::compaction::Background::spawner(
            later.spawner(),
        ))
    };
    for place in both(build).await {
        let session = place.talked(60).await;
        let session = session.in_window(window).await;
        assert!(session.after_turn().await.unwrap().prefetching);
        // Task that nobody has begun yet does not hold closing up.
        place.memory.close().await.unwrap();
        let called = model.calls();
        let work = later.0.lock().unwrap().pop().unwrap();
        work.await;
        assert_eq!(model.calls(), called, "{}", place.name);
    }
}

/// Returns the number of rows in the table of jobs: leases and drafts.
pub(crate) async fn jobs(path: &std::path::Path) -> i64 {
    let mut db = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let row = sqlx::query("select count(*) from job").fetch_one(&mut db);
    let count = row.await.unwrap().get(0);
    db.close().await.unwrap();
    count
}

#[tokio::test]
async fn drafts_that_nobody_wants_any_more_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    let model = Scripted::head_cut();
    let open = async |builder: Builder| builder.sqlite(&path).open().await.unwrap();
    for foreground in [false, true] {
        let key = format!("published in the foreground: {foreground}");
        let memory_with_model = open(with(&model, 500, 2_000)).await;
        let session = memory_with_model.session(key.as_str()).await.unwrap();
        talk(&session, 60).await;
        let ready = session.prefetch_summaries().await.unwrap().ready;
        memory_with_model.close().await.unwrap();
        assert!(ready > 0 && jobs(&path).await == i64::try_from(ready).unwrap());

        // Somebody compacts other ranges of it first.
        let other = open(memory().dag(crate::documents::dag())).await;
        let session = other.get_session(key.as_str()).await.unwrap();
        assert!(made(&session.compact(Mode::Full).await.unwrap()).0 > 0);
        other.close().await.unwrap();

        let memory_with_model = open(with(&model, 500, 2_000)).await;
        let session = memory_with_model.get_session(key.as_str()).await.unwrap();
        if foreground {
            assert_eq!(
                session
                    .compact(CompactRequest {
                        ready_only: true,
                        ..CompactRequest::default()
                    })
                    .await
                    .unwrap()
                    .published
                    .get("leaf"),
                0
            );
        } else {
            assert_eq!(session.prefetch_summaries().await.unwrap().ready, 0);
        }
        memory_with_model.close().await.unwrap();
        assert_eq!(jobs(&path).await, 0, "{key}");
    }
}

#[tokio::test]
async fn before_a_call_a_view_over_the_budget_is_extracted_without_the_model() {
    let window = Window::new(WINDOW);
    // Nothing was prepared, and the model never answers.
    let model = Scripted::hangs();
    let build = || memory().summarizer(Arc::new(model.clone()));
    for place in both(build).await {
        let session = place.talked(110).await;
        let session = session.in_window(window).await;
        let head = session.info().await.unwrap().conversation.head;
        let call = session.context().await.unwrap();
        let dropped = &call.context.receipt.dropped;
        assert!(dropped.is_empty(), "{}: left out {dropped:?}", place.name);
        assert!(call.context.receipt.degraded.is_empty());
        assert!(call.report.published() > 0 && model.calls() == 0);
        assert_eq!(call.report.extracted, call.report.published());
        let shown = call
            .context
            .messages
            .iter()
            .filter_map(|m| m.source.range());
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown.first().unwrap().first, agent_memory::Seq(1));
        assert_eq!(shown.last().unwrap().last, head);
        for compaction in &call.report.compactions {
            assert_eq!(compaction.calls, 0);
            let made = session.summaries(&compaction.summaries).await.unwrap();
            assert!(made.iter().flatten().all(|summary| summary.provisional));
        }
        // Once it fits, nothing more is published.
        let published = version(&session).await;
        let again = session.context().await.unwrap();
        assert_eq!(
            (again.report.published(), version(&session).await),
            (0, published)
        );
        assert_eq!(again.context, call.context);
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn what_is_ready_is_published_before_anything_is_extracted() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    // Thresholds that never fire: what counts is the budget.
    let turns = TurnPolicy {
        soft: Trigger::Never,
        hard: Trigger::Never,
        ..TurnPolicy::default()
    };
    let build = || {
        memory()
            .ladder(lenient())
            .summarizer(Arc::new(model.clone()))
            .turns(turns.clone())
            .runner(small())
    };
    for place in both(build).await {
        let session = place.talked(110).await;
        let session = session.in_window(window).await;
        let ready = session.prefetch_summaries().await.unwrap().ready;
        let called = model.calls();
        let call = session.context().await.unwrap();
        assert_eq!(call.report.published(), ready, "{}", place.name);
        assert_eq!((call.report.extracted, model.calls()), (0, called));
        assert!(call.context.receipt.dropped.is_empty());
        for compaction in &call.report.compactions {
            let made = session.summaries(&compaction.summaries).await.unwrap();
            assert!(made.iter().flatten().all(|summary| !summary.provisional));
        }
    }
}

fn usage(input: u64, output: u64) -> ResponseUsage {
    ResponseUsage {
        input,
        output,
        ..ResponseUsage::default()
    }
}

#[tokio::test]
async fn a_providers_figure_is_not_overwritten_by_an_estimate() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let build = || {
        memory()
            .dag(DagPolicy::for_window(WINDOW))
            .summarizer(Arc::new(model.clone()))
            .runner(small())
    };
    for place in both(build).await {
        let session = place.talked(40).await;
        let session = session.in_window(window).await;
        let estimate = session.snapshot().await.unwrap().tokens();
        assert!(estimate < WINDOW / 2, "{estimate}");
        // Above the hard threshold of three quarters, and nothing is ready.
        let observed = ObservedUsage::new("model", usage(3_000, 100));
        assert!(session.observe_usage(&observed).await.unwrap());
        let report = session.after_turn().await.unwrap();
        assert_eq!(report.usage.tokens, 3_100, "{}", place.name);
        assert_eq!(report.compactions.len(), 1);
        assert_eq!(report.published(), 0);
        let prefetch = report
            .prefetched
            .expect("3,100 is more than half of the window");
        assert!(prefetch.prepared > 0);
    }
}

#[tokio::test]
async fn a_system_prompt_is_counted_once() {
    let window = Window {
        system_tokens: 1_500,
        ..Window::new(WINDOW)
    };
    for place in both(memory).await {
        let session = place.talked(20).await;
        let session = session.in_window(window).await;
        // A provider counts the system prompt in; the estimate of the view does not.
        let observed = ObservedUsage::new("model", usage(1_500 + 900, 0));
        assert!(session.observe_usage(&observed).await.unwrap());
        let report = session.before_turn().await.unwrap();
        assert_eq!(
            (report.usage.tokens, report.usage.system_tokens),
            (900, 1_500)
        );
        let headroom = Trigger::Headroom {
            at: 0.90,
            least: 0.05,
        };
        assert!(!headroom.fires(&report.usage), "{}", place.name);
        assert!(report.compactions.is_empty());
    }
}

#[tokio::test]
async fn an_action_can_compact_before_a_call_and_wait_for_the_model() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let turns = TurnPolicy {
        hard: Trigger::default(),
        before_call: Action::Compact,
        ..TurnPolicy::manual()
    };
    let build = || {
        memory()
            .dag(DagPolicy::for_window(WINDOW))
            .ladder(lenient())
            .summarizer(Arc::new(model.clone()))
            .turns(turns.clone())
    };
    for place in both(build).await {
        let session = place.talked(60).await;
        let session = session.in_window(window).await;
        let called = model.calls();
        let below = session.context().await.unwrap();
        assert_eq!((below.report.compactions.len(), model.calls()), (0, called));
        assert_eq!(version(&session).await, 0);

        talk(&session, 60).await;
        session.before_turn().await.unwrap();
        session.after_turn().await.unwrap();
        assert_eq!((version(&session).await, model.calls()), (0, called));
        let call = session.context().await.unwrap();
        let paid = u64::from(model.calls() - called);
        let published = call.report.published();
        assert!(
            published > 0 && paid >= published,
            "{}: {paid} calls",
            place.name
        );
        assert_eq!(version(&session).await, published);
        let mut calls = 0;
        for compaction in &call.report.compactions {
            calls += compaction.calls;
            let made = session.summaries(&compaction.summaries).await.unwrap();
            assert!(made.iter().flatten().all(|summary| !summary.provisional));
        }
        assert_eq!(calls, paid);
        // The context shows what was just published.
        let ids: Vec<_> = call
            .context
            .messages
            .iter()
            .filter_map(|message| match &message.source {
                MessageOrigin::Summary { summary_id, .. } => Some(summary_id.clone()),
                _ => None,
            })
            .collect();
        let last = call.report.compactions.last().unwrap();
        assert!(
            ids.iter().any(|id| last.summaries.contains(id)),
            "{}",
            place.name
        );
        assert!(call.context.receipt.dropped.is_empty());
    }
}

#[tokio::test]
async fn a_manual_policy_does_nothing_by_itself() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let build = || with(&model, 0, 0).turns(TurnPolicy::manual());
    for place in both(build).await {
        let session = place.talked(110).await;
        let session = session.in_window(window).await;
        session.before_turn().await.unwrap();
        session.context().await.unwrap();
        let report = session.after_turn().await.unwrap();
        assert_eq!((report.compactions.len(), report.prefetching), (0, false));
        assert_eq!(version(&session).await, 0);
    }
}

#[test]
fn a_turn_policy_is_a_config_value() {
    let json = serde_json::to_string(&TurnPolicy::default()).unwrap();
    assert_eq!(
        json,
        r#"{"soft":{"kind":"fraction","of_window":0.5},"hard":{"kind":"fraction","of_window":0.75},"warn":{"kind":"never"},"before_turn":"publish","before_call":"publish","after_turn":"prefetch"}"#
    );
    let policy: TurnPolicy = serde_json::from_str(r#"{"after_turn":"compact"}"#).unwrap();
    assert_eq!(policy.after_turn, Action::Compact);
    assert_eq!(policy.hard, Trigger::default());
}

#[test]
fn a_window_leaves_room_for_the_answer() {
    let budget = |window: Window| window.budget().get();
    assert_eq!(budget(Window::new(128_000)), 119_808);
    assert_eq!(budget(Window::new(8_000)), 6_000);
    let window = Window::new(8_000);
    assert_eq!(
        budget(Window {
            system_tokens: 1_000,
            ..window
        }),
        5_000
    );
    assert_eq!(
        budget(Window {
            reserve: 9_000,
            ..window
        }),
        0
    );
}

/// In a turn of one request and many calls, each context shows the request.
#[tokio::test]
async fn a_turn_of_many_calls_keeps_its_request_word_for_word() {
    let window = Window::new(8_000);
    let rule = |n: usize| {
        let (value, table) = (n * 37, n * 3);
        format!(
            "{n}. Rename column c{n} to d{n}, keep the default {value}, leave table t{table}.\n"
        )
    };
    let request: String = (1..=25).map(rule).collect();
    let result = |call: usize| -> String {
        let word = |n: usize| format!("w{} ", (n * 7_919 + call) % 9_973);
        (0..600).map(word).collect()
    };
    for earlier in [0, 10] {
        let memory = memory().dag(DagPolicy::for_window(8_000));
        let session = memory.open().await.unwrap().session("s").await.unwrap();
        let session = session.in_window(window).await;
        talk(&session, earlier).await;
        session.before_turn().await.unwrap();
        session.ingest(Message::user(&request)).await.unwrap();
        for call in 0..30 {
            let context = session.context().await.unwrap().context;
            let is_request = |message: &ContextMessage| {
                message.role == Role::User && message.parts == [Part::text(&request)]
            };
            assert!(
                context.messages.iter().any(is_request),
                "before call {call}"
            );
            assert!(context.tokens <= window.budget().get());
            let id = format!("call_{call}");
            let asked = Message::tool_call(&id, "read", RawJson::parse("{}").unwrap());
            session.ingest(asked).await.unwrap();
            let answer = Message::tool_result(&id, result(call));
            session.ingest(answer).await.unwrap();
        }
        assert!(
            session.snapshot().await.unwrap().version.0 > 0,
            "nothing was compacted"
        );
    }
}

/// The calls that a program must run again after it died in the middle of a turn.
#[tokio::test]
async fn open_calls_are_those_of_the_newest_response_without_a_result() {
    let parts = |ids: &[&str]| -> Vec<Part> {
        let arguments = || RawJson::parse("{}").unwrap();
        let call = |id: &&str| Part::ToolCall {
            id: (*id).to_owned(),
            name: "run".to_owned(),
            arguments: arguments(),
        };
        ids.iter().map(call).collect()
    };
    for place in both(memory).await {
        let session = place.memory.session("s").await.unwrap();
        let open = async || -> Vec<String> {
            let Some(open) = session.open_turn().await.unwrap() else {
                return vec!["complete".to_owned()];
            };
            open.tool_calls().map(|call| call.id.to_owned()).collect()
        };
        assert_eq!(open().await, ["complete"]);
        talk(&session, 30).await;
        let last = session.entries().await.unwrap().pop().unwrap().role;
        let due = last != Role::Assistant;
        assert_eq!(
            open().await,
            if due {
                vec![]
            } else {
                vec!["complete".to_owned()]
            }
        );
        // The calls of an interrupted response are over.
        let interrupted = Message::new(Role::Assistant, parts(&["old"]));
        session.ingest(interrupted).await.unwrap();
        session.ingest(Message::user("Never mind.")).await.unwrap();
        assert_eq!(open().await, ["old"]);
        // One response may have several lines.
        for ids in [&["a", "b"][..], &["c"]] {
            let line = Message::new(Role::Assistant, parts(ids)).with_response("r");
            session.ingest(line).await.unwrap();
        }
        assert_eq!(open().await, ["a", "b", "c"]);
        say(&session, Message::tool_result("b", "done")).await;
        assert_eq!(open().await, ["a", "c"]);
        let open_turn = session.open_turn().await.unwrap().unwrap();
        for call in open_turn.tool_calls() {
            say(&session, call.failed("the program ended")).await;
        }
        assert_eq!(open().await, [""; 0]);
        session.ingest(Message::assistant("Done.")).await.unwrap();
        assert_eq!(open().await, ["complete"]);
    }
}
