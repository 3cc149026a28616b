//! One conversation, compacted under two presets.

use std::fmt::Write as _;

use compaction_runner::Outcome;
use dag_compactor::DagPolicy;
use memory_model::{Child, ConversationId, SpanBody, SummaryId};
use memory_store::{InMemoryStore, Store};
use summarize_escalation::ExtractiveSummarizer;

use crate::world::{Lab, append, chat, open, small, spans, whole};

async fn tree(store: &dyn Store, id: ConversationId) -> String {
    let mut out = String::new();
    for span in spans(store, id).await {
        match &span.body {
            SpanBody::Summary { id: summary, .. } => node(store, id, summary, 0, &mut out).await,
            _ => writeln!(out, "raw {} {} tokens", span.range, span.tokens).unwrap(),
        }
    }
    out
}

async fn node(
    store: &dyn Store,
    id: ConversationId,
    summary: &SummaryId,
    level: usize,
    out: &mut String,
) {
    let found = store.summaries(id, std::slice::from_ref(summary)).await;
    let found = found.unwrap().remove(0).unwrap();
    let indent = "  ".repeat(level);
    writeln!(
        out,
        "{indent}{} {} {}: {} of {} tokens, {}",
        found.kind(),
        found.id,
        found.range,
        found.tokens,
        found.source_tokens,
        found.tier
    )
    .unwrap();
    for child in &found.children {
        match child {
            Child::Messages { range } => writeln!(out, "{indent}  messages {range}").unwrap(),
            Child::Summary { id: child, .. } => {
                Box::pin(node(store, id, child, level + 1, out)).await;
            }
        }
    }
}

async fn compacted(lab: Lab) -> String {
    let store = InMemoryStore::new();
    let id = open(&store, "chat").await;
    let mut out = String::new();
    for (from, count) in [(1, 48), (49, 36)] {
        append(&store, id, chat(from, count)).await;
        let outcome: Outcome = lab.full(&store, id, &ExtractiveSummarizer::new()).await;
        writeln!(out, "{outcome:#?}\n{}", tree(&store, id).await).unwrap();
    }
    whole(&store, id, 0).await;
    out
}

#[tokio::test]
async fn the_default_policy() {
    insta::assert_snapshot!(compacted(Lab::new(DagPolicy::default())).await);
}

#[tokio::test]
async fn small_leaves() {
    insta::assert_snapshot!(compacted(Lab::new(small())).await);
}
