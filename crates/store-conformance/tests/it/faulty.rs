//! Tests that a [`FaultyStore`] fails when it is told to: a single write or all later writes, before or after the write
//! takes effect.

use memory_model::{Seq, ViewVersion};
use memory_store::{Append, AppendAt, ErrorKind, InMemoryStore, Published, Store};
use store_conformance::{Chat, Fault, FaultyStore, batch, entry, message, range, showing, sound};

fn append_of(text: &str) -> Append {
    batch(AppendAt::Any, [entry(message(text, text))])
}

#[tokio::test]
async fn the_kth_write_fails() {
    let store = FaultyStore::new(InMemoryStore::new());
    let chat = Chat::root(&store, "chat").await.id;
    assert_eq!(store.writes(), 1);
    store.fail_from(2, Fault::After);
    store.append(chat, &append_of("one")).await.unwrap();
    for text in ["two", "three"] {
        let error = store.append(chat, &append_of(text)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
    // The second message was written, and the third was not.
    assert_eq!(Chat::new(&store, chat).texts().await, ["one", "two"]);
    store.heal();
    store.append(chat, &append_of("three")).await.unwrap();
    store.fail_once(1, Fault::Before);
    store.append(chat, &append_of("four")).await.unwrap_err();
    store.append(chat, &append_of("four")).await.unwrap();
    assert_eq!(
        Chat::new(&store, chat).texts().await,
        ["one", "two", "three", "four"]
    );
    assert_eq!(store.writes(), 7);
    sound(&store.into_inner()).await;
}

#[tokio::test]
async fn a_publish_that_failed_after_the_write_is_already_done() {
    let store = FaultyStore::new(InMemoryStore::new());
    let chat = Chat::filled(&store, 4).await;
    let leaf = chat.leaf(range(1, 3), "leaf").await;
    let publish = showing("dag", &leaf);
    store.fail_once(1, Fault::After);
    store.publish(chat.id, &publish).await.unwrap_err();
    let again = chat.publish(&publish).await;
    assert_eq!(again, Published::Already(ViewVersion(1)));
    assert_eq!(chat.find(&["m4".to_owned()]).await, [Some(Seq(4))]);
    sound(store.inner()).await;
}
