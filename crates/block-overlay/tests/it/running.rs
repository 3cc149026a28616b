//! The compaction of a running agent: trigger, hooks, events.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use block_overlay::{
    AgentContext, CompactionConfig, CompactionEvent, CompactionHooks, CompactionOutcome, Compactor,
    ContextConfig, Error,
};
use token_estimate::{ResponseStatus, TokenEstimatorExt as _, Usage, UsageTracker};

use crate::world::{COUNTER, NOW, block_on, chain, config, turns, user};

/// Hooks that record their calls, and refuse everything if asked to.
#[derive(Debug, Default)]
struct Recorder {
    refuses: bool,
    events: Mutex<Vec<CompactionEvent>>,
    before: Mutex<Vec<usize>>,
    after: Mutex<Vec<CompactionOutcome>>,
}

#[async_trait]
impl CompactionHooks for Recorder {
    async fn before_compaction_start(&self, context: &AgentContext) -> bool {
        tokio::task::yield_now().await;
        self.before.lock().unwrap().push(context.messages.len());
        !self.refuses
    }

    async fn after_compaction_end(&self, outcome: &CompactionOutcome) {
        self.after.lock().unwrap().push(outcome.clone());
    }

    fn event(&self, event: &CompactionEvent) {
        self.events.lock().unwrap().push(event.clone());
    }
}

impl Recorder {
    fn events(&self) -> Vec<CompactionEvent> {
        self.events.lock().unwrap().clone()
    }
}

fn agent() -> AgentContext {
    let session = chain(vec![turns("a", 20, 60), turns("b", 20, 60)]);
    AgentContext::of_session(session, "b").unwrap()
}

fn list() -> AgentContext {
    AgentContext {
        messages: turns("a", 20, 60).messages,
        ..AgentContext::default()
    }
}

fn compactor(window: u64) -> (Compactor, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let compactor = Compactor {
        config: ContextConfig {
            max_context_tokens: window,
            system_prompt_tokens: 0,
            compaction: config(),
        },
        hooks: vec![recorder.clone()],
    };
    (compactor, recorder)
}

#[test]
fn compaction_is_due_when_little_headroom_is_left() {
    // A window of 100,000 and a system prompt of 4,000.
    let by_default = CompactionConfig::default();
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
    let (compactor, _) = compactor(tokens * 100 / 85 + 50);
    let quiet = block_on(compactor.before_request(&mut agent)).unwrap();
    assert_eq!(quiet, None);
    let steering = user(&"Stop that, and look here. ".repeat(20));
    agent.push([steering.clone()]);
    let fired = block_on(compactor.before_request(&mut agent)).unwrap();
    let fired = fired.unwrap();
    assert!(fired.tokens_before > tokens && fired.tokens_after < tokens / 2);
    assert_eq!(agent.messages.last(), Some(&steering));
    let record = agent.session.as_ref().unwrap().get("b").unwrap();
    assert_eq!(record.messages.last(), Some(&steering));
    assert_eq!(record.compaction_block.as_ref().unwrap().created_at, NOW);
}

#[test]
fn usage_that_the_provider_reported_decides() {
    let mut agent = list();
    let last = agent.messages.len() as u64 - 1;
    let window = COUNTER.messages(&agent.messages) * 2;
    let (compactor, _) = compactor(window);
    let estimated = block_on(compactor.before_request(&mut agent)).unwrap();
    assert_eq!(estimated, None);
    let usage = Usage {
        input: window * 9 / 10,
        ..Usage::default()
    };
    assert!(agent.usage.observe(last, &usage, ResponseStatus::Completed));
    let reported = block_on(compactor.before_request(&mut agent)).unwrap();
    assert!(reported.is_some());
    assert_eq!(agent.usage, UsageTracker::new());
}

#[test]
fn later_messages_are_estimated_on_top_of_what_the_provider_reported() {
    let mut agent = list();
    let estimated = COUNTER.messages(&agent.messages);
    let (compactor, _) = compactor(estimated);
    // The estimate alone fills the window, and the provider counted half of it.
    let usage = Usage {
        input: estimated / 2,
        ..Usage::default()
    };
    let last = agent.messages.len() as u64 - 1;
    assert!(agent.usage.observe(last, &usage, ResponseStatus::Completed));
    let quiet = block_on(compactor.before_request(&mut agent)).unwrap();
    assert_eq!(quiet, None);
    let added = user(&"One more. ".repeat(estimated as usize / 5));
    let cost = COUNTER.messages(std::slice::from_ref(&added));
    assert!(cost < estimated && estimated / 2 + cost > estimated * 9 / 10);
    agent.push([added]);
    let fired = block_on(compactor.before_request(&mut agent)).unwrap();
    assert!(fired.is_some());
}

#[test]
fn a_compaction_tells_counts_and_tokens() {
    let (compactor, recorder) = compactor(100_000);
    let mut agent = agent();
    let messages = agent.messages.len();
    let tokens = COUNTER.messages(&agent.messages);
    let outcome = block_on(compactor.compact_context(&mut agent)).unwrap();
    let outcome = outcome.unwrap();
    let started = CompactionEvent::Started {
        loop_id: Some("b".to_owned()),
        messages,
        tokens,
    };
    let expected = CompactionOutcome {
        messages_before: messages,
        messages_after: agent.messages.len(),
        tokens_before: tokens,
        tokens_after: COUNTER.messages(&agent.messages),
        loops_compacted: vec!["b".to_owned(), "a".to_owned()],
    };
    assert_eq!(outcome, expected);
    let ended = CompactionEvent::Ended(outcome);
    assert_eq!(recorder.events(), [started, ended]);
    assert_eq!(*recorder.before.lock().unwrap(), [messages]);
    assert_eq!(*recorder.after.lock().unwrap(), [expected]);
}

#[test]
fn without_a_session_no_loop_is_compacted() {
    let (compactor, _) = compactor(1_000);
    let outcome = block_on(compactor.compact_context(&mut list())).unwrap();
    let outcome = outcome.unwrap();
    assert!(outcome.tokens_after <= 1_000);
    assert_eq!(outcome.loops_compacted, [""; 0]);
}

#[test]
fn a_failure_is_told_and_changes_nothing() {
    let (compactor, recorder) = compactor(10);
    let mut agent = list();
    let before = agent.messages.clone();
    let error = block_on(compactor.compact_context(&mut agent)).unwrap_err();
    assert!(matches!(error, Error::BudgetTooSmall { .. }));
    assert_eq!(agent.messages, before);
    assert!(matches!(
        recorder.events().last(),
        Some(CompactionEvent::Failed { .. })
    ));
}

#[test]
fn a_hook_refuses() {
    let (mut compactor, recorder) = compactor(1_000);
    compactor.hooks.push(Arc::new(Recorder {
        refuses: true,
        ..Recorder::default()
    }));
    let mut agent = agent();
    let before = agent.messages.clone();
    let outcome = block_on(compactor.before_request(&mut agent)).unwrap();
    assert_eq!((outcome, recorder.events()), (None, Vec::new()));
    assert_eq!(agent.messages, before);
}

/// Hooks without a method of their own.
#[derive(Debug)]
struct Nothing;

impl CompactionHooks for Nothing {}

#[test]
fn hooks_without_methods_let_a_compaction_happen() {
    let (mut compactor, recorder) = compactor(100_000);
    compactor.hooks.insert(0, Arc::new(Nothing));
    let mut agent = agent();
    let outcome = block_on(compactor.compact_context(&mut agent)).unwrap();
    assert!(outcome.is_some());
    assert_eq!(recorder.events().len(), 2);
}
