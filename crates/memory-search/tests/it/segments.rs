//! Segments: what is merged is what is built at once, and a search by them answers as a scan.

use std::sync::Arc;

use fastrand::Rng;
use memory_model::{ConversationId, Message, RawJson, Seq};
use memory_search::CallNames;
use memory_search::ranking::RankingPolicy;
use memory_search::segment::{SegmentBuilder, SegmentFormat, merge, records};
use memory_store::{InMemoryStore, LogRead, SegmentSearch, Store as _, extend_index};
use store_conformance::{
    SearchFixture, append, index_answers_as_a_scan, index_segments_are_few, range, root,
};

use crate::oracle::scripts::{SCRIPTS, texts};

#[tokio::test]
async fn merged_segments_are_those_that_are_built_at_once() {
    let format = SegmentFormat::of(&RankingPolicy::default());
    let mut rng = Rng::with_seed(5);
    for (_, letters) in SCRIPTS {
        let store = InMemoryStore::new();
        let chat = root(&store, "chat").await.id;
        let texts = texts(&mut rng, letters, 200);
        let messages = (0..).zip(&texts).map(|(at, text)| match at % 7 {
            3 => Message::tool_call(
                format!("{}", at / 21),
                ["read_file", "memory_grep"][at % 2],
                RawJson::parse("{}").unwrap(),
            ),
            5 => Message::tool_result(format!("{}", at / 21), text),
            _ => Message::user(text),
        });
        append(&store, chat, messages.collect()).await;
        let entries = store
            .read(chat, &LogRead::new(range(1, 200)))
            .await
            .unwrap();
        assert_eq!(entries.items.len(), 200);
        let mut calls = CallNames::new();
        entries.items.iter().for_each(|entry| calls.add(entry));
        let build = |entries: &[memory_model::LogEntry]| {
            let mut builder = SegmentBuilder::new(format);
            let messages = entries.iter();
            messages.for_each(|entry| builder.add_message(entry, &calls));
            builder.finish()
        };
        let (a, rest) = entries.items.split_at(64);
        let (b, c) = rest.split_at(16);
        let merged = merge(&[build(a), build(b), build(c)]).unwrap();
        assert_eq!(merged, build(&entries.items));
        let first = records(&merged.chunks[0].data).unwrap();
        assert_eq!((first.len(), first[0].seq), (200, Seq(1)));
        for chunk in &merged.chunks[1..] {
            assert!(chunk.data.len() < 16_000, "{}", chunk.data.len());
        }
    }
}

#[tokio::test]
async fn an_index_answers_as_a_scan() {
    for seed in 1..4 {
        index_answers_as_a_scan(Arc::new(InMemoryStore::new()), seed).await;
    }
}

#[tokio::test]
async fn segments_are_few() {
    index_segments_are_few(Arc::new(InMemoryStore::new())).await;
}

struct Indexed;

impl SearchFixture for Indexed {
    type Store = InMemoryStore;
    type Search = SegmentSearch<Arc<InMemoryStore>>;

    async fn fresh_search(&self) -> (Arc<InMemoryStore>, Self::Search) {
        let store = Arc::new(InMemoryStore::new());
        let search = SegmentSearch::new(Arc::clone(&store));
        (store, search)
    }

    async fn catch_up(&self, store: &InMemoryStore, _: &Self::Search, chat: ConversationId) {
        extend_index(store, chat, &RankingPolicy::default(), u64::MAX)
            .await
            .unwrap();
    }
}

mod suite {
    store_conformance::search_conformance_tests!(super::Indexed);
}
