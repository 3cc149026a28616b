//! The queue of changed conversations.

use std::collections::BTreeSet;
use std::time::Duration;

use memory_model::{ConversationId, Timestamp};
use memory_store::{ConversationPatch, Owner, Store as _, WorkQueue};
use store_conformance::{Chat, Fixture as _};

use crate::common::{schemas, texts};

const MINUTE: Duration = Duration::from_secs(60);

fn owner(name: &str) -> Owner {
    Owner(name.to_owned())
}

async fn take(queue: &dyn WorkQueue, name: &str) -> Option<ConversationId> {
    let taken = queue.take_changed(&owner(name), MINUTE).await.unwrap();
    taken.map(|taken| taken.conversation)
}

#[tokio::test]
async fn each_change_goes_to_one_worker() {
    let schemas = schemas!();
    let store = schemas.fresh().await;
    let queue = store.work_queue().unwrap();
    assert_eq!(take(queue, "a").await, None);
    let mut all = BTreeSet::new();
    for key in ["x", "y", "z"] {
        let chat = Chat::root(&store, key).await;
        chat.append(texts(1, 3)).await;
        all.insert(chat.id);
    }
    let archived = Chat::root(&store, "archived").await;
    let archive = ConversationPatch {
        archived: Some(true),
        ..ConversationPatch::default()
    };
    store
        .update(archived.id, &archive, Timestamp(9))
        .await
        .unwrap();

    // Another store on the same data is another process.
    let second = schemas.second_store(&store).await.unwrap();
    let other = second.work_queue().unwrap();
    let taken = [
        take(queue, "a").await,
        take(other, "b").await,
        take(queue, "a").await,
        take(other, "b").await,
    ];
    let found: BTreeSet<ConversationId> = taken.iter().flatten().copied().collect();
    assert_eq!((found, taken[3]), (all, None));
}

#[tokio::test]
async fn a_conversation_waits_again_after_a_change_and_after_its_worker_is_gone() {
    let schemas = schemas!();
    let store = schemas.fresh().await;
    let queue = store.work_queue().unwrap();
    let chat = Chat::root(&store, "x").await;
    chat.append(texts(1, 3)).await;

    // A worker that was killed keeps the conversation for the time only.
    let gone = owner("gone");
    let taken = queue.take_changed(&gone, Duration::ZERO).await.unwrap();
    assert_eq!(taken.map(|taken| taken.conversation), Some(chat.id));
    let (a, b) = (owner("a"), owner("b"));
    let again = queue.take_changed(&a, MINUTE).await.unwrap().unwrap();
    assert_eq!(take(queue, "b").await, None);

    // Only the worker that has it finishes it.
    queue.finish_changed(&again, &gone).await.unwrap();
    assert_eq!(take(queue, "b").await, None);
    queue.finish_changed(&again, &a).await.unwrap();
    assert_eq!(take(queue, "b").await, None);

    let later = ConversationPatch {
        title: Some("changed".to_owned()),
        ..ConversationPatch::default()
    };
    let now = Timestamp(again.changed_at.0 + 1);
    store.update(chat.id, &later, now).await.unwrap();
    let changed = queue.take_changed(&b, MINUTE).await.unwrap().unwrap();
    assert_eq!((changed.conversation, changed.changed_at), (chat.id, now));
}
