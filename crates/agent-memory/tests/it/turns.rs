//! The moments of an agent's turn: what is made ahead, and what is published when.

use std::sync::{Arc, Mutex};

use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Action, Background, Builder, DagPolicy, Event, Mode, Recorder, Session, StopReason, Trigger,
    TurnPolicy, Window, Work,
};

use summarize_escalation::FailureKind;

use crate::support::{both, talk};

/// A window that `talk` fills to more than half with 40 messages.
const WINDOW: u64 = 4_000;

/// A memory with a model, and with thresholds that tests set themselves.
fn with(summarizer: &Scripted, soft: u64, hard: u64) -> Builder {
    let thresholds = |tokens| Trigger::Absolute { tokens };
    memory()
        .dag(DagPolicy::for_window(WINDOW))
        .summarizer(Arc::new(summarizer.clone()))
        .turns(TurnPolicy::default().with_thresholds(thresholds(soft), thresholds(hard)))
        .runner(small())
}

fn small() -> agent_memory::RunnerPolicy {
    agent_memory::RunnerPolicy::default().with_ahead_min_tokens(200)
}

async fn version(session: &Session) -> u64 {
    session.snapshot().await.unwrap().version.0
}

#[tokio::test]
async fn a_turn_prepares_and_a_later_one_publishes_without_a_call() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    for place in both(|| with(&model, 500, 2_000)).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 40).await;
        let tokens = session.snapshot().await.unwrap().tokens();
        assert!(tokens > 500 && tokens < 2_000, "{tokens}");

        let before = model.calls();
        let upkeep = session.after_turn(&window).await.unwrap();
        let ahead = upkeep.prepared.unwrap();
        assert!(
            ahead.prepared > 0 && ahead.ready == ahead.prepared,
            "{ahead:?}"
        );
        assert_eq!(u64::from(model.calls() - before), ahead.calls);
        assert_eq!((version(&session).await, upkeep.compactions.len()), (0, 0));

        // Again there is nothing new to make.
        let called = model.calls();
        let again = session.after_turn(&window).await.unwrap().prepared.unwrap();
        assert_eq!(
            (again.prepared, again.ready, again.calls),
            (0, ahead.ready, 0)
        );

        talk(&session, 60).await;
        let call = session.before_call(&window).await.unwrap();
        assert_eq!(model.calls(), called, "a foreground called the model");
        assert_eq!(call.upkeep.published(), ahead.ready);
        assert!(call.context.tokens <= window.budget().get());
        assert_eq!(version(&session).await, ahead.ready);
        for summary in &call.upkeep.compactions[0].summaries {
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
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 30).await;
        let ahead = session.prepare_ahead().await.unwrap();
        assert!(ahead.ready > 0);
        drop(session);
        let called = model.calls();
        let place = place.reopen(build()).await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session.publish_ready().await.unwrap();
        assert_eq!(outcome.leaf, ahead.ready);
        assert_eq!(
            (outcome.calls, model.calls()),
            (0, called),
            "{}",
            place.name
        );
        assert!(outcome.after.tokens < outcome.before.tokens);
        // It is published once.
        let again = session.publish_ready().await.unwrap();
        assert_eq!(again.stop_reason, StopReason::NothingEligible);
    }
}

#[tokio::test]
async fn what_a_compaction_took_first_is_not_published_again() {
    let model = Scripted::head_cut();
    for place in both(|| with(&model, 500, 2_000)).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 60).await;
        session.prepare_ahead().await.unwrap();
        // The same jobs: it takes what is prepared, and calls only for what is not.
        let called = model.calls();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.leaf > 0
                && u64::from(model.calls() - called) < outcome.leaf + outcome.condensed
        );
        let before = version(&session).await;
        let late = session.publish_ready().await.unwrap();
        assert_eq!((late.leaf, late.calls), (0, 0));
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
        let build = || with(&model, 500, 2_000).ladder(agent_memory::Ladder::anna());
        let places = both(build).await;
        let place = &places[which];
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 60).await;
        let upkeep = session.after_turn(&window).await.unwrap();
        assert!(upkeep.failure.unwrap().contains("503"), "{}", place.name);
        assert_eq!(
            (upkeep.model.not_made, model.calls()),
            (1, 1),
            "{}",
            place.name
        );
        let call = session.before_call(&window).await.unwrap();
        assert!(call.context.tokens <= window.budget().get());
        assert_eq!(version(&session).await, 0, "{}", place.name);
        assert!(session.verify().await.unwrap().is_ok());
        // It answers again, and the next turns go on as if nothing had been.
        let upkeep = session.after_turn(&window).await.unwrap();
        assert!(upkeep.model.is_ok() && upkeep.prepared.unwrap().ready > 0);
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
                true => builder.background(later.clone()),
                false => builder,
            }
        };
        for place in both(build).await {
            let session = place.memory.session("s").await.unwrap();
            let (mut told, mut failed) = (0, 0);
            for turn in 1..=60 {
                talk(&session, 40 + 2 * turn).await;
                let called = model.calls();
                let after = session.after_turn(&window).await.unwrap();
                let begun = std::mem::take(&mut *later.0.lock().unwrap());
                for work in begun {
                    work.await;
                }
                let asked = u64::from(model.calls() - called);
                let before = session.before_turn(&window).await.unwrap();
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

/// Keeps work until it is asked to do it.
#[derive(Default)]
struct Later(Mutex<Vec<Work>>);

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Later")
    }
}

impl Background for Later {
    fn spawn(&self, work: Work) {
        self.0.lock().unwrap().push(work);
    }
}

#[tokio::test]
async fn work_beside_the_turns_is_begun_once_and_waited_for_by_nobody() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let later = Arc::new(Later::default());
    let build = || with(&model, 500, 2_000).background(later.clone());
    for place in both(build).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 80).await;
        let called = model.calls();
        assert!(session.after_turn(&window).await.unwrap().preparing);
        assert!(session.after_turn(&window).await.unwrap().preparing);
        // Nothing is ready: the turn goes on without.
        let call = session.before_call(&window).await.unwrap();
        assert_eq!((call.upkeep.published(), model.calls()), (0, called));
        let work = std::mem::take(&mut *later.0.lock().unwrap());
        assert_eq!(work.len(), 1, "{}", place.name);
        for work in work {
            work.await;
        }
        let call = session.before_call(&window).await.unwrap();
        assert!(call.upkeep.published() > 0);
        // What is done makes place for the next.
        talk(&session, 40).await;
        session.after_turn(&window).await.unwrap();
        assert_eq!(std::mem::take(&mut *later.0.lock().unwrap()).len(), 1);
    }
}

#[tokio::test]
async fn closing_stops_what_waits_for_a_model() {
    let window = Window::new(WINDOW);
    let model = Scripted::hangs();
    let later = Arc::new(Later::default());
    let build = || with(&model, 500, 2_000).background(later.clone());
    for place in both(build).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 60).await;
        session.after_turn(&window).await.unwrap();
        let work = later.0.lock().unwrap().pop().unwrap();
        let called = model.calls();
        let task = tokio::spawn(work);
        while model.calls() == called {
            tokio::task::yield_now().await;
        }
        place.memory.close().await.unwrap();
        task.await.unwrap();
    }
}

#[tokio::test]
async fn annas_rule_compacts_after_the_turn_and_waits() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let build = || {
        memory()
            .dag(DagPolicy::for_window(WINDOW))
            .summarizer(Arc::new(model.clone()))
            .turns(TurnPolicy::anna())
    };
    for place in both(build).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 110).await;
        let call = session.before_call(&window).await.unwrap();
        assert_eq!(call.upkeep.compactions.len(), 0);
        let upkeep = session.after_turn(&window).await.unwrap();
        assert!(upkeep.published() > 0 && upkeep.prepared.is_none());
    }
}

#[tokio::test]
async fn a_manual_policy_does_nothing_by_itself() {
    let window = Window::new(WINDOW);
    let model = Scripted::head_cut();
    let build = || with(&model, 0, 0).turns(TurnPolicy::manual());
    for place in both(build).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 110).await;
        session.before_turn(&window).await.unwrap();
        session.before_call(&window).await.unwrap();
        let upkeep = session.after_turn(&window).await.unwrap();
        assert_eq!((upkeep.compactions.len(), upkeep.preparing), (0, false));
        assert_eq!(version(&session).await, 0);
    }
}

#[test]
fn a_turn_policy_is_a_config_value() {
    let json = serde_json::to_string(&TurnPolicy::default()).unwrap();
    assert_eq!(
        json,
        r#"{"soft":{"kind":"fraction","of_window":0.5},"hard":{"kind":"fraction","of_window":0.75},"before_turn":"publish","before_call":"publish","after_turn":"prepare"}"#
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
    assert_eq!(budget(Window::new(8_000).with_system_tokens(1_000)), 5_000);
    assert_eq!(budget(Window::new(8_000).with_reserve(9_000)), 0);
}
