//! Tests that the number of statements of an operation does not grow with the history.

use std::sync::Arc;
use std::time::Duration;

use memory_model::{Message, RawJson, Seq};
use memory_search::{Query, Search as _, SegmentSearch, extend_index};
use memory_store::{
    Claim, Draft, JobKey, LeaseUpdate, LogRead, Maintain as _, Order, Owner, Store as _,
};
use store_conformance::{Chat, Source, range, showing};
use store_sqlite::{SqliteOptions, SqliteStore};

use crate::common::{leaf, store, texts};

/// Returns the number of statements of each operation at the end of a log of about `size` entries.
async fn costs(size: u32) -> Vec<(&'static str, u64)> {
    let store = SqliteOptions::new().in_memory().await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, size)).await;
    for n in 0..size / 20 {
        leaf(chat, range(n * 10 + 1, n * 10 + 10)).await;
    }
    let mut costs = Vec::new();
    let mut before = store.statements();
    let mut note = |what: &'static str, store: &SqliteStore| {
        costs.push((what, store.statements() - before));
        before = store.statements();
    };
    let head = size;
    chat.append(texts(head + 1, 1)).await;
    note("append", &store);
    chat.append(texts(head + 2, 64)).await;
    note("append 64", &store);
    let read = LogRead::new(range(head / 2, head + 65));
    store.read(chat.id, &read).await.unwrap();
    note("read", &store);
    let shot = chat.snapshot("dag").await;
    note("snapshot", &store);
    for (what, order) in [
        ("spans, newest first", Order::NewestFirst),
        ("spans, oldest first", Order::OldestFirst),
    ] {
        let spans = store.spans(&shot, range(1, head), order, 16).await;
        spans.unwrap();
        note(what, &store);
    }
    let at = range(head - 19, head - 10);
    let made = chat.leaf(at, "what happened").await;
    note("a leaf's messages", &store);
    chat.publish(&showing("dag", &made)).await;
    note("publish", &store);
    let ids = vec![made.id.clone(); 8];
    let found = chat.summaries(&ids).await;
    assert!(found.iter().all(Option::is_some));
    note("summaries", &store);
    chat.parents(&made.id).await;
    note("parents", &store);
    let sums = chat.running(&[Seq(1), Seq(head / 2), Seq(head)]).await;
    assert_eq!(sums.len(), 3);
    note("running", &store);
    assert_eq!(
        store.seq_at(chat.id, 3 * 17 - 1).await.unwrap(),
        Some(Seq(17))
    );
    note("seq_at", &store);
    chat.find(&["e7".to_owned(), "none".to_owned()]).await;
    note("find", &store);
    costs
}

#[tokio::test]
async fn statement_counts_do_not_grow_with_history() {
    let small = costs(100).await;
    assert_eq!(small, costs(4000).await);
    assert_eq!(
        small,
        [
            ("append", 6),
            ("append 64", 6),
            ("read", 2),
            ("snapshot", 1),
            ("spans, newest first", 2),
            ("spans, oldest first", 2),
            ("a leaf's messages", 1),
            ("publish", 16),
            ("summaries", 2),
            ("parents", 1),
            ("running", 1),
            ("seq_at", 1),
            ("find", 2),
        ]
    );
}

/// Returns the number of statements that update a number of jobs in every way.
async fn settle_cost(jobs: usize) -> u64 {
    let store = SqliteOptions::new().in_memory().await.unwrap();
    let chat = Chat::root(&store, "a").await;
    let keys: Vec<JobKey> = (0..jobs).map(|n| JobKey(format!("job {n}"))).collect();
    let owner = Owner("me".to_owned());
    let ttl = Duration::from_secs(60);
    let claims = store.claim_all(chat.id, &keys, &owner, ttl, 0).await;
    let settled: Vec<_> = claims
        .unwrap()
        .into_iter()
        .enumerate()
        .map(|(n, claim)| {
            let Claim::Granted(fence) = claim else {
                panic!("expected a grant, not {claim:?}");
            };
            let draft = RawJson::parse(n.to_string()).unwrap();
            let update = match n % 4 {
                0 => LeaseUpdate::Renew { ttl },
                1 => LeaseUpdate::Prepared(Draft(draft)),
                2 => LeaseUpdate::Failed,
                _ => LeaseUpdate::Release,
            };
            (fence, update)
        })
        .collect();
    let before = store.statements();
    let answers = store.settle_all(&settled).await.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    store.statements() - before
}

#[tokio::test]
async fn jobs_are_settled_in_one_statement_for_each_kind_of_update() {
    assert_eq!(settle_cost(4).await, 7);
    assert_eq!(settle_cost(64).await, 7);
}

/// Returns the number of statements of a fork in a conversation with 64 leaves under 8 summaries under one summary.
async fn fork_cost(messages: u32) -> u64 {
    let store = SqliteOptions::new().in_memory().await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 64 * messages)).await;
    let mut level = Vec::new();
    for n in 0..64 {
        let at = range(n * messages + 1, (n + 1) * messages);
        level.push(leaf(chat, at).await);
    }
    while level.len() > 1 {
        let mut above = Vec::new();
        for of in level.chunks(8) {
            let sources: Vec<Source<'_>> = of.iter().map(Source::Summary).collect();
            above.push(chat.show_summary("dag", &sources, "above").await);
        }
        level = above;
    }
    let before = store.statements();
    let child = chat.fork("b", 37 * messages + 3).await;
    let cost = store.statements() - before;
    let views = child.views().await;
    // The spans are four whole summaries, five leaves of the fifth summary, and the rest of the sixth leaf.
    assert_eq!(views[0].spans, 10);
    cost
}

#[tokio::test]
async fn a_fork_costs_the_depth_of_the_tree_and_not_the_history() {
    let small = fork_cost(5).await;
    assert_eq!(small, fork_cost(60).await);
    assert_eq!(small, 27);
}

/// Counts the statements of two searches in a store that was just opened, for a text that one of 320 messages contains.
#[tokio::test]
async fn a_search_begins_with_a_snapshot_and_reads_its_candidates_at_once() {
    let (folder, written) = store().await;
    let chat = Chat::root(&written, "a").await;
    chat.append(texts(1, 100)).await;
    chat.append([Message::user("an ocelot")]).await;
    chat.append(texts(101, 219)).await;
    extend_index(&written, chat.id, u64::MAX).await.unwrap();
    let id = chat.id;
    written.close().await.unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db")).await;
    let store = Arc::new(store.unwrap());
    let search = SegmentSearch::new(Arc::clone(&store));
    let mut costs = Vec::new();
    for _ in 0..2 {
        let before = store.statements();
        let found = search.search(id, &Query::new("ocelot")).await.unwrap();
        assert_eq!(found.hits.len(), 1);
        costs.push(store.statements() - before);
    }
    // The snapshot takes three statements in one request, and a read takes one. The index is in memory afterwards.
    assert_eq!(costs[1], 4);
    assert!(costs[0] > costs[1], "{costs:?}");
}
