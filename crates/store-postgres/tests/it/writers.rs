//! Tests of many stores that write at the same time, as many processes do.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Message, Seq};
use memory_store::{Maintain as _, Origin, Store as _};
use store_conformance::{Chat, new_conversation, sound};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{batch, schemas, texts};

const WRITERS: u32 = 8;
const APPENDS: u32 = 50;

/// Appends to a conversation from each of several stores at the same time. The stores are given in pairs with
/// conversations.
pub(crate) async fn append_all(url: &str, options: &PostgresOptions, chats: Vec<ConversationId>) {
    let mut writing = Vec::new();
    for (writer, id) in chats.into_iter().enumerate() {
        let (url, options) = (url.to_owned(), options.clone());
        writing.push(tokio::spawn(async move {
            let store = options.open(&url).await.unwrap();
            let chat = Chat::new(&store, id);
            for n in 0..APPENDS {
                let id = format!("w{writer} {n}");
                let said = ["a", "b"].map(|part| {
                    Message::user(format!("{id} {part}")).with_external_id(format!("{id} {part}"))
                });
                // An append at the head fails with no error: not of a deadlock, and not of a wait.
                chat.append(said).await;
            }
            store.close().await.unwrap();
        }));
    }
    for done in writing {
        done.await.unwrap();
    }
}

/// Checks that a log has the appends of these writers: each once, whole, and in the order of its writer.
pub(crate) async fn complete(chat: Chat<'_, PostgresStore>, writers: &[u32]) {
    let entries = chat.entries().await;
    let mut next: BTreeMap<u32, u32> = writers.iter().map(|writer| (*writer, 0)).collect();
    let own = chat.info().await.segments.last().unwrap().first;
    let entries: Vec<_> = entries.iter().filter(|entry| entry.seq >= own).collect();
    for (pair, at) in entries.chunks(2).zip((own.0..).step_by(2)) {
        let [a, b] = pair else {
            panic!("a batch is whole")
        };
        assert_eq!((a.seq, b.seq), (Seq(at), Seq(at + 1)));
        let text = a.text();
        let (writer, n) = text.strip_suffix(" a").unwrap()[1..]
            .split_once(' ')
            .unwrap();
        assert_eq!(b.text(), format!("w{writer} {n} b"));
        let expected = next.get_mut(&writer.parse().unwrap()).unwrap();
        assert_eq!(n.parse::<u32>().unwrap(), *expected);
        *expected += 1;
    }
    assert!(next.values().all(|count| *count == APPENDS), "{next:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_write_to_one_session_lose_nothing() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "shared").await;
    let options = PostgresOptions::new().with_max_connections(2);
    append_all(&url, &options, vec![chat.id; WRITERS as usize]).await;
    complete(chat, &(0..WRITERS).collect::<Vec<_>>()).await;
    sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_write_to_the_sessions_of_one_family_lose_nothing() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let root = Chat::root(&store, "root").await;
    root.append(texts(1, 4)).await;
    let mut chats = vec![root];
    for n in 1..WRITERS {
        let parent = chats[n as usize / 2];
        let key = format!("member {n}");
        let origin = match n % 2 {
            0 => Origin::Fork {
                parent: parent.id,
                at: parent.info().await.head,
            },
            _ => Origin::Spawn {
                parent: parent.id,
                at: Seq(0),
                call: None,
            },
        };
        chats.push(Chat::open(&store, &new_conversation(&key, origin)).await);
    }
    let options = PostgresOptions::new().with_max_connections(2);
    let ids = chats.iter().map(|chat| chat.id).collect();
    append_all(&url, &options, ids).await;
    for (writer, chat) in (0..).zip(&chats).skip(1) {
        complete(*chat, &[writer]).await;
    }
    assert_eq!(root.info().await.head.0, 4 + 2 * APPENDS);
    sound(&store).await;
}

/// Checks that stores which open sessions and fork them at the same time get one number for each key.
#[tokio::test(flavor = "multi_thread")]
async fn stores_that_open_the_same_sessions_get_the_same_ones() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let mut opening = Vec::new();
    for _ in 0..WRITERS {
        let url = url.clone();
        opening.push(tokio::spawn(async move {
            let options = PostgresOptions::new().with_max_connections(2);
            let store = options.open(&url).await.unwrap();
            let mut ids = Vec::new();
            for n in 0..10 {
                let chat = Chat::root(&store, &format!("root {n}")).await;
                let fork = chat.fork(&format!("fork {n}"), 0).await;
                ids.extend([chat.id, fork.id]);
            }
            ids
        }));
    }
    let mut all = Vec::new();
    for opened in opening {
        all.push(opened.await.unwrap());
    }
    assert!(all.iter().all(|ids| *ids == all[0]), "{all:?}");
    let distinct: std::collections::BTreeSet<_> = all[0].iter().collect();
    assert_eq!(distinct.len(), 20);
    sound(&store).await;
}

/// Checks that one store with one connection serves many calls at the same time, of which none waits for another call of
/// the same task.
#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_one_connection() {
    let schemas = schemas!();
    let (url, _store) = schemas.store().await;
    let options = PostgresOptions::new().with_max_connections(1);
    let store = std::sync::Arc::new(options.open(&url).await.unwrap());
    let mut calls = Vec::new();
    for n in 0..32 {
        let store = store.clone();
        calls.push(tokio::spawn(async move {
            let chat = Chat::root(&*store, &format!("chat {}", n % 4)).await;
            let append = batch(texts(n * 10 + 1, 3));
            store.append(chat.id, &append).await.unwrap();
            chat.show_leaf(
                &format!("view {n}"),
                store_conformance::range(1, 3),
                "a leaf",
            )
            .await;
            chat.texts().await.len()
        }));
    }
    for call in calls {
        assert!(call.await.unwrap() >= 3);
    }
    sound(&*store).await;
}
