//! The index that the retrieval tools search by: the store's own, and one that the application brings and fills.

use std::sync::Arc;

use agent_memory::testing::Generated;
use agent_memory::{GrepArgs, Memory, Message, Mode, Seq, SeqRange};
use memory_store::LogRead;

use crate::trigram_index::TrigramIndex;

#[tokio::test]
async fn an_index_from_outside_may_lag_and_answers_are_complete() {
    let index = Arc::new(TrigramIndex::default());
    let memory = Memory::builder().search_index(index.clone());
    let memory = memory.open().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    for n in 1..=30 {
        let message = Message::user(format!("Step {n} of the release is done."));
        session.ingest(message).await.unwrap();
    }
    let scanned = session.retrieval().grep("step").await.unwrap();
    assert_eq!(scanned.strategy, "literal-scan", "nothing is indexed yet");

    let range = SeqRange::new(Seq(1), Seq(10)).unwrap();
    let read = LogRead::new(range);
    let page = memory.store().read(session.id(), &read).await.unwrap();
    index.add_messages(session.id(), page.items);
    let mut args = GrepArgs {
        limit: 7,
        ..GrepArgs::new("step")
    };
    let mut seqs = Vec::new();
    loop {
        let answer = session.retrieval().grep(&args).await.unwrap();
        assert!(answer.strategy.starts_with("trigram-index"));
        seqs.extend(answer.hits.iter().filter_map(|hit| hit.seq));
        let Some(cursor) = answer.cursor else { break };
        args.cursor = Some(cursor);
    }
    assert_eq!(seqs, (1..=30).map(Seq).collect::<Vec<_>>());

    // What is indexed of one session is not found in another.
    let other = memory.session("other").await.unwrap();
    other.ingest(Message::user("straw")).await.unwrap();
    let found = other.retrieval().grep("step").await.unwrap();
    assert!(found.complete && found.hits.is_empty());
}

#[tokio::test]
async fn the_summaries_of_a_compaction_are_indexed_with_it() {
    let memory = Memory::builder().open().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    for message in Generated::new(1).take(3_200) {
        session.ingest(message).await.unwrap();
    }
    let (_, messages) = session.index_size().await.unwrap();
    let outcome = session.compact(Mode::Full).await.unwrap();
    let published = outcome.published.total();
    assert!(published >= 16, "{published}");
    let (_, all) = session.index_size().await.unwrap();
    // In twos.
    assert_eq!(all - messages, published / 2 * 2);
}
