//! Guards under a fake timer: nothing sleeps, everything is deterministic.

use std::sync::Arc;
use std::time::Duration;

use memory_model::{Hash, LogEntry, Message};
use model_client::guard::{
    BreakerPolicy, BreakerState, GuardPolicy, Guards, RetryPolicy, SessionGuard, SpendPolicy,
};
use model_client::{ChatModel, ChatPrompt, Completion, Failure, FailureKind, Timer};
use summarize_escalation::testing::{self, Answer, FakeTimer, Scripted};
use summarize_escalation::{
    BeforeCall, Error, ExtractiveSummarizer, FallbackSummarizer, GuardedSummarizer, Ladder,
    OnError, Source, Summarizer, SummarizerResponse, SummaryRequest, Tier, escalate,
};
use token_estimate::HeuristicEstimator;

use crate::request;

const SECOND: Duration = Duration::from_secs(1);
const UNTIL_RESET: BreakerPolicy = BreakerPolicy {
    failures: 3,
    half_open_after_millis: None,
};

fn log() -> Vec<LogEntry> {
    let messages = (0..6)
        .map(|n| Message::user(format!("{n} {}", "word ".repeat(90))))
        .collect();
    let mut log = testing::log(messages, &HeuristicEstimator::Bytes4);
    for entry in &mut log {
        entry.hash = Hash([u8::try_from(entry.seq.0).unwrap(); 32]);
    }
    log
}

/// Calls a summarizer with the first `pieces` messages of the log.
fn ask(timer: &FakeTimer, summarizer: &dyn Summarizer, pieces: usize) -> Result<String, Error> {
    let log = log();
    let source: Vec<Source<'_>> = log.iter().take(pieces).map(Source::from).collect();
    let request = request(&source, 100);
    let answer = timer.drive(summarizer.summarize(&request)).expect("no end");
    answer.map(|answer| answer.text)
}

fn kind(result: Result<String, Error>) -> FailureKind {
    let error = result.unwrap_err();
    error.failure().expect("a failure").kind()
}

fn guarded(
    script: impl IntoIterator<Item = Answer>,
    policy: GuardPolicy,
) -> (FakeTimer, Scripted, GuardedSummarizer<Scripted>) {
    let (timer, scripted) = (FakeTimer::new(), Scripted::new(script));
    let guarded = GuardedSummarizer::new(scripted.clone(), policy, Arc::new(timer.clone()));
    (timer, scripted, guarded)
}

fn failure(kind: FailureKind) -> Answer {
    Answer::Failure(kind, None)
}

#[test]
fn a_hanging_call_ends_in_time() {
    let policy = GuardPolicy {
        timeout_millis: Some(5_000),
        ..GuardPolicy::none()
    };
    let (timer, scripted, guarded) = guarded([Answer::Hang], policy);
    assert_eq!(kind(ask(&timer, &guarded, 3)), FailureKind::TimedOut);
    assert_eq!(timer.waits(), [SECOND * 5]);
    assert_eq!(scripted.calls(), 1);
}

#[test]
fn transient_failures_are_retried_with_growing_waits() {
    let policy = GuardPolicy {
        retry: Some(RetryPolicy {
            attempts: 4,
            first_wait_millis: 1_000,
            longest_wait_millis: 3_000,
        }),
        ..GuardPolicy::none()
    };
    let script = [
        failure(FailureKind::Overloaded),
        failure(FailureKind::Unreachable),
        failure(FailureKind::BadAnswer),
        Answer::text("done"),
    ];
    let (timer, scripted, guarded) = guarded(script, policy.clone());
    assert_eq!(ask(&timer, &guarded, 3).unwrap(), "done");
    assert_eq!(timer.waits(), [SECOND, SECOND * 2, SECOND * 3]);
    assert_eq!(scripted.calls(), 4);

    let (timer, scripted, guarded) = self::guarded([failure(FailureKind::Overloaded)], policy);
    assert_eq!(kind(ask(&timer, &guarded, 3)), FailureKind::Overloaded);
    assert_eq!(scripted.calls(), 4);
}

#[test]
fn the_providers_own_wait_counts_unless_it_is_too_long() {
    let policy = GuardPolicy {
        retry: Some(RetryPolicy::default()),
        ..GuardPolicy::none()
    };
    let limited = |secs| Answer::Failure(FailureKind::RateLimited, Some(SECOND * secs));
    let (timer, _, guarded) = guarded([limited(7), Answer::text("done")], policy.clone());
    assert_eq!(ask(&timer, &guarded, 3).unwrap(), "done");
    assert_eq!(timer.waits(), [SECOND * 7]);

    let (timer, scripted, guarded) = self::guarded([limited(61)], policy);
    let error = ask(&timer, &guarded, 3).unwrap_err();
    assert_eq!(error.failure().unwrap().retry_after(), Some(SECOND * 61));
    assert_eq!(scripted.calls(), 1);
    assert!(timer.waits().is_empty());
}

#[test]
fn permanent_failures_are_not_retried() {
    let policy = GuardPolicy {
        retry: Some(RetryPolicy::default()),
        ..GuardPolicy::none()
    };
    let kinds = [
        FailureKind::Auth,
        FailureKind::Quota,
        FailureKind::TooLong,
        FailureKind::NotFound,
        FailureKind::BadRequest,
        FailureKind::Refused,
        FailureKind::CutShort,
        FailureKind::Empty,
    ];
    for expected in kinds {
        let (timer, scripted, guarded) = guarded([failure(expected)], policy.clone());
        assert_eq!(kind(ask(&timer, &guarded, 3)), expected);
        assert_eq!(scripted.calls(), 1, "{expected}");
    }
    // Nor what a client says nothing about.
    let (timer, scripted, guarded) = guarded([Answer::fail("odd")], policy);
    assert!(ask(&timer, &guarded, 3).is_err());
    assert_eq!(scripted.calls(), 1);
}

#[test]
fn the_breaker_opens_after_three_failures_and_tries_one_call_later() {
    let policy = GuardPolicy {
        breaker: Some(BreakerPolicy::default()),
        ..GuardPolicy::none()
    };
    let script = [
        failure(FailureKind::Overloaded),
        Answer::Empty,
        Answer::fail("odd"),
        failure(FailureKind::Overloaded),
        Answer::text("done"),
    ];
    let (timer, scripted, guarded) = guarded(script, policy);
    for _ in 0..3 {
        assert_eq!(guarded.breaker(), BreakerState::Closed);
        let _ = ask(&timer, &guarded, 3);
    }
    assert_eq!(guarded.breaker(), BreakerState::Open);
    for _ in 0..50 {
        assert_eq!(kind(ask(&timer, &guarded, 3)), FailureKind::BreakerOpen);
    }
    assert_eq!(scripted.calls(), 3, "an open breaker asks nobody");
    timer.advance(SECOND * 60);
    assert_eq!(guarded.breaker(), BreakerState::HalfOpen);
    assert_eq!(kind(ask(&timer, &guarded, 3)), FailureKind::Overloaded);
    assert_eq!(guarded.breaker(), BreakerState::Open);
    timer.advance(SECOND * 60);
    assert_eq!(ask(&timer, &guarded, 3).unwrap(), "done");
    assert_eq!(guarded.breaker(), BreakerState::Closed);
    assert_eq!(guarded.session().failures(), 0);
}

#[test]
fn each_session_has_its_own_breaker_and_all_share_the_spending() {
    let timer = FakeTimer::new();
    let policy = GuardPolicy {
        breaker: Some(UNTIL_RESET),
        session_spend: SpendPolicy::calls(4),
        total_spend: SpendPolicy::calls(6),
        ..GuardPolicy::none()
    };
    let guards = Arc::new(Guards::new(policy, Arc::new(timer.clone())));
    let session = |answer| {
        let session = Arc::new(SessionGuard::new());
        GuardedSummarizer::for_session(Scripted::new([answer]), Arc::clone(&guards), session)
    };
    let ill = session(failure(FailureKind::Overloaded));
    let well = session(Answer::text("done"));
    for _ in 0..3 {
        assert_eq!(kind(ask(&timer, &ill, 3)), FailureKind::Overloaded);
    }
    assert_eq!(kind(ask(&timer, &ill, 3)), FailureKind::BreakerOpen);
    for _ in 0..3 {
        assert_eq!(ask(&timer, &well, 3).unwrap(), "done");
    }
    let spent = ask(&timer, &well, 3).unwrap_err();
    assert_eq!(spent.failure().unwrap().kind(), FailureKind::SpendLimit);
    let text = spent.failure().unwrap().to_string();
    assert!(text.contains("all sessions together"), "{text}");
    assert_eq!(guards.spent().calls, 6);
    assert_eq!(well.session().spent().calls, 3);
    // A limit of ours opens no breaker, and a reset closes one.
    assert_eq!(well.breaker(), BreakerState::Closed);
    ill.session().reset();
    assert_eq!(kind(ask(&timer, &ill, 3)), FailureKind::SpendLimit);
}

#[test]
fn recorded_failures_open_the_breaker_of_their_session() {
    let policy = GuardPolicy {
        breaker: Some(UNTIL_RESET),
        ..GuardPolicy::none()
    };
    let (timer, scripted, guarded) = guarded([Answer::text("done")], policy);
    let told = |text| guarded.guards().record_failure(guarded.session(), text);
    assert_eq!(
        [told("one"), told("two"), told("three")],
        [false, false, true]
    );
    let error = ask(&timer, &guarded, 3).unwrap_err();
    assert!(
        error.failure().unwrap().to_string().contains("(three)"),
        "{error}"
    );
    assert_eq!(scripted.calls(), 0);
    // Without a breaker nothing opens.
    let none = Guards::new(GuardPolicy::none(), Arc::new(FakeTimer::new()));
    let session = SessionGuard::new();
    assert!((0..9).all(|_| !none.record_failure(&session, "x")));
}

#[test]
fn tokens_are_counted_and_never_overspent() {
    // Three messages cost 339 tokens, the target 100.
    let policy = GuardPolicy {
        session_spend: SpendPolicy::tokens(1_000),
        ..GuardPolicy::none()
    };
    let (timer, scripted, guarded) = guarded([Answer::text("four tokens here")], policy);
    let mut made = 0;
    while ask(&timer, &guarded, 3).is_ok() {
        made += 1;
        assert!(guarded.session().spent().tokens <= 1_000);
    }
    assert_eq!(made, 2);
    assert_eq!(scripted.calls(), 2);
    assert_eq!(kind(ask(&timer, &guarded, 3)), FailureKind::SpendLimit);
    // A shorter source still fits.
    assert!(ask(&timer, &guarded, 1).is_ok());
}

#[test]
fn no_call_is_paid_for_twice() {
    let policy = GuardPolicy {
        cache_entries: 2,
        ..GuardPolicy::none()
    };
    let script = [
        failure(FailureKind::Overloaded),
        Answer::Empty,
        Answer::text("one"),
        Answer::text("two"),
        Answer::text("three"),
        Answer::text("four"),
    ];
    let (timer, scripted, guarded) = guarded(script, policy);
    assert!(ask(&timer, &guarded, 1).is_err());
    // Neither a failure nor an empty answer is kept.
    assert_eq!(ask(&timer, &guarded, 1).unwrap(), "");
    assert_eq!(ask(&timer, &guarded, 1).unwrap(), "one");
    assert_eq!(ask(&timer, &guarded, 1).unwrap(), "one");
    assert_eq!(ask(&timer, &guarded, 2).unwrap(), "two");
    assert_eq!(ask(&timer, &guarded, 1).unwrap(), "one");
    assert_eq!(scripted.calls(), 4);
    // Two are kept, the newest.
    assert_eq!(ask(&timer, &guarded, 3).unwrap(), "three");
    assert_eq!(ask(&timer, &guarded, 2).unwrap(), "two");
    assert_eq!(ask(&timer, &guarded, 1).unwrap(), "four");
}

#[test]
fn another_recipe_is_another_entry() {
    let timer = FakeTimer::new();
    let scripted = Scripted::new([Answer::HeadCut]);
    let policy = GuardPolicy::default();
    let guarded = GuardedSummarizer::new(scripted.clone(), policy, Arc::new(timer.clone()));
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let base = request(&source, 100);
    let others = [
        base,
        SummaryRequest {
            target_tokens: 101,
            ..base
        },
        SummaryRequest {
            instructions: Some("the tests"),
            ..base
        },
        SummaryRequest {
            previous: Some("before"),
            ..base
        },
        SummaryRequest {
            style: summarize_escalation::Style::Aggressive,
            ..base
        },
        SummaryRequest {
            purpose: summarize_escalation::Purpose::TurnPrefix,
            ..base
        },
    ];
    for request in &others {
        for _ in 0..2 {
            timer.drive(guarded.summarize(request)).unwrap().unwrap();
        }
    }
    assert_eq!(scripted.calls(), 6);
    // Messages that are in no log have no hash: nothing tells them apart.
    let mut unhashed = log.clone();
    for entry in &mut unhashed {
        entry.hash = Hash::ZERO;
    }
    let source: Vec<Source<'_>> = unhashed.iter().map(Source::from).collect();
    let request = request(&source, 100);
    for _ in 0..2 {
        timer.drive(guarded.summarize(&request)).unwrap().unwrap();
    }
    assert_eq!(scripted.calls(), 8);
}

/// Answers after a second, and knows how many of its calls were under way at once.
#[derive(Debug)]
struct Slow {
    timer: FakeTimer,
    under_way: std::sync::Mutex<(u32, u32)>,
}

#[async_trait::async_trait]
impl Summarizer for Slow {
    fn id(&self) -> &str {
        "slow@1"
    }

    async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        {
            let mut now = self.under_way.lock().unwrap();
            now.0 += 1;
            now.1 = now.1.max(now.0);
        }
        Timer::sleep(&self.timer, SECOND).await;
        self.under_way.lock().unwrap().0 -= 1;
        Ok(SummarizerResponse::new("done"))
    }
}

#[test]
fn concurrent_calls_are_limited() {
    let timer = FakeTimer::new();
    let slow = Arc::new(Slow {
        timer: timer.clone(),
        under_way: std::sync::Mutex::default(),
    });
    let policy = GuardPolicy {
        concurrency: Some(2),
        ..GuardPolicy::none()
    };
    let guarded = GuardedSummarizer::new(Arc::clone(&slow), policy, Arc::new(timer.clone()));
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = request(&source, 100);
    let calls = (0..7).map(|_| guarded.summarize(&request));
    let all = timer.drive(futures::future::join_all(calls)).unwrap();
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(slow.under_way.lock().unwrap().1, 2);
    assert_eq!(Timer::now(&timer), SECOND * 4);
}

#[test]
fn a_chain_asks_the_main_model_when_the_cheap_one_fails() {
    let timer = FakeTimer::new();
    let kinds = [
        failure(FailureKind::Overloaded),
        Answer::fail("odd"),
        Answer::Empty,
        Answer::Blank,
    ];
    for answer in kinds {
        let cheap = Scripted::new([answer]);
        let chain =
            FallbackSummarizer::new(cheap.clone()).or(Scripted::new([Answer::text("main wrote")]));
        assert_eq!(ask(&timer, &chain, 3).unwrap(), "main wrote");
        assert_eq!(cheap.calls(), 1);
    }
    let main = Scripted::new([failure(FailureKind::RateLimited)]);
    let cheap = Scripted::new([Answer::text("cheap wrote"), failure(FailureKind::Auth)]);
    let chain = FallbackSummarizer::new(cheap)
        .or(ExtractiveSummarizer::new())
        .or(main.clone());
    assert_eq!(
        chain.id(),
        format!("scripted@1|{}|scripted@1", ExtractiveSummarizer::new().id())
    );
    assert!(!chain.provisional());
    assert_eq!(ask(&timer, &chain, 3).unwrap(), "cheap wrote");
    assert_eq!(main.calls(), 0);
    // All fail: an extract is none of a chain's, and the last failure says whether to try again.
    let error = ask(&timer, &chain, 3).unwrap_err();
    assert_eq!(error.failure().unwrap().kind(), FailureKind::RateLimited);
    let text = error.failure().unwrap().to_string();
    assert!(
        text.contains("check the key") && text.contains("; then "),
        "{text}"
    );
}

/// Writes under a model's name.
#[derive(Debug)]
struct Named(&'static str, Scripted);

#[async_trait::async_trait]
impl Summarizer for Named {
    fn id(&self) -> &str {
        self.0
    }

    fn model(&self) -> Option<&str> {
        Some(self.0)
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.1.summarize(request).await
    }
}

#[test]
fn the_ladder_names_the_model_and_marks_summaries_without_one() {
    let timer = FakeTimer::new();
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    let down = || Scripted::new([failure(FailureKind::Overloaded)]);
    let chain =
        FallbackSummarizer::new(Named("small", down())).or(Named("large", Scripted::head_cut()));
    let policy = GuardPolicy::default();
    let guarded = GuardedSummarizer::new(chain, policy.clone(), Arc::new(timer.clone()));
    let ladder = Ladder::default();
    let strict = Ladder {
        on_error: OnError::Fail,
        ..Ladder::default()
    };
    let climb = escalate(&guarded, &ladder, &request);
    let outcome = timer.drive(climb).unwrap().unwrap();
    assert_eq!(outcome.model.as_deref(), Some("large"));
    assert_eq!(outcome.summarizer, "small|large");
    assert!(!outcome.provisional);

    let all_down = FallbackSummarizer::new(Named("small", down())).or(Named("large", down()));
    let guarded = GuardedSummarizer::new(all_down, policy, Arc::new(timer.clone()));
    for _ in 0..5 {
        let climb = escalate(&guarded, &ladder, &request);
        let outcome = timer.drive(climb).unwrap().unwrap();
        assert_eq!(outcome.tier, Tier::Extractive);
        assert!(outcome.provisional);
        assert_eq!(outcome.model, None);
        let climb = escalate(&guarded, &strict, &request);
        assert!(timer.drive(climb).unwrap().is_err());
    }
    assert_eq!(guarded.breaker(), BreakerState::Open);
}

#[test]
fn summarizers_without_a_model_are_not_guarded() {
    let timer = FakeTimer::new();
    let policy = GuardPolicy {
        total_spend: SpendPolicy::calls(0),
        ..GuardPolicy::default()
    };
    let guarded =
        GuardedSummarizer::new(ExtractiveSummarizer::new(), policy, Arc::new(timer.clone()));
    assert!(guarded.provisional());
    assert!(!ask(&timer, &guarded, 6).unwrap().is_empty());
    assert_eq!(guarded.session().spent().calls, 0);
}

#[test]
fn the_policy_is_a_config_value() {
    let text = r#"{"breaker":null,"timeout_millis":5000,"retry":{"attempts":1},"total_spend":{"calls":9}}"#;
    let policy: GuardPolicy = serde_json::from_str(text).unwrap();
    assert_eq!(policy.breaker, None);
    assert_eq!(policy.retry.unwrap().longest_wait_millis, 60_000);
    assert_eq!(policy.total_spend, SpendPolicy::calls(9));
    assert_eq!(policy.concurrency, Some(4));
    let again = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<GuardPolicy>(&again).unwrap(), policy);
    assert!(serde_json::from_str::<GuardPolicy>(r#"{"timeout":1}"#).is_err());
}

/// A client that answers each prompt after a number of seconds, or fails first.
#[derive(Debug, Clone)]
struct Client {
    timer: FakeTimer,
    seconds: u32,
    /// What the next calls come to; when there is none left, an answer.
    script: Arc<std::sync::Mutex<std::collections::VecDeque<Option<FailureKind>>>>,
    calls: Arc<std::sync::atomic::AtomicU32>,
}

impl Client {
    fn new(timer: &FakeTimer, seconds: u32, script: &[Option<FailureKind>]) -> Self {
        Self {
            timer: timer.clone(),
            seconds,
            script: Arc::new(std::sync::Mutex::new(script.iter().copied().collect())),
            calls: Arc::default(),
        }
    }

    fn calls(&self) -> u32 {
        self.calls.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl ChatModel for Client {
    async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
        self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Timer::sleep(&self.timer, SECOND * self.seconds).await;
        match self.script.lock().unwrap().pop_front().flatten() {
            Some(kind) => Err(Failure::new(kind, "as the script says")),
            None => Ok(Completion::new("a few words")),
        }
    }
}

/// Asks for a summary that takes three parts and a merge.
fn in_parts(
    timer: &FakeTimer,
    client: &Client,
    policy: GuardPolicy,
) -> (
    Result<SummarizerResponse, Error>,
    GuardedSummarizer<summarize_escalation::LlmSummarizer<Client>>,
) {
    let messages = (0..3).map(|n| Message::assistant(format!("{n} {}", "word ".repeat(1_400))));
    let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = request(&source, 150);
    let window = summarize_escalation::ModelWindow::tokens(3_000);
    let model = summarize_escalation::LlmSummarizer::new("m", client.clone()).with_window(window);
    let guarded = GuardedSummarizer::new(model, policy, Arc::new(timer.clone()));
    let answer = timer.drive(guarded.summarize(&request)).expect("no end");
    (answer, guarded)
}

#[test]
fn a_time_out_is_that_of_each_call_of_a_summary_in_parts() {
    let timer = FakeTimer::new();
    let client = Client::new(&timer, 4, &[]);
    let policy = GuardPolicy {
        timeout_millis: Some(5_000),
        ..GuardPolicy::none()
    };
    let (answer, _) = in_parts(&timer, &client, policy);
    assert_eq!(answer.unwrap().calls, 4);
    assert_eq!(client.calls(), 4);
}

#[test]
fn a_call_that_failed_is_made_again_and_not_the_parts_before_it() {
    let timer = FakeTimer::new();
    let script = [
        None,
        Some(FailureKind::Overloaded),
        Some(FailureKind::Overloaded),
    ];
    let client = Client::new(&timer, 1, &script);
    let policy = GuardPolicy {
        retry: Some(RetryPolicy::default()),
        ..GuardPolicy::none()
    };
    let (answer, _) = in_parts(&timer, &client, policy);
    assert_eq!(answer.unwrap().calls, 6);
    assert_eq!(client.calls(), 6);
}

#[test]
fn each_call_of_a_summary_in_parts_is_paid_for() {
    let timer = FakeTimer::new();
    let client = Client::new(&timer, 1, &[]);
    let policy = GuardPolicy {
        session_spend: SpendPolicy::calls(2),
        ..GuardPolicy::none()
    };
    let (answer, guarded) = in_parts(&timer, &client, policy);
    assert_eq!(
        kind(answer.map(|answer| answer.text)),
        FailureKind::SpendLimit
    );
    assert_eq!(client.calls(), 2);
    assert_eq!(guarded.session().spent().calls, 2);
    // The prompts are counted, not the source alone.
    assert!(guarded.session().spent().tokens > 3_800);
}

#[test]
fn a_breaker_opens_within_a_summary_in_parts() {
    let timer = FakeTimer::new();
    let script = [None, Some(FailureKind::Overloaded)];
    let client = Client::new(&timer, 1, &script);
    let one = BreakerPolicy {
        failures: 1,
        ..BreakerPolicy::default()
    };
    let policy = GuardPolicy {
        breaker: Some(one),
        ..GuardPolicy::none()
    };
    let (answer, guarded) = in_parts(&timer, &client, policy);
    assert_eq!(
        kind(answer.map(|answer| answer.text)),
        FailureKind::Overloaded
    );
    assert_eq!((client.calls(), guarded.breaker()), (2, BreakerState::Open));
}

/// Lets calls be made until the model was asked so often.
#[derive(Debug)]
struct AtMost<'c>(&'c Client, u32);

#[async_trait::async_trait]
impl BeforeCall for AtMost<'_> {
    async fn before_call(&self) -> Result<(), Failure> {
        match self.0.calls() < self.1 {
            true => Ok(()),
            false => Err(Failure::new(
                FailureKind::Withdrawn,
                "its words were erased",
            )),
        }
    }
}

#[test]
fn a_withdrawn_source_is_not_sent_again_nor_are_the_parts_after_it() {
    for (script, most) in [(vec![], 2), (vec![None, Some(FailureKind::Overloaded)], 2)] {
        let timer = FakeTimer::new();
        let client = Client::new(&timer, 1, &script);
        let messages = (0..3).map(|n| Message::assistant(format!("{n} {}", "word ".repeat(1_400))));
        let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let check = AtMost(&client, most);
        let mut request = request(&source, 150);
        request.before_call = Some(&check);
        let window = summarize_escalation::ModelWindow::tokens(3_000);
        let model =
            summarize_escalation::LlmSummarizer::new("m", client.clone()).with_window(window);
        let policy = GuardPolicy::default();
        let guarded = GuardedSummarizer::new(model, policy, Arc::new(timer.clone()));
        let answer = timer.drive(guarded.summarize(&request)).expect("no end");
        let error = answer.unwrap_err();
        assert!(error.to_string().contains('m'), "{error}");
        assert_eq!(client.calls(), most);
    }
}
