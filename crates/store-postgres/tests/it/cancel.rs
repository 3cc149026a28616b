//! Tests that a future that is dropped at any point leaves the store in the state before or after the call, and no lock
//! or transaction in its connections.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use memory_store::Store as _;
use store_conformance::{Chat, sound};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{batch, column, run, schemas, stranger, texts, with};

/// Runs a future until it waits with this number of statements begun, and then drops it. Returns whether it finished
/// before.
async fn run_for<F: Future>(store: &PostgresStore, statements: u64, future: F) -> bool {
    let most = store.statements() + statements;
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(true),
        Poll::Pending if store.statements() >= most => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    })
    .await
}

#[tokio::test]
async fn dropped_appends_are_atomic() {
    let schemas = schemas!();
    let (_url, store) = schemas.store().await;
    let chat = Chat::root(&store, "a").await;
    let mut statements = 1;
    loop {
        let head = chat.info().await.head.0;
        let append = batch(texts(head + 1, 73));
        let is_finished = run_for(&store, statements, store.append(chat.id, &append)).await;
        // This write waits for a commit that may still be running.
        chat.append([]).await;
        let after = chat.info().await.head.0;
        assert!(
            after == head || after == head + 73,
            "{statements}: {head} {after}"
        );
        if is_finished {
            break;
        }
        statements += 1;
    }
    // The drops come before the transaction, in its statements, and in its commit.
    assert!(
        statements > 4,
        "the append was dropped in only {statements} places"
    );
    sound(&store).await;
}

#[tokio::test]
async fn a_dropped_wait_for_a_family_leaves_no_lock() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "a").await;
    let name = format!("test_cancel_{}", std::process::id());
    let options = PostgresOptions::new().with_max_connections(1);
    let url_of_one = with(&url, &format!("application_name={name}"));
    let one = options.open(&url_of_one).await.unwrap();
    let mut held = stranger(&url).await;
    let hold = "begin; select 1 from family for update";
    run(&mut held, hold).await.unwrap();
    let append = batch(texts(1, 1));
    let waiting = tokio::time::timeout(Duration::from_millis(300), one.append(chat.id, &append));
    assert!(waiting.await.is_err(), "the append waits for the family");
    run(&mut held, "commit").await.unwrap();

    // The only connection works on, and holds nothing.
    assert_eq!(Chat::new(&one, chat.id).texts().await, [""; 0]);
    let state = format!("select state from pg_stat_activity where application_name = '{name}'");
    assert_eq!(column(&mut held, &state).await, ["idle"]);
    chat.append(texts(1, 1)).await;
    assert_eq!(Chat::new(&one, chat.id).texts().await.len(), 1);
}
