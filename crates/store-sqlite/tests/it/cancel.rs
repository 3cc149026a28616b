//! Tests that a future that is dropped at any point leaves the store in the state before or after the call.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use memory_model::Timestamp;
use memory_store::{ConversationPatch, Maintain as _, Store as _};
use store_conformance::{Chat, range, showing, sound};
use store_sqlite::SqliteStore;

use crate::common::{batch, store, texts};

/// End of a future that was allowed to run a number of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The future had begun all allowed statements and was waiting. It was dropped.
    Dropped,
    /// The future finished with fewer statements.
    Finished,
    /// The future began all allowed statements, but did not wait: the answer was ready before the check, as on a busy
    /// machine.
    NotSeen,
}

/// Runs a future until it waits with this number of statements begun, and then drops it.
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

/// Maximum number of attempts to see a wait with a number of statements begun.
const TRIES: u32 = 10;

async fn state(chat: Chat<'_, SqliteStore>) -> (u32, usize, u64) {
    // This write waits for a commit that may still be running.
    let same = ConversationPatch::default();
    let found = chat
        .store
        .update(chat.id, &same, Timestamp(1))
        .await
        .unwrap();
    let summaries = chat.store.summary_log(chat.id, None, 10_000).await;
    let version = chat.snapshot("dag").await.version.0;
    (found.head.0, summaries.unwrap().items.len(), version)
}

/// Calls `run` with an allowed number of statements, from one on, until the future finishes within them. Returns the
/// largest number at which the future was dropped.
async fn until_finished(mut run: impl AsyncFnMut(u64) -> End) -> u64 {
    let mut statements = 1;
    let mut tries = 0;
    loop {
        let end = run(statements).await;
        if end == End::Finished {
            return statements;
        }
        // A number at which no wait was seen is tried again. At the last numbers a wait may never be seen.
        tries += 1;
        if end != End::NotSeen || tries == TRIES {
            (statements, tries) = (statements + 1, 0);
        }
        assert!(statements < 1000);
    }
}

#[tokio::test]
async fn dropped_appends_are_atomic() {
    let (_folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    let statements = until_finished(async |statements| {
        let (head, ..) = state(chat).await;
        let append = batch(texts(head + 1, 73));
        let end = run_for(&store, statements, store.append(chat.id, &append)).await;
        let (after, ..) = state(chat).await;
        assert!(
            after == head || after == head + 73,
            "{statements}: {head} {after}"
        );
        end
    });
    let statements = statements.await;
    // The drops come before the transaction, in its statements, and in its commit.
    assert!(
        statements > 4,
        "the append was dropped in only {statements} places"
    );
    sound(&store).await;
}

#[tokio::test]
async fn dropped_publishes_are_atomic() {
    let (_folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 12_000)).await;
    let statements = until_finished(async |statements| {
        let before = state(chat).await;
        // Three publishes in one call: all or none of them take effect.
        let mut publishes = Vec::new();
        for n in 0..3 {
            let first = (u32::try_from(before.2).unwrap() + n) * 10 + 1;
            let leaf = chat.leaf(range(first, first + 9), "a leaf").await;
            publishes.push(showing("dag", &leaf));
        }
        let publish = store.publish_all(chat.id, &publishes);
        let end = run_for(&store, statements, publish).await;
        let after = state(chat).await;
        let done = (before.0, before.1 + 3, before.2 + 3);
        assert!(after == before || after == done, "{statements}");
        end
    });
    let statements = statements.await;
    // The drops come before the transaction, in each of its few requests, and in its commit.
    assert!(
        statements > 5,
        "the publish was dropped in only {statements} places"
    );
    assert_eq!(store.check().await.unwrap(), []);
}
