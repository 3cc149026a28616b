//! The index that the retrieval tools search by.

use agent_memory::testing::Generated;
use agent_memory::{Memory, Mode};

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
