//! Copies of sessions, and the cost of a compaction that they tell beforehand.

use std::sync::Arc;

use agent_memory::models::{
    ChatModel, ChatPrompt, Completion, Failure, GuardPolicy, Guards, ModelUsage, Spent,
};
use agent_memory::summaries::{Ladder, LlmSummarizer, ModelWindow};
use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Builder, DagPolicy, Mode, Session, Strategy,
    compaction::{FreshTail, RedoPolicy},
};
use memory_model::Seq;
use summarize_escalation::FailureKind;
use summarize_escalation::testing::FakeTimer;

use crate::redo::{provisional, reached};
use crate::support::{both, dump, talk};

fn small() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(4),
        leaf_min_messages: 4,
        max_source_tokens: Some(900),
        condensed_min: 2,
        condensed_max: Some(3),
        ..DagPolicy::default()
    }
}

/// Returns a builder whose models are not asked: their calls are only counted.
fn without_calls(builder: Builder) -> Builder {
    let guards = Guards::new(GuardPolicy::default(), Arc::new(FakeTimer::new())).without_calls();
    builder.guards(guards).ladder(any_text())
}

fn any_text() -> Ladder {
    Ladder {
        gate: None,
        ..Ladder::default()
    }
}

#[tokio::test]
async fn a_copy_has_the_log_and_the_views_and_changes_nothing() {
    for place in both(|| memory().dag(small())).await {
        let parent = place.talked(60).await;
        parent.compact(Mode::Full).await.unwrap();
        let fork = parent.fork(Seq(40), "s/fork").await.unwrap();
        talk(&fork, 30).await;
        fork.compact(Mode::Incremental).await.unwrap();
        let handoff = fork.use_strategy(Strategy::Handoff).await.unwrap();
        for session in [&parent, &fork, &handoff] {
            let before = dump(&place.memory).await;
            let copy = session.copy_to_ram(memory().dag(small())).await.unwrap();
            assert_eq!(copy.key(), session.key());
            assert_eq!(copy.strategy(), session.strategy());
            let (entries, copied) = (session.entries().await, copy.entries().await);
            assert_eq!(entries.unwrap(), copied.unwrap());
            let (view, copied) = (session.current_view().await, copy.current_view().await);
            let (view, copied) = (view.unwrap(), copied.unwrap());
            assert_eq!(view.measure(), copied.measure());
            assert_eq!(view.spans().await.unwrap(), copied.spans().await.unwrap());
            assert_eq!(reached(session).await, reached(&copy).await);
            let (plan, copied) = (session.plan().await.unwrap(), copy.plan().await.unwrap());
            assert_eq!((plan.tokens, plan.jobs), (copied.tokens, copied.jobs));
            // The copy can grow and be compacted.
            talk(&copy, 40).await;
            let outcome = copy.compact(Mode::Full).await.unwrap();
            // A handoff keeps as many messages as this log has.
            let compacts = session.strategy() == Some(Strategy::Dag);
            assert_eq!(outcome.published.total() > 0, compacts, "{}", place.name);
            let report = copy.verify().await.unwrap();
            assert!(report.is_ok(), "{report:?}");
            assert_eq!(dump(&place.memory).await, before, "{}", place.name);
        }
    }
}

/// A model with summaries of about the length that the prompt asks for: it repeats the beginning of the material. The
/// first number is how many percent of that length it writes, the second how many bytes it counts as a token.
#[derive(Debug, Clone, Copy)]
struct Writes(u64, u64);

#[async_trait::async_trait]
impl ChatModel for Writes {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let asked = prompt.system.split("- About ").nth(1);
        let asked = asked.or(prompt.user.split("- About ").nth(1)).unwrap();
        let tokens: u64 = asked.split_whitespace().next().unwrap().parse().unwrap();
        let (_, material) = prompt.user.split_once('>').unwrap();
        let most = usize::try_from(tokens * self.0 / 100 * 4).unwrap();
        let text: String = material.chars().take(most).collect();
        let count = |text: &str| text.len() as u64 / self.1;
        let input = count(&prompt.system) + count(&prompt.user);
        Ok(Completion {
            usage: Some(ModelUsage::new(input, count(&text))),
            ..Completion::new(text)
        })
    }
}

/// Returns whether a number is at most `percent` of another away from it.
fn near(estimate: u64, real: u64, percent: u64) -> bool {
    estimate.abs_diff(real) * 100 <= real * percent
}

fn model(writes: Writes, window: Option<u64>) -> LlmSummarizer<Writes> {
    let model = LlmSummarizer::new("m", writes);
    match window {
        Some(tokens) => model.with_window(ModelWindow::tokens(tokens)),
        None => model,
    }
}

async fn spent(session: &Session) -> Spent {
    session.memory().spent_by_model()["m"]
}

#[tokio::test]
async fn without_calls_a_copy_tells_what_a_compaction_will_cost() {
    // A model that counts more tokens than the estimator has room for less in its window, which shows in its answers.
    for (window, percent, bytes) in [(None, 100, 3), (None, 60, 3), (Some(3_000), 100, 4)] {
        let writes = Writes(percent, bytes);
        let guarded = || {
            let guards = Guards::new(GuardPolicy::default(), Arc::new(FakeTimer::new()));
            let builder = memory().dag(small()).summarizer(model(writes, window));
            builder.guards(guards).ladder(any_text())
        };
        let session = guarded().open().await.unwrap().session("s").await.unwrap();
        for round in 1..=2 {
            talk(&session, 150).await;
            let builder = memory().dag(small()).summarizer(model(writes, window));
            let copy = session.copy_to_ram(without_calls(builder)).await.unwrap();
            copy.compact(Mode::Full).await.unwrap();
            let estimate = spent(&copy).await;
            let before = session.memory().spent();
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert!(outcome.model.is_ok(), "{:?}", outcome.model);
            let all = spent(&session).await;
            let calls = all.calls - before.calls;
            let input = all.usage.input - before.usage.input;
            let output = all.usage.output - before.usage.output;
            let told =
                format!("{window:?} {writes:?} {round}: {estimate:?} {calls} {input} {output}");
            assert!(calls > 5, "{told}");
            assert!(near(estimate.calls, calls, 15), "{told}");
            // The estimator counts about four bytes as a token.
            assert!(near(estimate.usage.input * 4 / bytes, input, 30), "{told}");
            // The estimate has answers of the length that is asked for.
            let written = estimate.usage.output * 4 / bytes * percent / 100;
            assert!(near(written, output, 40), "{told}");
        }
    }
}

#[tokio::test]
async fn the_cost_of_rewriting_is_told_for_what_is_left_to_rewrite() {
    let down = Scripted::new([Answer::Failure(FailureKind::Overloaded, None)]);
    let memory_with = |summarizer| memory().dag(small()).summarizer(summarizer);
    let failed = memory_with(Arc::new(down) as Arc<dyn agent_memory::Summarizer>);
    let session = failed.open().await.unwrap().session("s").await.unwrap();
    talk(&session, 150).await;
    session.compact(Mode::Full).await.unwrap();
    let left = provisional(&session).await as u64;
    assert!(left > 3);
    let builder = without_calls(memory_with(Arc::new(model(Writes(100, 4), None))));
    let copy = session.copy_to_ram(builder).await.unwrap();
    copy.redo(RedoPolicy::default()).await.unwrap();
    assert_eq!(spent(&copy).await.calls, left);
    // The session itself is as it was.
    assert_eq!(provisional(&session).await as u64, left);
}
