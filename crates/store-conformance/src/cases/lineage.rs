//! Cases of stored summaries: their fields, lookup, children and sources.

use memory_model::{
    Accounting as _, Message, RankedLine, RawJson, Recipe, Seq, SummaryBody, SummaryId, Timestamp,
};
use memory_store::{ErrorKind, FullStore};

use crate::builders::{PlainCounts, pages, range, refused};
use crate::chat::{Chat, Source};

/// Checks that every field of a stored summary is read back unchanged.
pub async fn summaries_come_back_whole<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let at = |n: i64| Timestamp(n * 7 % 5);
    let messages = (0..6).map(|n| Message::user(format!("message {n}")).with_created_at(at(n)));
    chat.append(messages).await;
    let mut full = chat.leaf(range(1, 4), "NUL \0, 'quotes\"").await;
    full.messages = Some(RawJson::parse(r#"[{"a":1.00,"a":2,"s":"\ud800"}]"#).unwrap());
    full.provisional = true;
    full.recipe = Recipe::new("recipe \0 line");
    full.tier = "cut\0".to_owned();
    full.model = Some("a model\0".to_owned());
    full.created_at = Timestamp(-5);
    full.set_hash_and_id();
    let plain = chat.leaf(range(5, 6), "").await;
    for summary in [&full, &plain] {
        chat.show("dag", summary).await;
    }
    let ids = [plain.id.clone(), full.id.clone()];
    let found = chat.summaries(&ids).await;
    assert_eq!(found, [Some(plain), Some(full)]);
}

/// Checks that summaries are looked up in the order of the given ids, and listed in the order of creation.
pub async fn summaries_are_looked_up_and_listed<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 30).await;
    let mut made = Vec::new();
    for n in 0..7u32 {
        let at = range(n * 4 + 1, n * 4 + 4);
        made.push(chat.show_leaf("dag", at, &format!("leaf {n}")).await);
    }
    let none = SummaryId::new("sum_ffffffffffffffff");
    let id = |n: usize| made[n].id.clone();
    let found = chat.summaries(&[id(3), none.clone(), id(0), id(3)]).await;
    let expected = [Some(&made[3]), None, Some(&made[0]), Some(&made[3])];
    assert_eq!(found, expected.map(|s| s.cloned()));
    assert_eq!(chat.summaries(&[]).await, []);

    for limit in [0, 1, 3, 7, 100] {
        let page = async |after: Option<_>| store.summary_log(chat.id, after.as_ref(), limit).await;
        let pages = pages(page).await;
        assert!(pages.iter().all(|page| page.len() <= limit.max(1)));
        assert_eq!(pages.concat(), made, "in pages of {limit}");
    }
    let end = store.summary_log(chat.id, Some(&made[6].id), 5).await;
    let end = end.unwrap();
    assert_eq!((end.items.len(), end.next), (0, None));
    let answer = store.summary_log(chat.id, Some(&none), 5).await;
    refused(answer, ErrorKind::NotFound);
}

/// Checks that the summaries made from a summary, its sources, and its messages are found from it.
pub async fn parents_and_sources<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let a = chat.show_leaf("dag", range(1, 3), "a").await;
    let b = chat.show_leaf("dag", range(4, 6), "b").await;
    // A mix of messages and summaries, as for an update of an earlier summary.
    let sources = [
        Source::Summary(&a),
        Source::Summary(&b),
        Source::Messages(range(7, 9)),
    ];
    let c = chat.show_summary("dag", &sources, "c").await;
    let sources = [Source::Summary(&c), Source::Messages(range(10, 11))];
    let d = chat.show_summary("dag", &sources, "d").await;
    assert_eq!((c.depth, d.depth), (1, 2));
    // A second summary made from the same leaf, in another view.
    let sources = [Source::Summary(&a), Source::Messages(range(4, 5))];
    let e = chat.show_summary("other", &sources, "e").await;

    let none = SummaryId::new("sum_none");
    for (of, parents) in [
        (&a.id, vec![&c.id, &e.id]),
        (&b.id, vec![&c.id]),
        (&c.id, vec![&d.id]),
        (&d.id, vec![]),
        (&none, vec![]),
    ] {
        assert!(chat.parents(of).await.iter().eq(parents), "{of}");
    }
    let positions: Vec<Seq> = (1..=11).map(Seq).collect();
    assert_eq!(chat.expand(&d.id).await, positions);

    let (one, two) = (Recipe::new("test@1"), Recipe::new("test@2"));
    let made = chat.summary_by_source(c.source_hash, &one).await;
    assert_eq!(made.as_ref(), Some(&c));
    assert_eq!(chat.summary_by_source(c.source_hash, &two).await, None);
    // The latest summary with the same sources and recipe.
    let newer = chat.show_leaf("third", range(1, 3), "a, again").await;
    assert_eq!(newer.source_hash, a.source_hash);
    let made = chat.summary_by_source(a.source_hash, &one).await;
    assert_eq!(made, Some(newer));
}

/// Checks that a summary keeps its sources, its children that are not sources, and the ranks of its lines.
pub async fn sources_are_separate_from_children<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let leaf = chat.show_leaf("handoff", range(1, 6), "so far").await;
    // The sources are nested and overlap, because the latest messages are also read verbatim.
    let sources = [
        Source::Summary(&leaf),
        Source::Messages(range(5, 6)),
        Source::Messages(range(7, 11)),
    ];
    let mut next = chat.flat_summary(&sources, "").await;
    let line = |text, rank| RankedLine { text, rank };
    next.body = SummaryBody::ranked([line("first", 7), line("then", 0), line("last", 255)]);
    next.tokens = PlainCounts.summary(&next);
    next.set_hash_and_id();
    assert_eq!((next.depth, next.children.len()), (0, 3));
    chat.show("handoff", &next).await;

    let ids = [next.id.clone(), leaf.id.clone()];
    let found = chat.summaries(&ids).await;
    assert_eq!(found, [Some(next.clone()), Some(leaf.clone())]);
    assert_eq!(chat.summary_log().await, [leaf.clone(), next.clone()]);
    assert_eq!(*chat.parents(&leaf.id).await, [next.id.clone()]);
    let found = chat.summary_by_source(next.source_hash, &next.recipe).await;
    assert_eq!(found.as_ref(), Some(&next));
    let positions: Vec<Seq> = (1..=11).map(Seq).collect();
    assert_eq!(chat.expand(&next.id).await, positions);
}
