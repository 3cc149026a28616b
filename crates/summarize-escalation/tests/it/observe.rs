//! What guards tell of the attempts that they make, and how long a silent model is waited for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use memory_model::Message;
use model_client::Timer;
use model_client::guard::{
    AttemptEvent, AttemptKind, CallObserver, GuardPolicy, Guards, RetryPolicy, SessionGuard,
};
use summarize_escalation::testing::{Answer, FakeTimer, Scripted, log};
use summarize_escalation::{FailureKind, GuardedSummarizer, Source, Summarizer, SummaryRequest};
use token_estimate::default_estimator;

/// Writes down every event.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl CallObserver for Log {
    fn attempt(&self, event: &AttemptEvent<'_>) {
        let what = match &event.kind {
            AttemptKind::Started { timeout } => format!("started, at most {timeout:?}"),
            AttemptKind::Answered => "answered".to_owned(),
            AttemptKind::Failed { retry_in, .. } => format!("failed, again in {retry_in:?}"),
            _ => "cancelled".to_owned(),
        };
        let (id, model) = (event.id, event.model);
        let line = format!("{id} {model} {}/{}: {what}", event.attempt, event.attempts);
        self.0.lock().unwrap().push(line);
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Asks a guarded model once, with time that passes by itself.
fn ask(model: &Scripted, policy: GuardPolicy, seen: &Arc<Log>) -> (bool, Duration) {
    let timer = FakeTimer::new();
    let guards = Guards::new(policy, Arc::new(timer.clone()));
    let observer = Arc::<Log>::clone(seen);
    let guards = Arc::new(guards.with_observer(observer));
    let guarded =
        GuardedSummarizer::for_session(model.clone(), guards, Arc::new(SessionGuard::new()));
    let estimator = default_estimator();
    let entries = log(vec![Message::user("Rename it. ".repeat(40))], &*estimator);
    let pieces: Vec<Source<'_>> = entries.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&pieces, &*estimator);
    let answer = timer.drive(guarded.summarize(&request));
    (answer.unwrap().is_ok(), Timer::now(&timer))
}

#[test]
fn the_start_and_end_of_each_attempt_are_reported() {
    let overloaded = Answer::Failure(FailureKind::Overloaded, None);
    let model = Scripted::new([overloaded, Answer::HeadCut]);
    let seen = Arc::new(Log::default());
    let (answered, _) = ask(&model, GuardPolicy::default(), &seen);
    assert!(answered);
    assert_eq!(
        seen.lines(),
        [
            "0 scripted-model 1/3: started, at most Some(120s)",
            "0 scripted-model 1/3: failed, again in Some(1s)",
            "1 scripted-model 2/3: started, at most Some(120s)",
            "1 scripted-model 2/3: answered",
        ]
    );
}

#[test]
fn a_silent_model_is_waited_for_as_long_as_the_policy_says() {
    let retry = RetryPolicy {
        attempts: 5,
        ..RetryPolicy::default()
    };
    for (policy, seconds) in [
        (GuardPolicy::default(), 363),
        (
            GuardPolicy {
                retry: None,
                ..GuardPolicy::default()
            },
            120,
        ),
        (
            GuardPolicy {
                timeout_millis: Some(20_000),
                retry: Some(retry),
                ..GuardPolicy::default()
            },
            115,
        ),
    ] {
        let longest = Duration::from_secs(seconds);
        let (answered, waited) = ask(&Scripted::hangs(), policy, &Arc::default());
        assert_eq!((answered, waited), (false, longest));
    }
}
