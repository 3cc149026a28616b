//! A future that is dropped anywhere leaves the store as before or as after.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use memory_model::{Seq, Span, SpanBody, Timestamp};
use memory_store::{ConversationPatch, ConversationRef, LogRead, Maintain as _, Store as _};
use store_sqlite::SqliteStore;

use crate::common::{append, batch, dag, range, replace, root, store, summary, texts};

/// How a future that was run for some statements ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It waited with all of them begun, and was dropped.
    Dropped,
    /// It needed fewer.
    Finished,
    /// It needed as many or more, but did not wait: the answer came before it was looked for, as on a busy machine.
    NotSeen,
}

/// Runs a future until it waits with this number of statements begun, then drops it.
async fn run_for<F: Future>(store: &SqliteStore, statements: u64, future: F) -> End {
    let most = store.statements() + statements;
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(_) if store.statements() < most => Poll::Ready(End::Finished),
        Poll::Ready(_) => Poll::Ready(End::NotSeen),
        Poll::Pending if store.statements() >= most => Poll::Ready(End::Dropped),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// How often a place that was not seen is tried again.
const TRIES: u32 = 10;

async fn state(store: &SqliteStore, id: memory_model::ConversationId) -> (Seq, u64, usize, u64) {
    // A write waits for the commit that may be under way.
    let same = ConversationPatch::default();
    store.update(id, &same, Timestamp(1)).await.unwrap();
    let found = store
        .conversation(&ConversationRef::Id(id))
        .await
        .unwrap()
        .unwrap();
    let shot = store.snapshot(id, &dag()).await.unwrap();
    let summaries = store
        .summary_log(id, None, 10_000)
        .await
        .unwrap()
        .items
        .len();
    (found.head, found.tokens, summaries, shot.version.0)
}

#[tokio::test]
async fn dropped_appends_are_whole_or_nothing() {
    let (_folder, store) = store().await;
    let id = root(&store, "a").await;
    let (mut end, mut tries) = (End::NotSeen, 0);
    let mut statements = 1;
    while end != End::Finished {
        let before = state(&store, id).await;
        let append = batch(texts(before.0.0 + 1, 73));
        end = run_for(&store, statements, store.append(id, &append)).await;
        let after = state(&store, id).await;
        assert!(
            after.0 == before.0 || after.0.0 == before.0.0 + 73,
            "{statements}: {before:?} {after:?}"
        );
        assert_eq!(after.1, u64::from(after.0.0) * 3);
        // A place that was not seen is tried again; the last ones may never be.
        tries += 1;
        if end != End::NotSeen || tries == TRIES {
            (statements, tries) = (statements + 1, 0);
        }
        assert!(statements < 1000);
    }
    // Before the transaction, in its statements, and while it is committed.
    assert!(
        statements > 4,
        "the append was dropped in only {statements} places"
    );
    let head = state(&store, id).await.0;
    let page = store
        .read(id, &LogRead::new(range(1, head.0)).with_max_rows(50_000))
        .await
        .unwrap();
    let chain = page
        .items
        .iter()
        .fold(memory_model::Hash::ZERO, |chain, e| chain.chain(e.hash));
    assert_eq!(
        chain,
        store
            .conversation(&ConversationRef::Id(id))
            .await
            .unwrap()
            .unwrap()
            .chain
    );
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn dropped_publishes_are_whole_or_nothing() {
    let (_folder, store) = store().await;
    let id = root(&store, "a").await;
    append(&store, id, texts(1, 12_000)).await;
    let (mut end, mut tries) = (End::NotSeen, 0);
    let mut statements = 1;
    while end != End::Finished {
        let before = state(&store, id).await;
        // Three at once: a batch is there whole or not at all.
        let mut publishes = Vec::new();
        for n in 0..3 {
            let first = (u32::try_from(before.3).unwrap() + n) * 10 + 1;
            let at = range(first, first + 9);
            let made = summary(&store, id, at, &[], "leaf@1").await;
            publishes.push(replace(vec![Span::closed(at, SpanBody::Raw, 0)], made));
        }
        end = run_for(&store, statements, store.publish_all(id, &publishes)).await;
        let after = state(&store, id).await;
        assert!(
            after == before || (after.2 == before.2 + 3 && after.3 == before.3 + 3),
            "{statements}"
        );
        // A place that was not seen is tried again; the last ones may never be.
        tries += 1;
        if end != End::NotSeen || tries == TRIES {
            (statements, tries) = (statements + 1, 0);
        }
        assert!(statements < 1000);
    }
    // Before the transaction, in each of its few requests, and while it is committed.
    assert!(
        statements > 5,
        "the publish was dropped in only {statements} places"
    );
    assert_eq!(store.check().await.unwrap(), []);
}
