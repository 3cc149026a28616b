//! The store that fails when told to does so, once or from then on, before or after the write.

use memory_model::{Seq, ViewVersion};
use memory_store::{Append, AppendAt, ErrorKind, InMemoryStore, Published, Store};
use store_conformance::{
    Fault, FaultyStore, Source, entry, fill, message, range, raw, replace, root, shown, sound,
    summary_of, texts,
};

fn append_of(text: &str) -> Append {
    Append {
        at: AppendAt::Any,
        estimator: memory_model::Accounting::estimator_id(&store_conformance::PlainCounts),
        entries: vec![entry(message(text, text))],
        now: memory_model::Timestamp(5),
    }
}

#[tokio::test]
async fn the_kth_write_fails() {
    let store = FaultyStore::new(InMemoryStore::new());
    let chat = root(&store, "chat").await.id;
    assert_eq!(store.writes(), 1);
    store.fail_from(2, Fault::After);
    store.append(chat, &append_of("one")).await.unwrap();
    for text in ["two", "three"] {
        let error = store.append(chat, &append_of(text)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
    // The second was written, the third was not.
    assert_eq!(texts(&store, chat).await, ["one", "two"]);
    store.heal();
    store.append(chat, &append_of("three")).await.unwrap();
    store.fail_once(1, Fault::Before);
    store.append(chat, &append_of("four")).await.unwrap_err();
    store.append(chat, &append_of("four")).await.unwrap();
    assert_eq!(texts(&store, chat).await, ["one", "two", "three", "four"]);
    assert_eq!(store.writes(), 7);
    sound(&store.into_inner()).await;
}

#[tokio::test]
async fn a_publish_that_failed_after_the_write_is_already_done() {
    let store = FaultyStore::new(InMemoryStore::new());
    let chat = root(&store, "chat").await.id;
    fill(&store, chat, 4).await;
    let at = range(1, 3);
    let leaf = summary_of(&store, chat, &[Source::Messages(at)], "leaf").await;
    let publish = replace("dag", at, vec![raw(at)], vec![shown(&leaf)], vec![leaf]);
    store.fail_once(1, Fault::After);
    store.publish(chat, &publish).await.unwrap_err();
    let again = store.publish(chat, &publish).await.unwrap();
    assert_eq!(again, Published::Already(ViewVersion(1)));
    assert_eq!(
        store.inner().find(chat, &["m4".to_owned()]).await.unwrap(),
        [Some(Seq(4))]
    );
    sound(store.inner()).await;
}
