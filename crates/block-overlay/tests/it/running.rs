//! The compaction of a running agent: trigger, hooks, events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use block_overlay::{
    AgentContext, BeforeCompaction, CompactionConfig, CompactionDecision, CompactionEvent,
    CompactionHooks, CompactionOutcome, Compactor, ContextConfig, ErrorKind, EventRecorder,
    NamedConfigs, TokenCounter,
};
use compaction_plan::StopReason;
use memory_model::{StepClock, Timestamp};
use token_estimate::TokenEstimatorExt as _;
use tokio::sync::Barrier;

use crate::world::{COUNTER, Msg, block_on, chain, config, turns, user};

fn context(window: u64) -> ContextConfig<Msg> {
    let counter: Arc<dyn TokenCounter> = Arc::new(COUNTER);
    ContextConfig::new(window)
        .with_system_prompt_tokens(0)
        .with_token_counter(counter)
}

fn agent() -> AgentContext<Msg> {
    AgentContext::of_session(chain(vec![turns("a", 20, 60), turns("b", 20, 60)]), "b")
}

fn compactor(context: ContextConfig<Msg>) -> Compactor<Msg> {
    Compactor::new(context).with_clock(Arc::new(StepClock::new(Timestamp(5), 0)))
}

#[test]
fn compaction_is_due_when_little_headroom_is_left() {
    // A window of 100,000 and a system prompt of 4,000.
    let by_default = CompactionConfig::<Msg>::default();
    assert!(!by_default.is_due(80_000, 100_000, 4_000));
    assert!(!by_default.is_due(81_000, 100_000, 4_000));
    assert!(by_default.is_due(82_000, 100_000, 4_000));
    let mut early = config();
    (early.compact_at_pct, early.compact_budget_threshold_pct) = (0.5, 0.1);
    assert!(!early.is_due(40_000, 100_000, 0) && early.is_due(40_001, 100_000, 0));
    assert!(!early.is_due(40_001, 0, 0), "an unknown window");
    early.compact_at_pct = f64::NAN;
    assert!(!early.is_due(u64::MAX, 1, 0));
}

#[test]
fn steering_messages_count_before_the_request() {
    let mut agent = agent();
    let tokens = COUNTER.messages(&agent.messages);
    let window = tokens * 100 / 85 + 50;
    let compactor = compactor(context(window));
    let quiet = block_on(compactor.before_request(&mut agent, [])).unwrap();
    assert_eq!(
        (quiet.stop, quiet.tokens_after),
        (StopReason::BelowThreshold, tokens)
    );
    let steering = [user(&"Stop that, and look here. ".repeat(20))];
    let fired = block_on(compactor.before_request(&mut agent, steering.clone())).unwrap();
    assert_eq!(fired.stop, StopReason::PassesDone);
    assert!(fired.tokens_before > tokens && fired.tokens_after < tokens / 2 && fired.fits);
    assert_eq!(agent.messages.last(), Some(&steering[0]));
    let record = agent.session.as_ref().unwrap().get("b").unwrap();
    assert_eq!(record.messages.last(), Some(&steering[0]));
    assert_eq!(
        record.compaction_block.as_ref().unwrap().created_at,
        Timestamp(5)
    );
}

#[test]
fn without_a_configuration_nothing_happens() {
    let off = Compactor::<Msg>::new(None);
    let mut agent = agent();
    let before = agent.messages.clone();
    let outcome = block_on(off.before_request(&mut agent, [user("Hello.")])).unwrap();
    assert_eq!(outcome.stop, StopReason::NothingEligible);
    let outcome = block_on(off.compact_context(&mut agent)).unwrap();
    assert_eq!(outcome.stop, StopReason::NothingEligible);
    assert_eq!(agent.messages.len(), before.len() + 1);
    assert!(
        agent
            .session
            .unwrap()
            .loops()
            .iter()
            .all(|one| one.compaction_block.is_none())
    );
}

#[test]
fn a_compaction_tells_counts_and_tokens() {
    let recorder = EventRecorder::default();
    let compactor = compactor(context(100_000)).with_hooks(Arc::new(recorder.clone()));
    let mut agent = agent();
    let sent = Mutex::new(Vec::new());
    let sender = |event: &CompactionEvent| sent.lock().unwrap().push(event.clone());
    let outcome = block_on(compactor.compact_context_with_sender(&mut agent, &sender)).unwrap();
    let events = recorder.events();
    assert_eq!(events, *sent.lock().unwrap());
    let started = CompactionEvent::Started {
        loop_id: Some("b".to_owned()),
        messages: outcome.messages_before,
        tokens: outcome.tokens_before,
    };
    let ended = CompactionEvent::Ended {
        stop: StopReason::PassesDone,
        messages_before: outcome.messages_before,
        messages_after: outcome.messages_after,
        tokens_before: outcome.tokens_before,
        tokens_after: outcome.tokens_after,
        loops_compacted: 2,
    };
    assert_eq!(
        (events.first(), events.last()),
        (Some(&started), Some(&ended))
    );
    let loops: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            CompactionEvent::Published { loop_id, .. } => Some(loop_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(loops, ["b", "a"]);
    assert_eq!(outcome.tokens_after, COUNTER.messages(&agent.messages));
}

#[test]
fn without_a_session_no_loop_is_compacted() {
    let recorder = EventRecorder::default();
    let compactor = compactor(context(1_000)).with_hooks(Arc::new(recorder.clone()));
    let mut agent = AgentContext::of_messages(turns("a", 20, 60).messages);
    let outcome = block_on(compactor.compact_context(&mut agent)).unwrap();
    assert!(outcome.fits && outcome.tokens_after <= 1_000);
    let Some(CompactionEvent::Ended {
        loops_compacted, ..
    }) = recorder.events().pop()
    else {
        panic!("no end");
    };
    assert_eq!(loops_compacted, 0);
}

#[test]
fn a_failure_is_told_and_changes_nothing() {
    let recorder = EventRecorder::default();
    let compactor = compactor(context(10)).with_hooks(Arc::new(recorder.clone()));
    let mut agent = AgentContext::of_messages(turns("a", 20, 60).messages);
    let before = agent.messages.clone();
    let error = block_on(compactor.compact_context(&mut agent)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BudgetTooSmall);
    assert_eq!(agent.messages, before);
    assert!(matches!(
        recorder.events().last(),
        Some(CompactionEvent::Failed { .. })
    ));
}

/// Refuses everything.
#[derive(Debug)]
struct Never;

#[async_trait]
impl CompactionHooks for Never {
    async fn before(&self, context: &BeforeCompaction) -> CompactionDecision {
        assert!(context.messages > 0 && context.tokens > 0);
        CompactionDecision::Refuse
    }
}

#[test]
fn a_hook_refuses() {
    let recorder = EventRecorder::default();
    let compactor = compactor(context(1_000))
        .with_hooks(Arc::new(recorder.clone()))
        .with_hooks(Arc::new(Never));
    let mut agent = agent();
    let before = agent.messages.clone();
    let outcome = block_on(compactor.before_request(&mut agent, [])).unwrap();
    assert_eq!((outcome.stop, outcome.fits), (StopReason::Cancelled, false));
    assert_eq!(agent.messages, before);
    let reason = StopReason::Cancelled;
    assert_eq!(recorder.events(), [CompactionEvent::Skipped { reason }]);
}

/// Waits for the other hooks.
#[derive(Debug)]
struct Meets(Arc<Barrier>, Arc<Mutex<u32>>);

#[async_trait]
impl CompactionHooks for Meets {
    async fn before(&self, _: &BeforeCompaction) -> CompactionDecision {
        self.0.wait().await;
        CompactionDecision::Proceed
    }

    async fn after(&self, _: &CompactionOutcome) {
        self.0.wait().await;
        *self.1.lock().unwrap() += 1;
    }
}

#[tokio::test]
async fn hooks_run_at_the_same_time() {
    let (barrier, ended) = (Arc::new(Barrier::new(3)), Arc::new(Mutex::new(0)));
    let mut compactor = compactor(context(100_000));
    for _ in 0..3 {
        compactor = compactor.with_hooks(Arc::new(Meets(barrier.clone(), ended.clone())));
    }
    let mut agent = agent();
    let run = compactor.compact_context(&mut agent);
    tokio::time::timeout(Duration::from_secs(10), run)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*ended.lock().unwrap(), 3);
}

#[test]
fn configurations_have_names() {
    let short = config().with_kept_turns(1, 2);
    let named = NamedConfigs::<Msg>::default().with("short", short);
    assert_eq!(
        named.names().collect::<Vec<_>>(),
        ["default", "phi-core", "short"]
    );
    assert_eq!(named.get("short").unwrap().keep_recent_turns, 2);
    assert_eq!(named.get("default").unwrap().keep_recent_turns, 10);
    let error = named.get("long").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownConfig);
    assert!(
        error
            .to_string()
            .contains("use default or phi-core or short"),
        "{error}"
    );
    let read: NamedConfigs<Msg> =
        serde_json::from_str(r#"{"mine": {"keep_first_turns": 4}}"#).unwrap();
    let mine = read.get("mine").unwrap();
    assert_eq!((mine.keep_first_turns, mine.keep_recent_turns), (4, 10));
}
