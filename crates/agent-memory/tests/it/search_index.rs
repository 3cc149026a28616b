//! The index that the retrieval tools search by.

use agent_memory::testing::Generated;
use agent_memory::{Memory, Mode};

#[tokio::test]
async fn the_summaries_of_a_compaction_are_indexed_with_it() {
    let memory = Memory::in_memory().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    for message in Generated::new(1).take(3_200) {
        session.ingest(message).await.unwrap();
    }
    let messages = session.index().size().await.unwrap().documents;
    let outcome = session.compact(Mode::Full).await.unwrap();
    let published = outcome.published.total();
    assert!(published >= 16, "{published}");
    let all = session.index().size().await.unwrap().documents;
    // In twos.
    assert_eq!(all - messages, published / 2 * 2);
}
