//! Cases of conversations and their families.

use std::time::Duration;

use memory_model::{
    Accounting, ConversationId, Hash, RawJson, Recipe, Seq, SessionKey, SummaryId, Timestamp,
    ViewName, ViewVersion,
};
use memory_store::EntryOutcome::{Conflict, Duplicate, Inserted};
use memory_store::{
    AppendAt, Conversation, ConversationFilter, ConversationPatch, ConversationRef, ErrorKind,
    Fence, FullStore, JobKey, LeaseUpdate, LogRead, NewConversation, Order, Origin, Owner, Segment,
    Snapshot,
};
use token_estimate::EstimatorId;

use crate::builders::{
    PlainCounts, batch, entry, message, new_conversation, over_raw, pages, range, raw, refused,
};
use crate::chat::Chat;

fn fork_of(parent: ConversationId, at: u32) -> Origin {
    let at = Seq(at);
    Origin::Fork { parent, at }
}

/// Checks that opening a new key creates a conversation, and that later calls with the key return it unchanged.
pub async fn open_gets_or_creates<S: FullStore>(store: &S) {
    let new = NewConversation {
        title: Some("first".to_owned()),
        meta: Some(RawJson::parse(r#"{"b":1.00,"a":1,"a":2}"#).unwrap()),
        now: Timestamp(5),
        ..new_conversation("chat", Origin::Root)
    };
    let made = store.open(&new).await.unwrap();
    assert!(made.id.0 > 0, "numbers are positive");
    let own = Segment {
        first: Seq(1),
        last: None,
        source: made.id,
    };
    let expected = Conversation {
        id: made.id,
        key: SessionKey::new("chat"),
        origin: Origin::Root,
        family: made.id,
        segments: vec![own],
        head: Seq(0),
        tokens: 0,
        chain: Hash::ZERO,
        estimator: PlainCounts.estimator_id(),
        title: new.title,
        archived: false,
        meta: new.meta,
        created_at: Timestamp(5),
        updated_at: Timestamp(5),
        erasures: 0,
    };
    assert_eq!(made, expected, "facts come back byte for byte");

    let again = NewConversation {
        title: Some("second".to_owned()),
        estimator: EstimatorId::new("other", 9).unwrap(),
        ..new_conversation("chat", Origin::Root)
    };
    assert_eq!(store.open(&again).await.unwrap(), made);
    // For an existing key the origin is not checked.
    let again = new_conversation("chat", fork_of(ConversationId(4_000), 7));
    assert_eq!(store.open(&again).await.unwrap(), made);
    let by_key = ConversationRef::Key("chat".into());
    let found = store.conversation(&by_key).await.unwrap();
    assert_eq!(found.as_ref(), Some(&made));
    assert_eq!(Chat::new(store, made.id).info().await, made);
    // Keys are compared byte by byte.
    for key in ["Chat", "chat ", "", "чат\0\"'%_"] {
        let chat = Chat::root(store, key).await;
        assert_eq!(chat.info().await.key.as_str(), key);
    }
}

/// Checks that conversations are listed by number, in pages, with filters.
pub async fn conversations_are_listed_in_order<S: FullStore>(store: &S) {
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(Chat::root(store, &format!("c{n}")).await.id);
    }
    assert!(ids.is_sorted(), "numbers rise");
    let child = Chat::new(store, ids[1]).fork("child", 0).await;
    let patch = ConversationPatch {
        archived: Some(true),
        ..ConversationPatch::default()
    };
    store.update(ids[2], &patch, Timestamp(7)).await.unwrap();

    let mut filter = ConversationFilter::default();
    let found = pages(async |after| store.list(&filter, after, 2).await).await;
    assert!(found.iter().all(|page| page.len() <= 2));
    let found: Vec<_> = found.concat().into_iter().map(|c| c.id).collect();
    assert_eq!(found, [ids[0], ids[1], ids[3], ids[4], child.id]);
    filter.archived = true;
    let page = store.list(&filter, None, 6).await.unwrap();
    assert_eq!((page.items.len(), page.next), (6, None));
    let page = store.list(&filter, None, 0).await.unwrap();
    assert_eq!(page.items.len(), 1, "at least one");
    filter.family = Some(ids[1]);
    let page = store.list(&filter, None, 10).await.unwrap();
    let family: Vec<_> = page.items.iter().map(|c| c.id).collect();
    assert_eq!(family, [ids[1], child.id]);
    let after_last = store.list(&filter, Some(child.id), 10).await.unwrap();
    assert_eq!(after_last.items, []);
}

/// Checks that an update of a conversation changes only the fields that the patch contains.
pub async fn update_changes_only_named_fields<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    chat.fill(2).await;
    let before = chat.info().await;
    let patch = ConversationPatch {
        title: Some("a title".to_owned()),
        ..ConversationPatch::default()
    };
    let after = store.update(chat.id, &patch, Timestamp(50)).await.unwrap();
    let expected = Conversation {
        title: Some("a title".to_owned()),
        updated_at: Timestamp(50),
        ..before
    };
    assert_eq!(after, expected);
    let patch = ConversationPatch {
        archived: Some(true),
        meta: Some(RawJson::parse(r#"{"k":1e400}"#).unwrap()),
        ..ConversationPatch::default()
    };
    let after = store.update(chat.id, &patch, Timestamp(51)).await.unwrap();
    assert_eq!(after.title.as_deref(), Some("a title"));
    assert!(after.archived);
    assert_eq!(after.meta, patch.meta);
    assert_eq!(chat.info().await, after);
    let back = ConversationPatch {
        archived: Some(false),
        ..ConversationPatch::default()
    };
    let after = store.update(chat.id, &back, Timestamp(52)).await.unwrap();
    assert!(!after.archived);
}

/// Checks that a fork sees its parent's log up to the last shared position, and no later messages.
pub async fn forks_share_the_log_up_to_their_point<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    parent.fill(5).await;
    let child = parent.fork("child", 3).await;
    let made = child.info().await;
    let segment = |first, last, chat: Chat<'_, S>| Segment {
        first: Seq(first),
        last,
        source: chat.id,
    };
    let shared = segment(1, Some(Seq(3)), parent);
    assert_eq!(made.segments, [shared, segment(4, None, child)]);
    assert_eq!((made.family, made.head), (parent.id, Seq(3)));
    assert_eq!(made.chain, Hash::ZERO, "its own log is empty");
    assert_eq!([made.tokens], *parent.running(&[Seq(3)]).await);

    parent.fill(2).await;
    let said = child.append([message("c4", "the child speaks")]).await;
    assert_eq!(said.outcomes, [Inserted(Seq(4))]);
    let parents = parent.entries().await;
    let childs = child.entries().await;
    assert_eq!(childs[..3], parents[..3]);
    assert_eq!(childs.len(), 4);
    assert_eq!(childs[3].text(), "the child speaks");
    assert_eq!(childs[3].running, childs[2].running + childs[3].tokens);
    assert_eq!(child.info().await.tokens, childs[3].running);
    assert_eq!(parent.info().await.head, Seq(7));
    let across = LogRead::new(range(2, 4)).newest_first().with_max_rows(2);
    let page = store.read(child.id, &across).await.unwrap();
    assert_eq!(page.items, [childs[3].clone(), childs[2].clone()]);
    assert_eq!(page.next, Some(range(2, 2)));

    // A fork at position 0 shares no messages. A fork at the end of the log shares all.
    let empty = parent.fork("at 0", 0).await;
    let made = empty.info().await;
    assert_eq!(
        (made.head, made.tokens, made.segments.len()),
        (Seq(0), 0, 1)
    );
    empty.fill(1).await;
    let whole = parent.fork("at the head", 7).await;
    assert_eq!(whole.entries().await, parent.entries().await);
    whole.fill(1).await;
    assert_eq!(whole.info().await.head, Seq(8));
}

/// Checks that a fork of a fork sees the logs of all its ancestors.
pub async fn forks_of_forks_see_through<S: FullStore>(store: &S) {
    let a = Chat::root(store, "a").await;
    a.fill(4).await;
    let b = a.fork("b", 3).await;
    let said = |n| message(&format!("b{n}"), &format!("b says {n}"));
    b.append((4..=6).map(said)).await;
    // Forks at a position in the parent's own log, at its start, and in the grandparent's log.
    let c = b.fork("c", 5).await;
    let d = b.fork("d", 3).await;
    let e = c.fork("e", 2).await;
    for (child, sources) in [
        (c, vec![(1, a.id), (4, b.id), (6, c.id)]),
        (d, vec![(1, a.id), (4, d.id)]),
        (e, vec![(1, a.id), (3, e.id)]),
    ] {
        let made = child.info().await;
        let segments = made.segments.iter().map(|s| (s.first.0, s.source));
        assert!(segments.eq(sources), "{:?}", made.segments);
        assert_eq!(made.family, a.id);
        child.fill(2).await;
    }
    let bs = b.texts().await;
    let cs = c.texts().await;
    assert_eq!(cs[..5], bs[..5]);
    assert_eq!(cs.len(), 7);
    assert_eq!(d.texts().await.len(), 5);
    assert_eq!(e.texts().await.len(), 4);
    let found = c.find(&["m2", "b5", "b6", "m6"].map(String::from)).await;
    assert_eq!(found, [Some(Seq(2)), Some(Seq(5)), None, Some(Seq(6))]);
}

/// Checks that a fork is refused if its parent does not exist, if it begins beyond the end of the parent's log, or if
/// its estimator is not the parent's.
pub async fn forks_beyond_the_head_are_refused<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    parent.fill(2).await;
    let other = EstimatorId::new("other", 9).unwrap();
    for (parent, at, estimator, kind) in [
        (parent.id, 3, None, ErrorKind::Invalid),
        (ConversationId(999), 0, None, ErrorKind::NotFound),
        (parent.id, 1, Some(other), ErrorKind::EstimatorMismatch),
    ] {
        let mut new = new_conversation("x", fork_of(parent, at));
        new.estimator = estimator.unwrap_or(new.estimator);
        refused(store.open(&new).await, kind);
    }
    let by_key = ConversationRef::Key("x".into());
    let found = store.conversation(&by_key).await.unwrap();
    assert_eq!(found, None, "nothing was created");
}

/// Checks that an external id is looked up only among the messages that a fork sees.
pub async fn forks_keep_their_own_external_ids<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    parent.fill(2).await;
    let child = parent.fork("child", 2).await;
    parent.append([message("later", "for the parent")]).await;
    let other = message("m1", "not what m1 said");
    let said = child
        .append([other, message("later", "for the child")])
        .await;
    assert_eq!(said.outcomes, [Conflict(Seq(1)), Inserted(Seq(3))]);
    let again = child.append([message("later", "for the child")]).await;
    assert_eq!(again.outcomes, [Duplicate(Seq(3))]);
    let shared = parent.entries().await[1].message.clone();
    let again = child.append([shared]).await;
    assert_eq!(again.outcomes, [Duplicate(Seq(2))]);
    assert_eq!(parent.texts().await[2], "for the parent");
    assert_eq!(child.texts().await[2], "for the child");
}

/// Checks that a spawned conversation belongs to its parent's family and shares no messages with the parent.
pub async fn spawned_conversations_share_no_log<S: FullStore>(store: &S) {
    let parent = Chat::root(store, "parent").await;
    parent.fill(3).await;
    let spawn = |parent| Origin::Spawn {
        parent,
        at: Seq(2),
        call: Some("call-1".to_owned()),
    };
    let agent = Chat::open(store, &new_conversation("agent", spawn(parent.id))).await;
    let made = agent.info().await;
    assert_eq!(
        (made.head, made.tokens, made.family),
        (Seq(0), 0, parent.id)
    );
    agent.append([message("m1", "its own first")]).await;
    assert_eq!(agent.texts().await, ["its own first"]);
    assert_eq!(agent.info().await.origin, spawn(parent.id));
    let orphan = new_conversation("orphan", spawn(ConversationId(999)));
    refused(store.open(&orphan).await, ErrorKind::NotFound);
    // A fork of a spawned conversation belongs to the same family.
    let forked = agent.fork("forked", 1).await;
    assert_eq!(forked.info().await.family, parent.id);
}

/// Checks that every call for a conversation that does not exist returns `NotFound`.
pub async fn missing_conversations_are_not_found<S: FullStore>(store: &S) {
    Chat::root(store, "some other").await;
    let none = ConversationId(77);
    let view = ViewName::from("dag");
    let id = SummaryId::new("sum_0123456789abcdef");
    let job = JobKey("job".to_owned());
    let fence = Fence {
        conversation: none,
        key: job.clone(),
        token: 1,
    };
    let snapshot = Snapshot {
        conversation: none,
        head: Seq(0),
        log_tokens: 0,
        view: view.clone(),
        version: ViewVersion(0),
        saved: 0,
        spans: 1,
        erasures: 0,
    };
    let empty = batch(AppendAt::Any, [entry(message("m", "text"))]);
    let publish = over_raw("dag", range(1, 1), vec![raw(range(1, 1))]);
    let owner = Owner("me".to_owned());
    let now = Timestamp(1);
    let patch = ConversationPatch::default();
    macro_rules! not_found {
        ($($call:expr),* $(,)?) => {
            $(
                let error = $call.await.expect_err(stringify!($call));
                assert_eq!(error.kind(), ErrorKind::NotFound, "{}: {error}", stringify!($call));
            )*
        };
    }
    for id in [none, ConversationId(0), ConversationId(u32::MAX)] {
        let found = store.conversation(&ConversationRef::Id(id)).await;
        assert_eq!(found.unwrap(), None);
    }
    let ttl = Duration::from_secs(60);
    not_found!(
        store.update(none, &patch, now),
        store.append(none, &empty),
        store.read(none, &LogRead::new(range(1, 1))),
        store.running(none, &[Seq(1)]),
        store.seq_at(none, 1),
        store.find(none, &["m".to_owned()]),
        store.snapshot(none, &view),
        store.views(none),
        store.spans(&snapshot, range(1, 1), Order::OldestFirst, 1),
        store.publish(none, &publish),
        store.publications(none, &view, ViewVersion(0), 1),
        store.summaries(none, std::slice::from_ref(&id)),
        store.summary_log(none, None, 1),
        store.parents(none, &id),
        store.summaries_by_source(none, &[(Hash::ZERO, Recipe::new("r"))]),
        store.publish_all(none, std::slice::from_ref(&publish)),
        store.claim_all(none, std::slice::from_ref(&job), &owner, ttl, 0),
        store.claim(none, &job, &owner, ttl, 0),
        store.settle(&fence, &LeaseUpdate::Release),
        store.state(none, "k"),
        store.put_state(none, "k", 0, None),
    );
}
