//! Summaries: stored whole, found again, linked both ways.

use memory_model::{
    Accounting as _, Message, RankedLine, RawJson, Recipe, Seq, SummaryBody, SummaryId, Timestamp,
};
use memory_store::{ErrorKind, Store};

use crate::Fixture;
use crate::builders::{
    PlainCounts, Source, append, expand, fill, flat_summary_of, publish_summary, range, root,
    sound, summary_of,
};

/// Every field of a summary comes back.
pub async fn summaries_come_back_whole<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let at = Timestamp(-5);
    let messages = (0..6).map(|n| {
        Message::user(format!("message {n}")).with_created_at(Timestamp(i64::from((n * 7) % 5)))
    });
    append(&store, chat.id, messages.collect()).await;
    let sources = [Source::Messages(range(1, 4))];
    let mut full = summary_of(&store, chat.id, &sources, "NUL \0, 'quotes\"").await;
    full.messages = Some(RawJson::parse(r#"[{"a":1.00,"a":2,"s":"\ud800"}]"#).unwrap());
    full.provisional = true;
    full.recipe = Recipe::new("recipe \0 line");
    full.tier = "cut\0".to_owned();
    full.model = Some("a model\0".to_owned());
    full.created_at = at;
    full.set_hash_and_id();
    let plain = summary_of(&store, chat.id, &[Source::Messages(range(5, 6))], "").await;
    for summary in [&full, &plain] {
        publish_summary(&store, chat.id, "dag", summary).await;
    }
    let ids = [plain.id.clone(), full.id.clone()];
    let found = store.summaries(chat.id, &ids).await.unwrap();
    assert_eq!(found, [Some(plain), Some(full)]);
    sound(&store).await;
}

/// Look-ups answer in the order asked; the log lists summaries in the order of their making.
pub async fn summaries_are_looked_up_and_listed<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 30).await;
    let mut made = Vec::new();
    for n in 0..7u32 {
        let at = range(n * 4 + 1, n * 4 + 4);
        let leaf = summary_of(
            &store,
            chat.id,
            &[Source::Messages(at)],
            &format!("leaf {n}"),
        )
        .await;
        publish_summary(&store, chat.id, "dag", &leaf).await;
        made.push(leaf);
    }
    let none = SummaryId::new("sum_ffffffffffffffff");
    let ids = [
        made[3].id.clone(),
        none.clone(),
        made[0].id.clone(),
        made[3].id.clone(),
    ];
    let found = store.summaries(chat.id, &ids).await.unwrap();
    let expected = [Some(&made[3]), None, Some(&made[0]), Some(&made[3])];
    assert_eq!(found, expected.map(|s| s.cloned()));
    assert_eq!(store.summaries(chat.id, &[]).await.unwrap(), []);

    for limit in [0, 1, 3, 7, 100] {
        let mut listed = Vec::new();
        let mut after: Option<SummaryId> = None;
        loop {
            let page = store
                .summary_log(chat.id, after.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.items.len() <= limit.max(1));
            listed.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, made, "in pages of {limit}");
    }
    let end = store
        .summary_log(chat.id, Some(&made[6].id), 5)
        .await
        .unwrap();
    assert_eq!((end.items.len(), end.next), (0, None));
    let error = store
        .summary_log(chat.id, Some(&none), 5)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    sound(&store).await;
}

/// A summary leads to what was made from it, to its sources, and to the messages.
pub async fn parents_and_sources<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 12).await;
    let a = summary_of(&store, chat.id, &[Source::Messages(range(1, 3))], "a").await;
    let b = summary_of(&store, chat.id, &[Source::Messages(range(4, 6))], "b").await;
    publish_summary(&store, chat.id, "dag", &a).await;
    publish_summary(&store, chat.id, "dag", &b).await;
    // Messages and summaries mixed, as an update of an earlier summary needs.
    let sources = [
        Source::Summary(&a),
        Source::Summary(&b),
        Source::Messages(range(7, 9)),
    ];
    let c = summary_of(&store, chat.id, &sources, "c").await;
    publish_summary(&store, chat.id, "dag", &c).await;
    let sources = [Source::Summary(&c), Source::Messages(range(10, 11))];
    let d = summary_of(&store, chat.id, &sources, "d").await;
    publish_summary(&store, chat.id, "dag", &d).await;
    assert_eq!((c.depth, d.depth), (1, 2));
    // A second parent of the same leaf, in another view.
    let sources = [Source::Summary(&a), Source::Messages(range(4, 5))];
    let e = summary_of(&store, chat.id, &sources, "e").await;
    publish_summary(&store, chat.id, "other", &e).await;

    let parents = async |id: &SummaryId| store.parents(chat.id, id).await.unwrap();
    assert_eq!(parents(&a.id).await, [c.id.clone(), e.id.clone()]);
    assert_eq!(parents(&b.id).await, std::slice::from_ref(&c.id));
    assert_eq!(parents(&c.id).await, std::slice::from_ref(&d.id));
    assert_eq!(parents(&d.id).await, []);
    assert_eq!(parents(&SummaryId::new("sum_none")).await, []);
    let positions: Vec<Seq> = (1..=11).map(Seq).collect();
    assert_eq!(expand(&store, chat.id, &d.id).await, positions);

    let made = async |s: &memory_model::Summary, recipe: &str| {
        let recipe = Recipe::new(recipe);
        let source = [(s.source_hash, recipe)];
        let found = store.summaries_by_source(chat.id, &source).await;
        found.unwrap().remove(0).map(|found| found.id)
    };
    assert_eq!(made(&c, "test@1").await, Some(c.id.clone()));
    assert_eq!(made(&c, "test@2").await, None);
    // The newest of the same sources by the same recipe.
    let newer = summary_of(
        &store,
        chat.id,
        &[Source::Messages(range(1, 3))],
        "a, again",
    )
    .await;
    assert_eq!(newer.source_hash, a.source_hash);
    publish_summary(&store, chat.id, "third", &newer).await;
    assert_eq!(made(&a, "test@1").await, Some(newer.id));
    sound(&store).await;
}

/// A summary keeps what its writer saw apart from what it unfolds to, and the ranks of its lines.
pub async fn sources_stand_apart_from_children<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 12).await;
    let leaf = summary_of(&store, chat.id, &[Source::Messages(range(1, 6))], "so far").await;
    publish_summary(&store, chat.id, "handoff", &leaf).await;
    // Its sources are nested and overlap: what was said last is read word for word, too.
    let sources = [
        Source::Summary(&leaf),
        Source::Messages(range(5, 6)),
        Source::Messages(range(7, 11)),
    ];
    let mut next = flat_summary_of(&store, chat.id, &sources, "").await;
    let line = |text, rank| RankedLine { text, rank };
    next.body = SummaryBody::ranked([line("first", 7), line("then", 0), line("last", 255)]);
    next.tokens = PlainCounts.summary(&next);
    next.set_hash_and_id();
    assert_eq!((next.depth, next.children.len()), (0, 3));
    publish_summary(&store, chat.id, "handoff", &next).await;

    let ids = [next.id.clone(), leaf.id.clone()];
    let found = store.summaries(chat.id, &ids).await.unwrap();
    assert_eq!(found, [Some(next.clone()), Some(leaf.clone())]);
    let page = store.summary_log(chat.id, None, 10).await.unwrap();
    assert_eq!(page.items, [leaf.clone(), next.clone()]);
    let parents = store.parents(chat.id, &leaf.id).await.unwrap();
    assert_eq!(parents, std::slice::from_ref(&next.id));
    let source = [(next.source_hash, next.recipe.clone())];
    let found = store.summaries_by_source(chat.id, &source).await.unwrap();
    assert_eq!(found, [Some(next.clone())]);
    let positions: Vec<Seq> = (1..=11).map(Seq).collect();
    assert_eq!(expand(&store, chat.id, &next.id).await, positions);
    sound(&store).await;
}
