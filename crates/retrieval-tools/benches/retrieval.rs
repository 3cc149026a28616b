//! `retrieval-tools/{grep,recall,describe,expand}/…`: the tools over the store in memory. Run with
//! `cargo bench -p retrieval-tools`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memory_model::{
    Accounting, Child, ConversationId, Message, Recipe, RenderingId, Seq, SeqRange, SourceHasher,
    Span, SpanBody, Summary, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, InMemoryStore, LogRead, NewConversation, NewEntry, Publish, Published, Store,
};
use retrieval_tools::{ExpandArgs, GrepArgs, RecallArgs, Retrieval};
use token_estimate::{HeuristicEstimator, TokenEstimator};
use tokio::runtime::Builder;

/// Number of messages in the conversation. The last one is long.
const MESSAGES: u32 = 5_000;
/// Length of the long message, in bytes.
const LONG: usize = 400_000;

#[derive(Debug)]
struct Counts;

impl Accounting for Counts {
    fn rendering(&self) -> RenderingId {
        RenderingId::new("text@1")
    }

    fn estimator(&self) -> &dyn TokenEstimator {
        &HeuristicEstimator::Bytes4
    }

    fn summary(&self, summary: &Summary) -> u64 {
        HeuristicEstimator::Bytes4.text(summary.text())
    }
}

async fn conversation(store: &InMemoryStore) -> ConversationId {
    let new = NewConversation::root("bench", HeuristicEstimator::Bytes4.id(), Timestamp(0));
    let id = store.open(&new).await.unwrap().id;
    let said = (1..MESSAGES).map(|n| {
        let text = format!("message {n}: the module was renamed and its tests were run. ");
        Message::user(text.repeat(8))
    });
    let messages: Vec<Message> = said
        .chain([Message::user(
            "a long result, line after line. ".repeat(LONG / 32),
        )])
        .collect();
    for messages in messages.chunks(1_000) {
        let entries = messages.iter().map(|message| NewEntry {
            tokens: HeuristicEstimator::Bytes4.message(message),
            message: message.clone(),
            clocked: false,
        });
        let append = Append {
            at: AppendAt::Any,
            estimator: HeuristicEstimator::Bytes4.id(),
            entries: entries.collect(),
            now: Timestamp(1),
        };
        store.append(id, &append).await.unwrap();
    }
    id
}

/// Publishes a leaf summary of the first hundred messages.
async fn leaf(store: &InMemoryStore, id: ConversationId) -> Summary {
    let range = SeqRange::new(Seq(1), Seq(100)).unwrap();
    let mut source = SourceHasher::new();
    let page = store.read(id, &LogRead::new(range)).await.unwrap();
    for entry in &page.items {
        source.message(entry.hash);
    }
    let source_hash = source.finish();
    let (recipe, text) = (Recipe::new("bench@1"), "Modules were renamed. ".repeat(200));
    let tokens = HeuristicEstimator::Bytes4.text(&text);
    let sources = vec![Child::Messages { range }];
    let summary = Summary {
        tokens,
        rendering: RenderingId::new("text@1"),
        source_tokens: page.items.iter().map(|entry| entry.tokens).sum(),
        ..Summary::new(range, 0, sources, source_hash, recipe, text)
    };
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: 0,
    };
    let publish = Publish {
        view: ViewName::new("dag"),
        at: range,
        expect: vec![Span::closed(range, SpanBody::Raw, 0)],
        spans: vec![Span::closed(range, body, summary.tokens)],
        summaries: vec![summary.clone()],
        fence: None,
        erasures: 0,
        now: Timestamp(2),
    };
    let published = store.publish(id, &publish).await.unwrap();
    assert!(matches!(published, Published::Done(_)), "{published:?}");
    summary
}

async fn page_by_page(tools: &Retrieval) -> usize {
    let mut asked = ExpandArgs::new(format!("message:{MESSAGES}"));
    let mut pages = 1;
    loop {
        let answer = tools.expand(asked.clone()).await.unwrap();
        assert!(answer.tokens <= 4_000);
        let Some(cursor) = answer.cursor else {
            return pages;
        };
        asked.cursor = Some(cursor);
        pages += 1;
    }
}

fn retrieval(c: &mut Criterion) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let store = Arc::new(InMemoryStore::new());
    let (id, summary) = runtime.block_on(async {
        let id = conversation(&store).await;
        (id, leaf(&store, id).await)
    });
    let tools = Retrieval::new(store, id, Arc::new(Counts));
    let mut group = c.benchmark_group("retrieval-tools");
    group.sample_size(20);
    group.bench_function("grep/5k/rare", |b| {
        let asked = GrepArgs::new("message 4321:");
        b.iter(|| {
            let answer = runtime.block_on(tools.grep(asked.clone())).unwrap();
            assert!(answer.hits.len() == 1 && answer.complete);
            black_box(answer)
        });
    });
    group.bench_function("grep/5k/common", |b| {
        let asked = GrepArgs::new("renamed");
        b.iter(|| {
            let answer = runtime.block_on(tools.grep(asked.clone())).unwrap();
            assert!(answer.hits.len() == 20 && !answer.complete);
            black_box(answer)
        });
    });
    group.bench_function("recall/5k", |b| {
        let asked = RecallArgs::query("when was module 4321 renamed?");
        b.iter(|| {
            let answer = runtime.block_on(tools.recall(asked.clone())).unwrap();
            assert_eq!(answer.passages[0].seq, Seq(4321));
            black_box(answer)
        });
    });
    group.bench_function("describe", |b| {
        b.iter(|| {
            let answer = runtime.block_on(tools.describe(&summary.id)).unwrap();
            assert_eq!(answer.content, summary.text());
            black_box(answer.to_text())
        });
    });
    group.bench_function("expand/leaf", |b| {
        let asked = ExpandArgs::new(summary.id.as_str());
        b.iter(|| {
            let answer = runtime.block_on(tools.expand(asked.clone())).unwrap();
            assert!(answer.children.len() > 20 && answer.tokens <= 4_000);
            black_box(answer.to_text())
        });
    });
    group.throughput(Throughput::Bytes(LONG as u64));
    group.bench_function("expand/page_by_page", |b| {
        b.iter(|| {
            let pages = runtime.block_on(page_by_page(&tools));
            assert_eq!(pages, LONG / 4 / 4_000);
        });
    });
    group.finish();
}

criterion_group!(benches, retrieval);
criterion_main!(benches);
