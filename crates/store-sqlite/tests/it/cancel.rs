//! A future that is dropped anywhere leaves the store as before or as after.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use memory_model::{Body, Seq, Span};
use memory_store::{ConversationRef, LogRead, Maintain as _, Store as _};
use store_sqlite::SqliteStore;

use crate::common::{append, batch, dag, range, replace, root, store, summary, texts};

/// Polls a future at most `polls` times, waiting for its wake-ups, then drops it. True if it finished.
async fn poll_at_most<F: Future>(future: F, polls: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let done =
            std::future::poll_fn(|cx: &mut Context<'_>| Poll::Ready(future.as_mut().poll(cx)))
                .await
                .is_ready();
        if done {
            return true;
        }
        // Let the worker answer, so that the next poll gets further.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    false
}

async fn state(store: &SqliteStore, id: memory_model::ConversationId) -> (Seq, u64, usize, u64) {
    let found = store
        .conversation(&ConversationRef::Id(id))
        .await
        .unwrap()
        .unwrap();
    let shot = store.snapshot(id, &dag()).await.unwrap();
    let summaries = store.summary_log(id, None, 100).await.unwrap().items.len();
    (found.head, found.tokens, summaries, shot.version.0)
}

#[tokio::test]
async fn dropped_appends_are_whole_or_nothing() {
    let (_folder, store) = store().await;
    let id = root(&store, "a").await;
    let mut finished = false;
    let mut polls = 1;
    while !finished {
        let before = state(&store, id).await;
        let append = batch(texts(before.0.0 + 1, 73));
        finished = poll_at_most(store.append(id, &append), polls).await;
        let after = state(&store, id).await;
        assert!(
            after.0 == before.0 || after.0.0 == before.0.0 + 73,
            "{polls}: {before:?} {after:?}"
        );
        assert_eq!(after.1, u64::from(after.0.0) * 3);
        polls += 1;
        assert!(polls < 1000);
    }
    assert!(polls > 2, "the append was dropped in only {polls} places");
    let head = state(&store, id).await.0;
    let page = store
        .read(id, &LogRead::new(range(1, head.0)).with_max_rows(5000))
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
    append(&store, id, texts(1, 2000)).await;
    let mut finished = false;
    let mut polls = 1;
    while !finished {
        let before = state(&store, id).await;
        let first = u32::try_from(before.3).unwrap() * 10 + 1;
        let at = range(first, first + 9);
        let made = summary(&store, id, at, &[], "leaf@1").await;
        let publish = replace(vec![Span::closed(at, Body::Raw, 0)], made);
        finished = poll_at_most(store.publish(id, &publish), polls).await;
        let after = state(&store, id).await;
        assert!(
            after == before || (after.2 == before.2 + 1 && after.3 == before.3 + 1),
            "{polls}"
        );
        polls += 1;
        assert!(polls < 1000);
    }
    assert!(polls > 3, "the publish was dropped in only {polls} places");
    assert_eq!(store.check().await.unwrap(), []);
}
