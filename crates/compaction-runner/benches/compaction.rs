//! `compaction-runner/{leaf_pass,full_sweep}/…`: one pending range of messages on a compacted conversation, and a whole
//! conversation. Run with `cargo bench -p compaction-runner`.
#![allow(clippy::unwrap_used, missing_docs)]

use compaction_plan::{Mode, Planner as _, StopReason};
use compaction_runner::{Compaction, Outcome};
use context_assembler::ContextAccounting;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use dag_compactor::DagPlanner;
use memory_model::{
    Accounting, ConversationId, Message, Seq, SeqRange, Span, SpanBody, StepClock, Timestamp,
};
use memory_store::{
    Append, AppendAt, InMemoryStore, NewConversation, NewEntry, Publish, Published, Store,
};
use store_sqlite::SqliteOptions;
use summarize_escalation::Ladder;
use summarize_escalation::testing::Scripted;
use token_estimate::default_estimator;
use tokio::runtime::Runtime;

async fn append(store: &dyn Store, id: ConversationId, messages: u32) {
    let accounting = ContextAccounting::new(default_estimator());
    for from in (0..messages).step_by(1_000) {
        let count = (messages - from).min(1_000);
        let entries = (from..from + count)
            .map(|n| {
                let message = Message::user(format!("message {n} of about 650 bytes ").repeat(22));
                let tokens = accounting.message(&message);
                NewEntry {
                    message,
                    tokens,
                    clocked: false,
                }
            })
            .collect();
        let append = Append {
            at: AppendAt::Any,
            estimator: accounting.estimator_id(),
            entries,
            now: Timestamp(0),
        };
        store.append(id, &append).await.unwrap();
    }
}

async fn opened(store: &dyn Store, messages: u32) -> ConversationId {
    let new = NewConversation::root("bench", default_estimator().id(), Timestamp(0));
    let id = store.open(&new).await.unwrap().id;
    append(store, id, messages).await;
    id
}

async fn compact(store: &dyn Store, id: ConversationId, mode: Mode) -> Outcome {
    let (planner, ladder) = (DagPlanner::default(), Ladder::default());
    let accounting = ContextAccounting::new(default_estimator());
    let (model, clock) = (Scripted::head_cut(), StepClock::new(Timestamp(0), 1));
    let compaction = Compaction::new(store, id, &planner, &model, &ladder, &accounting, &clock);
    compaction.run(mode).await.unwrap()
}

/// Appends messages for one more summary.
async fn pend(store: &dyn Store, id: ConversationId) {
    append(store, id, 120).await;
}

fn leaf_pass(c: &mut Criterion, runtime: &Runtime, name: &str, store: &dyn Store, size: u32) {
    let id = runtime.block_on(opened(store, size));
    let done = runtime.block_on(compact(store, id, Mode::Full));
    assert_eq!(done.stop_reason, StopReason::NothingEligible);
    let mut group = c.benchmark_group("compaction-runner/leaf_pass");
    group.sample_size(20);
    let size = format!("{}k", size / 1_000);
    group.bench_function(BenchmarkId::new(size, name), |b| {
        b.iter_batched(
            || runtime.block_on(pend(store, id)),
            |()| {
                let outcome = runtime.block_on(compact(store, id, Mode::Incremental));
                assert!(
                    (1..=2).contains(&outcome.published.get("leaf")),
                    "{outcome:?}"
                );
                assert!(outcome.after.tokens < outcome.before.tokens);
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// Makes the whole view raw again. Existing summaries would be found again, so measurements of calls use a new store
/// instead.
async fn undo(store: &dyn Store, id: ConversationId) {
    let view = DagPlanner::default().view();
    let snapshot = store.snapshot(id, &view).await.unwrap();
    let at = SeqRange::new(Seq::FIRST, snapshot.head).unwrap();
    let page = store
        .spans(&snapshot, at, memory_store::Order::OldestFirst, 100_000)
        .await
        .unwrap();
    let mut expect = page.items;
    expect.last_mut().unwrap().range.last = Some(at.last);
    let publish = Publish {
        view,
        at,
        expect,
        spans: vec![Span::closed(at, SpanBody::Raw, 0)],
        summaries: Vec::new(),
        fence: None,
        erasures: 0,
        now: Timestamp(0),
    };
    let done = store.publish(id, &publish).await.unwrap();
    assert!(matches!(done, Published::Done(_)));
}

fn bench(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    for size in [1_000, 10_000] {
        leaf_pass(c, &runtime, "memory", &InMemoryStore::new(), size);
        let store = runtime.block_on(SqliteOptions::new().in_memory()).unwrap();
        leaf_pass(c, &runtime, "sqlite", &store, size);
    }
    let mut group = c.benchmark_group("compaction-runner/full_sweep");
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("10k", "memory"), |b| {
        b.iter_batched(
            || {
                let store = InMemoryStore::new();
                let id = runtime.block_on(opened(&store, 10_000));
                (store, id)
            },
            |(store, id)| {
                let outcome = runtime.block_on(compact(&store, id, Mode::Full));
                assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
                assert!(outcome.after.tokens * 10 < outcome.before.tokens);
                store
            },
            BatchSize::PerIteration,
        );
    });
    let store = runtime.block_on(SqliteOptions::new().in_memory()).unwrap();
    let id = runtime.block_on(opened(&store, 10_000));
    let first = runtime.block_on(compact(&store, id, Mode::Full));
    group.bench_function(BenchmarkId::new("10k", "sqlite, found again"), |b| {
        b.iter_batched(
            || runtime.block_on(undo(&store, id)),
            |()| {
                let outcome = runtime.block_on(compact(&store, id, Mode::Full));
                assert_eq!((outcome.calls, &outcome.summaries), (0, &first.summaries));
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
