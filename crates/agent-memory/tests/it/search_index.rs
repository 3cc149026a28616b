//! The index that the retrieval tools search by.

use agent_memory::testing::Generated;
use agent_memory::{Memory, Mode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

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

#[tokio::test]
async fn closing_extends_an_index_that_could_not_be_extended_before() {
    for is_mended in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let builder = Memory::builder().sqlite(&path);
        let memory = builder.open().await.unwrap();
        let session = memory.session("chat").await.unwrap();
        let options = SqliteConnectOptions::new().filename(&path);
        let mut other: SqliteConnection = options.connect().await.unwrap();
        let refuse = "create trigger refuse before insert on search_chunk \
                      begin select raise(abort, 'refused'); end";
        sqlx::query(refuse).execute(&mut other).await.unwrap();
        for message in Generated::new(1).take(40) {
            session.ingest(message).await.unwrap();
        }
        assert_eq!(session.index().size().await.unwrap().documents, 0);
        if is_mended {
            let mend = sqlx::query("drop trigger refuse");
            mend.execute(&mut other).await.unwrap();
        }
        other.close().await.unwrap();
        assert_eq!(memory.close().await.is_ok(), is_mended);
        let memory = Memory::builder().sqlite(&path).open().await.unwrap();
        let session = memory.session("chat").await.unwrap();
        let documents = session.index().size().await.unwrap().documents;
        assert_eq!(documents > 0, is_mended, "{documents}");
    }
}
