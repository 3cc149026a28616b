//! What a fork takes over: views cut at its point, and the summaries of what it shares.

use memory_model::{
    Accounting, ConversationId, Seq, Span, SpanBody, Summary, SummaryId, Timestamp, TrimPolicyId,
    ViewName, ViewVersion,
};
use memory_search::{Query, Search, SegmentSearch};
use memory_store::{Conversation, ErrorKind, NewConversation, Origin, Store};

use crate::Fixture;
use crate::builders::{
    PlainCounts, Source, append, expand, fill, message, publish_summary, range, raw, replace, root,
    shown, sound, spans_of_view, summary_of,
};

pub(super) async fn fork<S: Store>(
    store: &S,
    key: &str,
    parent: ConversationId,
    at: u32,
) -> Conversation {
    let origin = Origin::Fork {
        parent,
        at: Seq(at),
    };
    let new = NewConversation {
        origin,
        ..NewConversation::root(key, PlainCounts.estimator_id(), Timestamp(9))
    };
    store.open(&new).await.unwrap()
}

async fn leaf<S: Store>(
    store: &S,
    id: ConversationId,
    view: &str,
    first: u32,
    last: u32,
) -> Summary {
    let sources = [Source::Messages(range(first, last))];
    let leaf = summary_of(store, id, &sources, &format!("leaf {first} to {last}")).await;
    publish_summary(store, id, view, &leaf).await;
    leaf
}

async fn condensed<S: Store>(
    store: &S,
    id: ConversationId,
    view: &str,
    of: &[&Summary],
) -> Summary {
    let sources: Vec<Source<'_>> = of.iter().map(|part| Source::Summary(part)).collect();
    let text = format!("condensed from {}", of[0].range.first);
    let made = summary_of(store, id, &sources, &text).await;
    publish_summary(store, id, view, &made).await;
    made
}

/// Leaves of five messages over 1..40, two condensed ones of four leaves each, one over both, and
/// a leaf 41..45; the head is 50.
async fn compacted<S: Store>(store: &S, id: ConversationId) -> (Vec<Summary>, [Summary; 3]) {
    fill(store, id, 50).await;
    let mut leaves = Vec::new();
    for n in 0..9 {
        leaves.push(leaf(store, id, "dag", n * 5 + 1, n * 5 + 5).await);
    }
    let [a, b, c, d, e, f, g, h, _] = &leaves[..] else {
        unreachable!("nine leaves were made");
    };
    let low = condensed(store, id, "dag", &[a, b, c, d]).await;
    let high = condensed(store, id, "dag", &[e, f, g, h]).await;
    let top = condensed(store, id, "dag", &[&low, &high]).await;
    (leaves, [low, high, top])
}

/// What stands in a view: where each span begins, and its summary.
async fn outline<S: Store>(
    store: &S,
    id: ConversationId,
    view: &str,
) -> Vec<(u32, Option<SummaryId>)> {
    spans_of_view(store, id, view)
        .await
        .iter()
        .map(|span| (span.range.first.0, span.body.summary().cloned()))
        .collect()
}

/// A fork begins with its parent's view: summaries that end before the point stay, the one that
/// crosses it is opened until only messages cross.
pub async fn a_fork_inherits_the_view_cut_at_its_point<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let (leaves, [low, high, top]) = compacted(&store, chat.id).await;
    let id = |summary: &Summary| Some(summary.id.clone());
    let before = outline(&store, chat.id, "dag").await;
    let expected = [
        // Nothing, within the first leaf, at its end.
        (0, vec![(1, None)]),
        (3, vec![(1, None)]),
        (5, vec![(1, id(&leaves[0])), (6, None)]),
        (
            13,
            vec![(1, id(&leaves[0])), (6, id(&leaves[1])), (11, None)],
        ),
        (20, vec![(1, id(&low)), (21, None)]),
        (27, vec![(1, id(&low)), (21, id(&leaves[4])), (26, None)]),
        (
            39,
            vec![
                (1, id(&low)),
                (21, id(&leaves[4])),
                (26, id(&leaves[5])),
                (31, id(&leaves[6])),
                (36, None),
            ],
        ),
        (40, vec![(1, id(&top)), (41, None)]),
        (43, vec![(1, id(&top)), (41, None)]),
        (45, vec![(1, id(&top)), (41, id(&leaves[8])), (46, None)]),
        (50, vec![(1, id(&top)), (41, id(&leaves[8])), (46, None)]),
    ];
    for (at, spans) in expected {
        let child = fork(&store, &format!("at {at}"), chat.id, at).await;
        assert_eq!(outline(&store, child.id, "dag").await, spans, "at {at}");
        let snapshot = store.snapshot(child.id, &ViewName::from("dag")).await;
        let snapshot = snapshot.unwrap();
        let published = u64::from(spans.len() > 1);
        assert_eq!(snapshot.version, ViewVersion(published), "at {at}");
        let running = store.running(child.id, &[Seq(at)]).await.unwrap();
        assert_eq!(snapshot.log_tokens, running[0], "at {at}");
        let kept = spans_of_view(&store, child.id, "dag").await;
        let saved: i64 = [&low, &high, &top]
            .into_iter()
            .chain(&leaves)
            .filter(|s| kept.iter().any(|span| span.body.summary() == Some(&s.id)))
            .map(|s| covers(&expand_all(&leaves, s)) - s.tokens as i64)
            .sum();
        assert_eq!(snapshot.saved, saved, "at {at}");
    }
    assert_eq!(outline(&store, chat.id, "dag").await, before);
    sound(&store).await;
}

/// The leaves under a summary over whole leaves.
fn expand_all<'a>(leaves: &'a [Summary], summary: &Summary) -> Vec<&'a Summary> {
    let within = |leaf: &&Summary| summary.range.covers(&leaf.range);
    leaves.iter().filter(within).collect()
}

/// What the messages under leaves cost.
fn covers(leaves: &[&Summary]) -> i64 {
    leaves.iter().map(|leaf| leaf.source_tokens as i64).sum()
}

/// Each view of the parent is inherited on its own; what is omitted is cut, what is shortened is
/// raw where the point falls into it.
pub async fn a_fork_inherits_every_view<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 12).await;
    let made = leaf(&store, chat.id, "dag", 1, 8).await;
    let trimmed = SpanBody::Trimmed(TrimPolicyId::new("t@1"));
    for (first, last, body, tokens) in [
        (1, 2, trimmed.clone(), 3),
        (3, 6, SpanBody::Omitted, 0),
        (7, 12, trimmed.clone(), 9),
    ] {
        let at = range(first, last);
        let spans = vec![Span::closed(at, body, tokens)];
        let publish = replace("blocks", at, vec![raw(at)], spans, vec![]);
        store.publish(chat.id, &publish).await.unwrap();
    }
    let bodies = async |id, view| -> Vec<(u32, SpanBody)> {
        let spans = spans_of_view(&store, id, view).await;
        spans
            .into_iter()
            .map(|span| (span.range.first.0, span.body))
            .collect()
    };
    let child = fork(&store, "at 5", chat.id, 5).await;
    assert_eq!(bodies(child.id, "dag").await, [(1, SpanBody::Raw)]);
    assert_eq!(
        bodies(child.id, "blocks").await,
        [
            (1, trimmed.clone()),
            (3, SpanBody::Omitted),
            (6, SpanBody::Raw)
        ]
    );
    let names = async |id| -> Vec<(String, u64)> {
        let views = store.views(id).await.unwrap();
        views
            .into_iter()
            .map(|v| (v.name.to_string(), v.spans))
            .collect()
    };
    assert_eq!(names(child.id).await, [("blocks".to_owned(), 3)]);
    let child = fork(&store, "at 9", chat.id, 9).await;
    let shows = SpanBody::Summary {
        id: made.id.clone(),
        depth: 0,
    };
    assert_eq!(
        bodies(child.id, "dag").await,
        [(1, shows), (9, SpanBody::Raw)]
    );
    assert_eq!(
        bodies(child.id, "blocks").await,
        [(1, trimmed), (3, SpanBody::Omitted), (7, SpanBody::Raw)]
    );
    assert_eq!(names(child.id).await.len(), 2);
    sound(&store).await;
}

/// A fork sees its ancestors' summaries as far as they cover what it shares, whenever they were
/// made, and no others; nobody sees a fork's.
pub async fn summaries_are_seen_with_what_they_cover<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 20).await;
    let early = leaf(&store, chat.id, "dag", 1, 4).await;
    let child = fork(&store, "child", chat.id, 10).await;
    let other = fork(&store, "other", chat.id, 10).await;
    let late = leaf(&store, chat.id, "dag", 5, 8).await;
    let beyond = leaf(&store, chat.id, "dag", 9, 12).await;
    let whole = condensed(&store, chat.id, "dag", &[&early, &late]).await;
    fill(&store, child.id, 6).await;
    let own = leaf(&store, child.id, "dag", 9, 14).await;
    let made = [&early, &late, &beyond, &whole, &own];

    let seen = async |id| -> Vec<bool> {
        let ids = made.map(|s| s.id.clone());
        let found = store.summaries(id, &ids).await.unwrap();
        let log = store.summary_log(id, None, 100).await.unwrap().items;
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = store.summary_log(id, after.as_ref(), 1).await.unwrap();
            listed.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, log, "in pages of 1");
        let mut seen = Vec::new();
        for (summary, found) in made.iter().zip(found) {
            let source = [(summary.source_hash, summary.recipe.clone())];
            let again = store.summaries_by_source(id, &source).await.unwrap();
            let again = again.into_iter().flatten().next();
            assert_eq!(again.is_some(), found.is_some(), "{}", summary.text());
            assert_eq!(log.contains(summary), found.is_some(), "{}", summary.text());
            assert!(found.as_ref().is_none_or(|found| found == *summary));
            seen.push(found.is_some());
        }
        seen
    };
    assert_eq!(seen(chat.id).await, [true, true, true, true, false]);
    assert_eq!(seen(child.id).await, [true, true, false, true, true]);
    assert_eq!(seen(other.id).await, [true, true, false, true, false]);
    let order = store.summary_log(child.id, None, 9).await.unwrap().items;
    let order: Vec<&SummaryId> = order.iter().map(|s| &s.id).collect();
    assert_eq!(order, [&early.id, &late.id, &whole.id, &own.id]);
    // Its own without its ancestors', whole and in pages.
    let mine = store.own_summaries(child.id, None, 9).await.unwrap();
    assert_eq!(
        (mine.items.as_slice(), mine.next),
        ([own.clone()].as_slice(), None)
    );
    let page = store.own_summaries(chat.id, None, 3).await.unwrap();
    assert_eq!(page.items, [early.clone(), late.clone(), beyond.clone()]);
    assert_eq!(page.next.as_ref(), Some(&beyond.id));
    let page = store
        .own_summaries(chat.id, Some(&beyond.id), 3)
        .await
        .unwrap();
    assert_eq!(
        (page.items.as_slice(), page.next),
        ([whole.clone()].as_slice(), None)
    );
    let foreign = store.own_summaries(child.id, Some(&early.id), 3).await;
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::NotFound);

    let up = async |id, s: &Summary| store.parents(id, &s.id).await.unwrap();
    assert_eq!(up(child.id, &early).await, std::slice::from_ref(&whole.id));
    let both = condensed(&store, child.id, "mine", &[&early, &late, &own]).await;
    assert_eq!(
        up(child.id, &early).await,
        [whole.id.clone(), both.id.clone()]
    );
    assert_eq!(up(child.id, &own).await, std::slice::from_ref(&both.id));
    assert_eq!(up(chat.id, &early).await, std::slice::from_ref(&whole.id));
    assert_eq!(up(other.id, &own).await, []);
    let positions: Vec<Seq> = (1..=14).map(Seq).collect();
    assert_eq!(expand(&store, child.id, &both.id).await, positions);

    // What is not seen cannot be shown.
    let at = range(9, 12);
    fill(&store, other.id, 2).await;
    let publish = replace("dag", at, vec![raw(at)], vec![shown(&beyond)], vec![]);
    let error = store.publish(other.id, &publish).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let query = Query::new("leaf 9 to 12");
    let hits = SegmentSearch::without_index(&store)
        .search(child.id, &query)
        .await;
    assert_eq!(hits.unwrap().hits, []);
    sound(&store).await;
}

/// Parent and child may make the same summary, before or after the other; each sees it once, and
/// as it saw it first.
pub async fn the_same_summary_is_seen_once<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 10).await;
    let child = fork(&store, "child", chat.id, 8).await;
    let grandchild = fork(&store, "grandchild", child.id, 8).await;
    let at = range(1, 4);
    let same = summary_of(&store, chat.id, &[Source::Messages(at)], "the same").await;
    let of = |model: &str| Summary {
        model: Some(model.to_owned()),
        ..same.clone()
    };
    // The model is not part of what a summary is.
    publish_summary(&store, child.id, "dag", &of("child")).await;
    publish_summary(&store, chat.id, "dag", &of("parent")).await;
    publish_summary(&store, grandchild.id, "dag", &of("grandchild")).await;
    let model = async |id| {
        let all = store.summary_log(id, None, 9).await.unwrap().items;
        assert_eq!(all.len(), 1);
        let ids = std::slice::from_ref(&same.id);
        assert_eq!(
            store.summaries(id, ids).await.unwrap(),
            [Some(all[0].clone())]
        );
        let page = store.summary_log(id, Some(&same.id), 9).await.unwrap();
        assert_eq!(page.items, []);
        all[0].model.clone().unwrap()
    };
    assert_eq!(model(chat.id).await, "parent");
    assert_eq!(model(child.id).await, "child");
    assert_eq!(
        model(grandchild.id).await,
        "child",
        "brought again, not stored again"
    );
    let sources = [Source::Summary(&same), Source::Messages(range(5, 6))];
    for (id, text) in [(chat.id, "up"), (child.id, "up"), (grandchild.id, "other")] {
        let up = summary_of(&store, id, &sources, text).await;
        publish_summary(&store, id, "dag", &up).await;
    }
    assert_eq!(store.parents(chat.id, &same.id).await.unwrap().len(), 1);
    assert_eq!(store.parents(child.id, &same.id).await.unwrap().len(), 1);
    assert_eq!(
        store.parents(grandchild.id, &same.id).await.unwrap().len(),
        2
    );
    sound(&store).await;
}

/// A fork of a fork inherits what the fork shows, also where its point lies before the fork's own.
pub async fn forks_of_forks_inherit<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let a = root(&store, "a").await;
    fill(&store, a.id, 20).await;
    let first = leaf(&store, a.id, "dag", 1, 4).await;
    let b = fork(&store, "b", a.id, 16).await;
    fill(&store, b.id, 4).await;
    // The fork compacts what it shares by itself.
    let second = leaf(&store, b.id, "dag", 5, 8).await;
    let third = leaf(&store, b.id, "dag", 9, 18).await;
    let top = condensed(&store, b.id, "dag", &[&first, &second, &third]).await;
    let id = |summary: &Summary| Some(summary.id.clone());
    let parts = [(1, id(&first)), (5, id(&second)), (9, None)];
    let c = fork(&store, "c", b.id, 10).await;
    assert_eq!(outline(&store, c.id, "dag").await, parts);
    let d = fork(&store, "d", b.id, 17).await;
    assert_eq!(outline(&store, d.id, "dag").await, parts);
    let e = fork(&store, "e", b.id, 20).await;
    assert_eq!(
        outline(&store, e.id, "dag").await,
        [(1, id(&top)), (19, None)]
    );
    // From a fork that shares nothing of its parent's own log.
    let f = fork(&store, "f", c.id, 8).await;
    let shared = [(1, id(&first)), (5, id(&second)), (9, None)];
    assert_eq!(outline(&store, f.id, "dag").await, shared);
    let g = fork(&store, "g", f.id, 7).await;
    assert_eq!(
        outline(&store, g.id, "dag").await,
        [(1, id(&first)), (5, None)]
    );
    assert_eq!(
        store.summary_log(g.id, None, 9).await.unwrap().items,
        [first]
    );
    for child in [&c, &d, &e, &f, &g] {
        fill(&store, child.id, 4).await;
        let head = Seq(child.head.0 + 4);
        let from = spans_of_view(&store, child.id, "dag").await;
        let from = from.last().unwrap().range.first;
        let own = leaf(&store, child.id, "dag", from.0, head.0).await;
        assert_eq!(
            outline(&store, child.id, "dag").await.last().unwrap().0,
            head.0 + 1
        );
        let positions: Vec<Seq> = (from.0..=head.0).map(Seq).collect();
        assert_eq!(expand(&store, child.id, &own.id).await, positions);
    }
    sound(&store).await;
}

/// What either does after the fork leaves the other's log, views and history as they are.
pub async fn parent_and_child_go_their_own_ways<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    let (leaves, [low, ..]) = compacted(&store, chat.id).await;
    let child = fork(&store, "child", chat.id, 27).await;
    let view = ViewName::from("dag");
    let all = async |id| {
        let snapshot = store.snapshot(id, &view).await.unwrap();
        let history = store.publications(id, &view, ViewVersion(0), 99).await;
        let spans = spans_of_view(&store, id, "dag").await;
        (
            snapshot,
            history.unwrap(),
            spans,
            crate::builders::texts(&store, id).await,
        )
    };
    let parents = all(chat.id).await;
    let childs = all(child.id).await;
    append(&store, child.id, vec![message("own", "the child speaks")]).await;
    let top = condensed(&store, child.id, "dag", &[&low, &leaves[4]]).await;
    leaf(&store, child.id, "dag", 26, 28).await;
    assert_eq!(all(chat.id).await, parents);
    assert_ne!(all(child.id).await, childs);
    let childs = all(child.id).await;
    append(&store, chat.id, vec![message("own", "the parent speaks")]).await;
    leaf(&store, chat.id, "dag", 46, 51).await;
    assert_ne!(all(chat.id).await, parents);
    assert_eq!(all(child.id).await, childs);
    let ids = std::slice::from_ref(&top.id);
    assert_eq!(store.summaries(chat.id, ids).await.unwrap(), [None]);
    sound(&store).await;
}
