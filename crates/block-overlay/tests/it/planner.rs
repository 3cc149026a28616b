//! Blocks as a view of a log, carried out by the runner over a store in memory.

use std::sync::Arc;

use block_overlay::planner::{BLOCKS, BlockPlanner, BlockPolicy, Digest};
use block_overlay::{CompactionScope, OneLineSummarizer};
use compaction_plan::{Label, LabelCounts, Mode, Planner, Room, StopReason};
use compaction_runner::{Compaction, Outcome};
use context_assembler::ContextAccounting;
use memory_model::{
    Accounting, ConversationId, Message, RawJson, Seq, SeqRange, Span, SpanBody, StepClock,
    Timestamp,
};
use memory_store::{
    Append, AppendAt, InMemoryStore, NewConversation, NewEntry, Order, Snapshot, Store,
    read_entries, verify,
};
use proptest::prelude::{ProptestConfig, Strategy, prop, proptest};
use summarize_escalation::testing::Scripted;
use summarize_escalation::{Ladder, Summarizer};
use token_estimate::default_estimator;
use turn_map::{TrimPolicy, atoms};

use crate::world::output;

pub(crate) struct Lab {
    pub(crate) store: InMemoryStore,
    pub(crate) id: ConversationId,
    pub(crate) planner: BlockPlanner,
    accounting: ContextAccounting,
    ladder: Ladder,
    clock: StepClock,
}

impl Lab {
    pub(crate) async fn new(policy: BlockPolicy) -> Self {
        let accounting = ContextAccounting::new(default_estimator());
        let store = InMemoryStore::new();
        let new = NewConversation::root("chat", accounting.estimator_id(), Timestamp(1));
        let id = store.open(&new).await.unwrap().id;
        let ladder = Ladder {
            gate: None,
            ..Ladder::default()
        };
        Self {
            store,
            id,
            planner: BlockPlanner::new(policy),
            accounting,
            ladder,
            clock: StepClock::new(Timestamp(1_000), 1),
        }
    }

    pub(crate) async fn append(&self, messages: Vec<Message>) {
        let entry = |message: Message| NewEntry {
            tokens: self.accounting.message(&message),
            message,
            clocked: false,
        };
        let append = Append {
            at: AppendAt::Any,
            estimator: self.accounting.estimator_id(),
            entries: messages.into_iter().map(entry).collect(),
            now: Timestamp(2),
        };
        self.store.append(self.id, &append).await.unwrap();
    }

    pub(crate) async fn run(&self, summarizer: &dyn Summarizer, room: Option<u64>) -> Outcome {
        let (ladder, accounting, clock) = (&self.ladder, &self.accounting, &self.clock);
        let (store, planner) = (&self.store, &self.planner);
        let mut compaction = Compaction::new(
            store, self.id, planner, summarizer, ladder, accounting, clock,
        );
        compaction.room = room.map(|tokens| Room {
            tokens,
            whole_tail: false,
        });
        compaction.run(Mode::Incremental).await.unwrap()
    }

    pub(crate) async fn block(&self) -> Outcome {
        let outcome = self.run(&OneLineSummarizer, None).await;
        self.sound().await;
        outcome
    }

    /// Asserts that the store is consistent, and that no span separates a tool call from its results.
    pub(crate) async fn sound(&self) {
        let accounting: Arc<dyn Accounting> = Arc::new(self.accounting.clone());
        let rules = |id: &token_estimate::EstimatorId| {
            (*id == accounting.estimator_id()).then(|| Arc::clone(&accounting))
        };
        let report = verify(&self.store, self.id, &rules).await.unwrap();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        let (_, all) = self.snapshot().await;
        let log = read_entries(&self.store, self.id, all).await.unwrap();
        let atoms = atoms(&log);
        for span in self.spans().await {
            let position = span.range.first.0 as usize - 1;
            assert_eq!(
                atoms.cut_before(position).position(),
                position,
                "{}",
                span.range
            );
        }
    }

    async fn snapshot(&self) -> (Snapshot, SeqRange) {
        let view = self.planner.view();
        let snapshot = self.store.snapshot(self.id, &view).await.unwrap();
        let all = SeqRange::new(Seq::FIRST, snapshot.head).unwrap();
        (snapshot, all)
    }

    pub(crate) async fn spans(&self) -> Vec<Span> {
        let (snapshot, all) = self.snapshot().await;
        let page = self
            .store
            .spans(&snapshot, all, Order::OldestFirst, 100_000);
        page.await.unwrap().items
    }

    async fn shown(&self) -> String {
        let word = |span: &Span| {
            let word = match span.body {
                SpanBody::Raw => "raw",
                SpanBody::Summary { .. } => "summary",
                SpanBody::Trimmed(_) => "trimmed",
                SpanBody::Omitted => "omitted",
            };
            format!("{}:{word}", span.range.first)
        };
        let spans = self.spans().await;
        spans.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    async fn summaries(&self) -> Vec<memory_model::Summary> {
        self.store
            .summary_log(self.id, None, 1_000)
            .await
            .unwrap()
            .items
    }
}

/// Returns a loop with a prompt and `turns` turns of four messages, each with a tool call and a text.
fn agent_loop(name: &str, turns: usize) -> Vec<Message> {
    let mut messages = vec![Message::user(format!(
        "{name}: please do it. {}",
        "Soon. ".repeat(9)
    ))];
    for turn in 0..turns {
        let id = format!("{name}{turn}");
        let arguments = RawJson::parse("{}").unwrap();
        messages.push(Message::tool_call(&id, "read", arguments).with_response(&id));
        messages.push(Message::tool_result(&id, output(80)));
    }
    messages.push(Message::assistant(format!(
        "{name}: it is done. {}",
        "Well. ".repeat(9)
    )));
    messages
}

fn policy() -> BlockPolicy {
    BlockPolicy {
        keep_first_turns: 1,
        keep_recent_turns: 3,
        ..BlockPolicy::default()
    }
}

fn counts<const N: usize>(pairs: [(&'static str, u64); N]) -> LabelCounts {
    let mut counts = LabelCounts::default();
    for (label, count) in pairs {
        counts.add(&Label::from_static(label), count);
    }
    counts
}

#[tokio::test]
async fn the_newest_loop_has_a_raw_head_a_summary_and_a_trimmed_end() {
    let lab = Lab::new(policy()).await;
    lab.append(agent_loop("a", 8)).await;
    let outcome = lab.block().await;
    // Turns: the prompt and call 0 | calls 1 to 5 | calls 6 and 7, and the answer.
    assert_eq!(
        lab.shown().await,
        "1:raw 4:summary 14:trimmed 16:trimmed 18:raw"
    );
    assert_eq!(outcome.published, counts([("summarize", 1), ("trim", 2)]));
    let summary = &lab.summaries().await[0];
    assert_eq!(
        summary.text(),
        "[Assistant used 1 tool(s)]\n".repeat(5).trim_end()
    );
    assert!(
        summary.recipe.as_str().contains("one-liners@1"),
        "{}",
        summary.recipe
    );
    // No job is left.
    let again = lab.block().await;
    assert_eq!(
        (again.published.total(), again.stop_reason),
        (0, StopReason::NothingEligible)
    );
}

#[tokio::test]
async fn the_lines_that_stay_of_an_output_are_a_setting() {
    let policy = BlockPolicy {
        tool_output_max_lines: 7,
        ..policy()
    };
    let lab = Lab::new(policy).await;
    lab.append(agent_loop("a", 8)).await;
    lab.block().await;
    let trim = TrimPolicy::ToolOutputLines { lines: 7 }.to_string();
    let spans = lab.spans().await;
    let trimmed = spans.iter().filter_map(|span| match &span.body {
        SpanBody::Trimmed(policy) => Some(policy.as_str()),
        _ => None,
    });
    assert_eq!(trimmed.collect::<Vec<_>>(), [trim.as_str(); 2]);
}

#[tokio::test]
async fn a_former_newest_loop_becomes_one_summary_and_what_is_older_is_omitted() {
    let scope = CompactionScope::FixedCount(2);
    let lab = Lab::new(BlockPolicy { scope, ..policy() }).await;
    let views = [
        "1:raw 4:summary 14:trimmed 16:trimmed 18:raw",
        "1:summary 19:raw 22:summary 32:trimmed 34:trimmed 36:raw",
        "1:summary 19:summary 37:raw 40:summary 50:trimmed 52:trimmed 54:raw",
        "1:omitted 19:summary 37:summary 55:raw 58:summary 68:trimmed 70:trimmed 72:raw",
        "1:omitted 37:summary 55:summary 73:raw 76:summary 86:trimmed 88:trimmed 90:raw",
    ];
    for (name, view) in ["a", "b", "c", "d", "e"].into_iter().zip(views) {
        lab.append(agent_loop(name, 8)).await;
        lab.block().await;
        assert_eq!(lab.shown().await, view);
    }
}

#[tokio::test]
async fn blocks_are_made_again_as_a_loop_grows() {
    let lab = Lab::new(policy()).await;
    let all = agent_loop("a", 40);
    for (round, some) in all.chunks(10).enumerate() {
        lab.append(some.to_vec()).await;
        let outcome = lab.block().await;
        assert!(
            outcome.published.get("unfold") == 0,
            "round {round}: {:?}",
            outcome.published
        );
    }
    let spans = lab.spans().await;
    let summaries = spans.iter().filter(|span| span.body.summary().is_some());
    assert_eq!(summaries.count(), 1);
    assert!(spans[1].body.summary().is_some());
    let trimmed = spans
        .iter()
        .filter(|span| matches!(span.body, SpanBody::Trimmed(_)));
    assert_eq!(trimmed.count(), 2);
}

#[tokio::test]
async fn lines_beyond_the_tokens_for_a_summary_are_omitted() {
    let lab = Lab::new(BlockPolicy {
        max_summary_tokens: 30,
        ..policy()
    })
    .await;
    lab.append(agent_loop("a", 20)).await;
    lab.block().await;
    let spans = lab.spans().await;
    let bodies: Vec<_> = spans.iter().map(|span| &span.body).collect();
    assert!(
        bodies[1].summary().is_some() && *bodies[2] == SpanBody::Omitted,
        "{bodies:?}"
    );
    let text = lab.summaries().await[0].text().to_owned();
    assert!(!text.contains("left out"), "the omission is a span: {text}");
    let covered = spans[1].closed_range().unwrap().len() as usize;
    assert_eq!(text.lines().count() * 2, covered);
}

#[tokio::test]
async fn a_summarizer_digests_the_whole_middle_and_may_roll() {
    for digest in [Digest::Summarizer, Digest::Rolling] {
        let lab = Lab::new(BlockPolicy { digest, ..policy() }).await;
        let all = agent_loop("a", 30);
        let model = Scripted::head_cut();
        lab.append(all[..41].to_vec()).await;
        lab.run(&model, None).await;
        lab.append(all[41..].to_vec()).await;
        lab.run(&model, None).await;
        lab.append(agent_loop("b", 3)).await;
        lab.run(&model, None).await;
        lab.sound().await;
        let summaries = lab.summaries().await;
        assert_eq!(summaries.len(), 3);
        let rolls = |summary: &memory_model::Summary| summary.source_summaries().count();
        let rolled: Vec<usize> = summaries.iter().map(rolls).collect();
        let again = usize::from(digest == Digest::Rolling);
        assert_eq!(rolled, [0, again, again]);
        assert!(
            summaries
                .iter()
                .all(|summary| summary.depth == 0 && summary.children.len() == 1)
        );
        let shown = lab.shown().await;
        assert!(shown.starts_with("1:summary 63:raw"), "{shown}");
    }
}

#[tokio::test]
async fn older_loops_go_first_where_the_room_is_short() {
    let lab = Lab::new(policy()).await;
    for name in ["a", "b", "c"] {
        lab.append(agent_loop(name, 8)).await;
    }
    lab.run(&OneLineSummarizer, Some(900)).await;
    lab.sound().await;
    let shown = lab.shown().await;
    assert!(shown.starts_with("1:omitted 37:raw"), "{shown}");
}

#[tokio::test]
async fn another_policy_shows_messages_again_before_it_divides_them_anew() {
    let mut lab = Lab::new(policy()).await;
    lab.append(agent_loop("a", 20)).await;
    lab.block().await;
    lab.planner = BlockPlanner::new(BlockPolicy {
        keep_first_turns: 4,
        ..policy()
    });
    assert_eq!(lab.block().await.published.get("unfold"), 1);
    lab.block().await;
    let shown = lab.shown().await;
    assert!(shown.starts_with("1:raw 10:summary"), "{shown}");
    assert_eq!(lab.block().await.published.total(), 0);
}

#[tokio::test]
async fn loops_that_messages_name_come_before_prompts() {
    let mut messages = Vec::new();
    for (name, count) in [("one", 12), ("two", 12)] {
        for turn in 0..count {
            let text = format!("{name} {turn} {}", "word ".repeat(200));
            messages.push(Message::user(&text).with_turn(name, turn));
            messages.push(Message::assistant(text).with_turn(name, turn));
        }
    }
    let lab = Lab::new(policy()).await;
    lab.append(messages.clone()).await;
    lab.block().await;
    assert_eq!(lab.shown().await, "1:summary 25:raw 27:summary 43:raw");
    // Without names of loops, every question begins a loop.
    for message in &mut messages {
        message.turn = None;
    }
    let prompts = Lab::new(policy()).await;
    prompts.append(messages).await;
    prompts.block().await;
    let shown = prompts.shown().await;
    assert!(
        shown.starts_with("1:omitted 41:summary 43:summary"),
        "{shown}"
    );
}

#[tokio::test]
async fn short_loops_stay_as_they_are() {
    let lab = Lab::new(policy()).await;
    for n in 0..4 {
        lab.append(vec![
            Message::user(format!("{n}?")),
            Message::assistant("Yes."),
        ])
        .await;
    }
    assert_eq!(lab.block().await.published.total(), 0);
    assert_eq!(lab.shown().await, "1:raw");
}

#[test]
fn a_planner_says_what_it_is() {
    let planner = BlockPlanner::default();
    assert_eq!(
        (planner.view().as_str(), planner.passes()),
        ("blocks", &[BLOCKS][..])
    );
    assert!(
        planner
            .fingerprint()
            .starts_with("blocks@1 {\"keep_first_turns\":2,")
    );
    let read: BlockPolicy = serde_json::from_str("{}").unwrap();
    assert_eq!(read, BlockPolicy::default());
    assert!(serde_json::from_str::<BlockPolicy>(r#"{"keep_last": 3}"#).is_err());
}

/// Logs with tool calls, user messages during calls, open calls, names of loops and prompts at random positions.
fn logs() -> impl Strategy<Value = Vec<Message>> {
    let piece = (0..7_usize, 0..40_usize, prop::bool::weighted(0.3));
    prop::collection::vec(piece, 1..80).prop_map(|pieces| {
        let mut log = Vec::new();
        let mut loop_number = 0;
        for (index, (kind, size, named)) in pieces.into_iter().enumerate() {
            let id = format!("c{index}");
            let call = || Message::tool_call(&id, "read", RawJson::parse("{}").unwrap());
            let result = Message::tool_result(&id, output(size * 4));
            let asks = Message::user(format!("{index} {}", "ask ".repeat(size)));
            let tells = Message::assistant(format!("{index} {}", "tell ".repeat(size * 9)));
            loop_number += usize::from(kind == 0);
            let some = match kind {
                0 => vec![asks],
                1 | 2 => vec![call(), result],
                3 => vec![call(), asks, result],
                4 => vec![call()],
                _ => vec![tells],
            };
            log.extend(some.into_iter().map(|message| match named {
                true => message.with_turn(format!("l{loop_number}"), index as u32),
                false => message,
            }));
        }
        log
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_log_is_sound_as_it_grows(
        log in logs(), first in 0..4_usize, recent in 0..6_usize, scope in 0..4_usize,
        tokens in 0..400_u64, step in 1..12_usize, digest in 0..3_usize,
    ) {
        let digest = [Digest::OneLiners, Digest::Summarizer, Digest::Rolling][digest];
        let policy = BlockPolicy {
            keep_first_turns: first,
            keep_recent_turns: recent,
            scope: CompactionScope::FixedCount(scope),
            max_summary_tokens: tokens,
            digest,
            ..BlockPolicy::default()
        };
        crate::world::block_on(async {
            let lab = Lab::new(policy).await;
            for some in log.chunks(step) {
                lab.append(some.to_vec()).await;
                match digest {
                    Digest::OneLiners => lab.run(&OneLineSummarizer, None).await,
                    _ => lab.run(&Scripted::head_cut(), None).await,
                };
                lab.sound().await;
            }
        });
    }
}
