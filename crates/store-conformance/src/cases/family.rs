//! Conversations and their families.

use std::time::Duration;

use memory_model::{
    Accounting, ConversationId, Hash, RawJson, Recipe, Seq, SessionKey, SummaryId, Timestamp,
    ViewName, ViewVersion,
};
use memory_store::{
    Append, AppendAt, ConversationFilter, ConversationPatch, ConversationRef, EntryOutcome,
    ErrorKind, Fence, JobKey, LeaseUpdate, LogRead, NewConversation, Order, Origin, Owner, Segment,
    Snapshot, Store,
};

use crate::Fixture;
use crate::builders::{
    PlainCounts, append, entries, entry, fill, info, message, range, raw, replace, root, sound,
    texts,
};

async fn fork<S: Store>(
    store: &S,
    key: &str,
    parent: ConversationId,
    at: u32,
) -> memory_store::Result<memory_store::Conversation> {
    let origin = Origin::Fork {
        parent,
        at: Seq(at),
    };
    let new = NewConversation {
        origin,
        ..NewConversation::root(key, PlainCounts.estimator_id(), Timestamp(9))
    };
    store.open(&new).await
}

/// Opening creates a conversation once; after that it is returned as it is.
pub async fn open_gets_or_creates<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let new = NewConversation {
        title: Some("first".to_owned()),
        meta: Some(RawJson::parse(r#"{"b":1.00,"a":1,"a":2}"#).unwrap()),
        ..NewConversation::root("chat", PlainCounts.estimator_id(), Timestamp(5))
    };
    let made = store.open(&new).await.unwrap();
    assert!(made.id.0 > 0, "numbers are positive");
    assert_eq!(made.key, SessionKey::new("chat"));
    assert_eq!(made.origin, Origin::Root);
    assert_eq!(made.family, made.id);
    let own = Segment {
        first: Seq(1),
        last: None,
        source: made.id,
    };
    assert_eq!(made.segments, [own]);
    assert_eq!((made.head, made.tokens), (Seq(0), 0));
    assert_eq!(made.chain, Hash::ZERO);
    assert_eq!(made.estimator, PlainCounts.estimator_id());
    assert_eq!(made.title, new.title);
    assert_eq!(made.meta, new.meta, "facts come back byte for byte");
    assert!(!made.archived);
    assert_eq!(
        (made.created_at, made.updated_at),
        (Timestamp(5), Timestamp(5))
    );

    let other = token_estimate::EstimatorId::new("other", 9).unwrap();
    let again = NewConversation {
        title: Some("second".to_owned()),
        ..NewConversation::root("chat", other, Timestamp(6))
    };
    assert_eq!(store.open(&again).await.unwrap(), made);
    // An existing key wins over an origin that would be refused.
    assert_eq!(
        fork(&store, "chat", ConversationId(4_000), 7)
            .await
            .unwrap(),
        made
    );
    let by_key = ConversationRef::Key("chat".into());
    assert_eq!(
        store.conversation(&by_key).await.unwrap(),
        Some(made.clone())
    );
    assert_eq!(info(&store, made.id).await, made);
    // Keys are compared byte by byte.
    for key in ["Chat", "chat ", "", "чат\0\"'%_"] {
        assert_eq!(root(&store, key).await.key.as_str(), key);
    }
    sound(&store).await;
}

/// Listing pages through conversations by number, with filters.
pub async fn conversations_are_listed_in_order<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(root(&store, &format!("c{n}")).await.id);
    }
    assert!(ids.is_sorted(), "numbers rise");
    let child = fork(&store, "child", ids[1], 0).await.unwrap();
    let patch = ConversationPatch {
        archived: Some(true),
        ..ConversationPatch::default()
    };
    store.update(ids[2], &patch, Timestamp(7)).await.unwrap();

    let mut filter = ConversationFilter::default();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(&filter, after, 2).await.unwrap();
        assert!(page.items.len() <= 2);
        found.extend(page.items.into_iter().map(|c| c.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
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
    sound(&store).await;
}

/// A patch changes what it names and nothing else.
pub async fn update_changes_what_it_names<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 2).await;
    let before = info(&store, chat.id).await;
    let patch = ConversationPatch {
        title: Some("a title".to_owned()),
        ..ConversationPatch::default()
    };
    let after = store.update(chat.id, &patch, Timestamp(50)).await.unwrap();
    let expected = memory_store::Conversation {
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
    assert_eq!(info(&store, chat.id).await, after);
    let back = ConversationPatch {
        archived: Some(false),
        ..ConversationPatch::default()
    };
    assert!(
        !store
            .update(chat.id, &back, Timestamp(52))
            .await
            .unwrap()
            .archived
    );
    sound(&store).await;
}

/// A fork sees its parent's log up to its point, and nothing later.
pub async fn forks_share_the_log_up_to_their_point<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    fill(&store, parent.id, 5).await;
    let child = fork(&store, "child", parent.id, 3).await.unwrap();
    assert_eq!(child.family, parent.id);
    assert_eq!(child.head, Seq(3));
    let shared = Segment {
        first: Seq(1),
        last: Some(Seq(3)),
        source: parent.id,
    };
    let own = Segment {
        first: Seq(4),
        last: None,
        source: child.id,
    };
    assert_eq!(child.segments, [shared, own]);
    assert_eq!(child.chain, Hash::ZERO, "its own log is empty");
    let three = store.running(parent.id, &[Seq(3)]).await.unwrap();
    assert_eq!(child.tokens, three[0]);

    fill(&store, parent.id, 2).await;
    let said = append(&store, child.id, vec![message("c4", "the child speaks")]).await;
    assert_eq!(said.outcomes, [EntryOutcome::Inserted(Seq(4))]);
    let parents = entries(&store, parent.id).await;
    let childs = entries(&store, child.id).await;
    assert_eq!(childs[..3], parents[..3]);
    assert_eq!(childs.len(), 4);
    assert_eq!(childs[3].text(), "the child speaks");
    assert_eq!(childs[3].running, childs[2].running + childs[3].tokens);
    assert_eq!(info(&store, child.id).await.tokens, childs[3].running);
    assert_eq!(info(&store, parent.id).await.head, Seq(7));
    let across = LogRead::new(range(2, 4)).newest_first().with_max_rows(2);
    let page = store.read(child.id, &across).await.unwrap();
    assert_eq!(page.items, [childs[3].clone(), childs[2].clone()]);
    assert_eq!(page.next, Some(range(2, 2)));

    // At 0 nothing is shared; at the head everything is.
    let empty = fork(&store, "at 0", parent.id, 0).await.unwrap();
    assert_eq!(
        (empty.head, empty.tokens, empty.segments.len()),
        (Seq(0), 0, 1)
    );
    fill(&store, empty.id, 1).await;
    let whole = fork(&store, "at the head", parent.id, 7).await.unwrap();
    assert_eq!(
        entries(&store, whole.id).await,
        entries(&store, parent.id).await
    );
    fill(&store, whole.id, 1).await;
    assert_eq!(info(&store, whole.id).await.head, Seq(8));
    sound(&store).await;
}

/// Forks of forks see through to every ancestor.
pub async fn forks_of_forks_see_through<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let a = root(&store, "a").await;
    fill(&store, a.id, 4).await;
    let b = fork(&store, "b", a.id, 3).await.unwrap();
    append(
        &store,
        b.id,
        (4..=6)
            .map(|n| message(&format!("b{n}"), &format!("b says {n}")))
            .collect(),
    )
    .await;
    // Within the parent's own log, at its start, and within the grandparent's.
    let c = fork(&store, "c", b.id, 5).await.unwrap();
    let d = fork(&store, "d", b.id, 3).await.unwrap();
    let e = fork(&store, "e", c.id, 2).await.unwrap();
    let sources = |c: &memory_store::Conversation| -> Vec<_> {
        c.segments.iter().map(|s| (s.first.0, s.source)).collect()
    };
    assert_eq!(sources(&c), [(1, a.id), (4, b.id), (6, c.id)]);
    assert_eq!(sources(&d), [(1, a.id), (4, d.id)]);
    assert_eq!(sources(&e), [(1, a.id), (3, e.id)]);
    for child in [&c, &d, &e] {
        assert_eq!(child.family, a.id);
        fill(&store, child.id, 2).await;
    }
    let bs = texts(&store, b.id).await;
    let cs = texts(&store, c.id).await;
    assert_eq!(cs[..5], bs[..5]);
    assert_eq!(cs.len(), 7);
    assert_eq!(texts(&store, d.id).await.len(), 5);
    assert_eq!(texts(&store, e.id).await.len(), 4);
    let found = store
        .find(c.id, &["m2".into(), "b5".into(), "b6".into(), "m6".into()])
        .await
        .unwrap();
    assert_eq!(found, [Some(Seq(2)), Some(Seq(5)), None, Some(Seq(6))]);
    sound(&store).await;
}

/// A fork needs its parent, its point and its estimator.
pub async fn forks_beyond_the_head_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    fill(&store, parent.id, 2).await;
    let beyond = fork(&store, "x", parent.id, 3).await.unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::Invalid, "{beyond}");
    let orphan = fork(&store, "x", ConversationId(999), 0).await.unwrap_err();
    assert_eq!(orphan.kind(), ErrorKind::NotFound, "{orphan}");
    let origin = Origin::Fork {
        parent: parent.id,
        at: Seq(1),
    };
    let other = token_estimate::EstimatorId::new("other", 9).unwrap();
    let new = NewConversation {
        origin,
        ..NewConversation::root("x", other, Timestamp(9))
    };
    let mixed = store.open(&new).await.unwrap_err();
    assert_eq!(mixed.kind(), ErrorKind::EstimatorMismatch, "{mixed}");
    let by_key = ConversationRef::Key("x".into());
    assert_eq!(
        store.conversation(&by_key).await.unwrap(),
        None,
        "nothing was created"
    );
    sound(&store).await;
}

/// External ids are looked up in what is visible, and only there.
pub async fn forks_keep_their_own_external_ids<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    fill(&store, parent.id, 2).await;
    let child = fork(&store, "child", parent.id, 2).await.unwrap();
    append(&store, parent.id, vec![message("later", "for the parent")]).await;
    let said = append(
        &store,
        child.id,
        vec![
            message("m1", "not what m1 said"),
            message("later", "for the child"),
        ],
    )
    .await;
    assert_eq!(
        said.outcomes,
        [
            EntryOutcome::Conflict(Seq(1)),
            EntryOutcome::Inserted(Seq(3))
        ]
    );
    let again = append(&store, child.id, vec![message("later", "for the child")]).await;
    assert_eq!(again.outcomes, [EntryOutcome::Duplicate(Seq(3))]);
    let shared = entries(&store, parent.id).await[1].message.clone();
    let again = append(&store, child.id, vec![shared]).await;
    assert_eq!(again.outcomes, [EntryOutcome::Duplicate(Seq(2))]);
    assert_eq!(texts(&store, parent.id).await[2], "for the parent");
    assert_eq!(texts(&store, child.id).await[2], "for the child");
    sound(&store).await;
}

/// A spawned conversation belongs to the family and shares no log.
pub async fn spawned_conversations_share_nothing<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let parent = root(&store, "parent").await;
    fill(&store, parent.id, 3).await;
    let origin = Origin::Spawn {
        parent: parent.id,
        at: Seq(2),
        call: Some("call-1".to_owned()),
    };
    let new = NewConversation {
        origin: origin.clone(),
        ..NewConversation::root("agent", PlainCounts.estimator_id(), Timestamp(9))
    };
    let agent = store.open(&new).await.unwrap();
    assert_eq!(
        (agent.head, agent.tokens, agent.family),
        (Seq(0), 0, parent.id)
    );
    assert_eq!(agent.origin, origin);
    append(&store, agent.id, vec![message("m1", "its own first")]).await;
    assert_eq!(texts(&store, agent.id).await, ["its own first"]);
    assert_eq!(info(&store, agent.id).await.origin, origin);
    let origin = Origin::Spawn {
        parent: ConversationId(999),
        at: Seq(0),
        call: None,
    };
    let new = NewConversation {
        origin,
        ..NewConversation::root("orphan", PlainCounts.estimator_id(), Timestamp(9))
    };
    assert_eq!(
        store.open(&new).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // A fork of a spawned conversation is of the same family.
    let forked = fork(&store, "forked", agent.id, 1).await.unwrap();
    assert_eq!(forked.family, parent.id);
    sound(&store).await;
}

/// Every call that names a conversation says so when there is none.
pub async fn missing_conversations_are_not_found<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    root(&store, "some other").await;
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
    let empty = Append {
        at: AppendAt::Any,
        estimator: PlainCounts.estimator_id(),
        entries: vec![entry(message("m", "text"))],
        now: Timestamp(1),
    };
    let publish = replace(
        "dag",
        range(1, 1),
        vec![raw(range(1, 1))],
        vec![raw(range(1, 1))],
        vec![],
    );
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
    assert_eq!(
        store
            .conversation(&ConversationRef::Id(none))
            .await
            .unwrap(),
        None
    );
    for id in [ConversationId(0), ConversationId(u32::MAX)] {
        assert_eq!(
            store.conversation(&ConversationRef::Id(id)).await.unwrap(),
            None
        );
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
    sound(&store).await;
}
