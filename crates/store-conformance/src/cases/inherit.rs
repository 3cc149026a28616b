//! Cases of forks: their first views, and the summaries that they share with their parents.

use memory_model::{Seq, Span, SpanBody, Summary, SummaryId, TrimPolicyId, ViewVersion};
use memory_store::{ErrorKind, FullStore, Store};

use crate::builders::{message, over_raw, pages, range, refused, shown};
use crate::chat::{Chat, Source};

impl<S: Store + ?Sized> Chat<'_, S> {
    async fn leaf_over(&self, view: &str, first: u32, last: u32) -> Summary {
        let text = format!("leaf {first} to {last}");
        self.show_leaf(view, range(first, last), &text).await
    }

    async fn condensed(&self, view: &str, of: &[&Summary]) -> Summary {
        let sources: Vec<Source<'_>> = of.iter().map(|part| Source::Summary(part)).collect();
        let text = format!("condensed from {}", of[0].range.first);
        self.show_summary(view, &sources, &text).await
    }

    /// Publishes leaves of five messages each over positions 1 to 40, two condensed summaries of four leaves each, one
    /// summary over both, and a leaf over 41 to 45. The log ends at 50.
    async fn compacted(&self) -> (Vec<Summary>, [Summary; 3]) {
        self.fill(50).await;
        let mut leaves = Vec::new();
        for n in 0..9 {
            leaves.push(self.leaf_over("dag", n * 5 + 1, n * 5 + 5).await);
        }
        let [a, b, c, d, e, f, g, h, _] = &leaves[..] else {
            unreachable!("nine leaves were made");
        };
        let low = self.condensed("dag", &[a, b, c, d]).await;
        let high = self.condensed("dag", &[e, f, g, h]).await;
        let top = self.condensed("dag", &[&low, &high]).await;
        (leaves, [low, high, top])
    }

    /// Returns the first positions of a view's spans, each with the summary that the span shows.
    async fn outline(&self, view: &str) -> Vec<(u32, Option<SummaryId>)> {
        let spans = self.spans(view).await.into_iter();
        let outline = spans.map(|span| (span.range.first.0, span.body.summary().cloned()));
        outline.collect()
    }
}

/// Checks that a fork begins with its parent's view, cut after the last shared position. Summaries that end at or
/// before this position stay. A summary that continues after it is replaced by its children, repeatedly, until only raw
/// messages continue.
pub async fn a_fork_inherits_the_view_cut_at_its_point<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let (leaves, [low, high, top]) = chat.compacted().await;
    let id = |summary: &Summary| Some(summary.id.clone());
    let before = chat.outline("dag").await;
    let leaf = |n: usize| id(&leaves[n]);
    let expected = [
        // Cuts after no messages, within the first leaf, at its end, and so on.
        (0, vec![(1, None)]),
        (3, vec![(1, None)]),
        (5, vec![(1, leaf(0)), (6, None)]),
        (13, vec![(1, leaf(0)), (6, leaf(1)), (11, None)]),
        (20, vec![(1, id(&low)), (21, None)]),
        (27, vec![(1, id(&low)), (21, leaf(4)), (26, None)]),
        (40, vec![(1, id(&top)), (41, None)]),
        (43, vec![(1, id(&top)), (41, None)]),
        (45, vec![(1, id(&top)), (41, leaf(8)), (46, None)]),
        (50, vec![(1, id(&top)), (41, leaf(8)), (46, None)]),
        (
            39,
            vec![
                (1, id(&low)),
                (21, leaf(4)),
                (26, leaf(5)),
                (31, leaf(6)),
                (36, None),
            ],
        ),
    ];
    // Returns the cost of the messages under a summary over whole leaves.
    let covered = |summary: &Summary| -> i64 {
        let leaves = leaves
            .iter()
            .filter(|leaf| summary.range.covers(&leaf.range));
        leaves.map(|leaf| leaf.source_tokens as i64).sum()
    };
    for (at, spans) in expected {
        let child = chat.fork(&format!("at {at}"), at).await;
        assert_eq!(child.outline("dag").await, spans, "at {at}");
        let snapshot = child.snapshot("dag").await;
        let published = u64::from(spans.len() > 1);
        assert_eq!(snapshot.version, ViewVersion(published), "at {at}");
        let running = child.running(&[Seq(at)]).await;
        assert_eq!(snapshot.log_tokens, running[0], "at {at}");
        let kept = child.spans("dag").await;
        let saved: i64 = [&low, &high, &top]
            .into_iter()
            .chain(&leaves)
            .filter(|s| kept.iter().any(|span| span.body.summary() == Some(&s.id)))
            .map(|s| covered(s) - s.tokens as i64)
            .sum();
        assert_eq!(snapshot.saved, saved, "at {at}");
    }
    assert_eq!(chat.outline("dag").await, before);
}

/// Checks that a fork inherits each view of its parent separately. An omitted span is cut, and a trimmed span that
/// continues after the last shared position becomes raw.
pub async fn a_fork_inherits_every_view<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let made = chat.leaf_over("dag", 1, 8).await;
    let trimmed = SpanBody::Trimmed(TrimPolicyId::new("t@1"));
    for (first, last, body, tokens) in [
        (1, 2, &trimmed, 3),
        (3, 6, &SpanBody::Omitted, 0),
        (7, 12, &trimmed, 9),
    ] {
        let at = range(first, last);
        let spans = vec![Span::closed(at, body.clone(), tokens)];
        chat.put("blocks", at, spans, vec![]).await;
    }
    let bodies = async |chat: Chat<'_, S>, view| -> Vec<(u32, SpanBody)> {
        let spans = chat.spans(view).await.into_iter();
        spans.map(|span| (span.range.first.0, span.body)).collect()
    };
    let names = async |chat: Chat<'_, S>| -> Vec<(String, u64)> {
        let views = chat.views().await.into_iter();
        views.map(|v| (v.name.to_string(), v.spans)).collect()
    };
    let (raw, omitted) = (SpanBody::Raw, SpanBody::Omitted);
    let child = chat.fork("at 5", 5).await;
    assert_eq!(bodies(child, "dag").await, [(1, raw.clone())]);
    let blocks = [(1, trimmed.clone()), (3, omitted.clone()), (6, raw.clone())];
    assert_eq!(bodies(child, "blocks").await, blocks);
    assert_eq!(names(child).await, [("blocks".to_owned(), 3)]);
    let child = chat.fork("at 9", 9).await;
    let dag = [(1, shown(&made).body), (9, raw.clone())];
    assert_eq!(bodies(child, "dag").await, dag);
    let blocks = [(1, trimmed), (3, omitted), (7, raw)];
    assert_eq!(bodies(child, "blocks").await, blocks);
    assert_eq!(names(child).await.len(), 2);
}

/// Checks that a fork sees those summaries of its ancestors that cover only shared positions, made at any time. Other
/// conversations must not see a fork's summaries.
pub async fn summaries_of_shared_messages_are_visible<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 20).await;
    let early = chat.leaf_over("dag", 1, 4).await;
    let child = chat.fork("child", 10).await;
    let other = chat.fork("other", 10).await;
    let late = chat.leaf_over("dag", 5, 8).await;
    let beyond = chat.leaf_over("dag", 9, 12).await;
    let whole = chat.condensed("dag", &[&early, &late]).await;
    child.fill(6).await;
    let own = child.leaf_over("dag", 9, 14).await;
    let made = [&early, &late, &beyond, &whole, &own];

    let seen = async |chat: Chat<'_, S>| -> [bool; 5] {
        let found = chat.summaries(&made.map(|s| s.id.clone())).await;
        let log = chat.summary_log().await;
        let page = async |after: Option<_>| store.summary_log(chat.id, after.as_ref(), 1).await;
        assert_eq!(pages(page).await.concat(), log, "in pages of 1");
        for (summary, found) in made.iter().zip(&found) {
            let again = chat
                .summary_by_source(summary.source_hash, &summary.recipe)
                .await;
            assert_eq!(again.is_some(), found.is_some(), "{}", summary.text());
            assert_eq!(log.contains(summary), found.is_some(), "{}", summary.text());
            assert!(found.as_ref().is_none_or(|found| found == *summary));
        }
        std::array::from_fn(|n| found[n].is_some())
    };
    assert_eq!(seen(chat).await, [true, true, true, true, false]);
    assert_eq!(seen(child).await, [true, true, false, true, true]);
    assert_eq!(seen(other).await, [true, true, false, true, false]);
    let order = child.summary_log().await;
    let order: Vec<&SummaryId> = order.iter().map(|s| &s.id).collect();
    assert_eq!(order, [&early.id, &late.id, &whole.id, &own.id]);
    // Reads the conversation's own summaries without its ancestors', all at once and in pages.
    let own_page = async |chat: Chat<'_, S>, after: Option<&Summary>, limit| {
        let after = after.map(|summary| &summary.id);
        store.own_summaries(chat.id, after, limit).await
    };
    let mine = own_page(child, None, 9).await.unwrap();
    assert_eq!((mine.items, mine.next), (vec![own.clone()], None));
    let page = own_page(chat, None, 3).await.unwrap();
    assert_eq!(page.items, [early.clone(), late.clone(), beyond.clone()]);
    assert_eq!(page.next.as_ref(), Some(&beyond.id));
    let page = own_page(chat, Some(&beyond), 3).await.unwrap();
    assert_eq!((page.items, page.next), (vec![whole.clone()], None));
    let foreign = own_page(child, Some(&early), 3).await;
    refused(foreign, ErrorKind::NotFound);

    assert_eq!(child.parents(&early.id).await, vec![whole.id.clone()]);
    let both = child.condensed("mine", &[&early, &late, &own]).await;
    let above = [whole.id.clone(), both.id.clone()];
    assert_eq!(child.parents(&early.id).await, above);
    assert_eq!(child.parents(&own.id).await, vec![both.id.clone()]);
    assert_eq!(*chat.parents(&early.id).await, [whole.id]);
    assert_eq!(other.parents(&own.id).await, []);
    let positions: Vec<Seq> = (1..=14).map(Seq).collect();
    assert_eq!(child.expand(&both.id).await, positions);

    // A publish cannot show a summary of a conversation that is not an ancestor.
    other.fill(2).await;
    let publish = over_raw("dag", beyond.range, vec![shown(&beyond)]);
    let answer = store.publish(other.id, &publish).await;
    refused(answer, ErrorKind::Invalid);
}

/// Checks that a parent and its fork may make the same summary, in either order. Each must list it once, as it saw it
/// first.
pub async fn the_same_summary_is_seen_once<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 10).await;
    let child = chat.fork("child", 8).await;
    let grandchild = child.fork("grandchild", 8).await;
    let same = chat.leaf(range(1, 4), "the same").await;
    let of = |model: &str| Summary {
        model: Some(model.to_owned()),
        ..same.clone()
    };
    // The model is not a part of a summary's id.
    child.show("dag", &of("child")).await;
    chat.show("dag", &of("parent")).await;
    grandchild.show("dag", &of("grandchild")).await;
    // The third conversation publishes the summary again, and it is not stored again.
    for (chat, model) in [(chat, "parent"), (child, "child"), (grandchild, "child")] {
        let all = chat.summary_log().await;
        assert_eq!(all, [of(model)]);
        assert_eq!(chat.summary_by_id(&same.id).await.as_ref(), all.first());
        let page = store.summary_log(chat.id, Some(&same.id), 9).await;
        assert_eq!(page.unwrap().items, []);
    }
    let sources = [Source::Summary(&same), Source::Messages(range(5, 6))];
    for (chat, text) in [(chat, "up"), (child, "up"), (grandchild, "other")] {
        chat.show_summary("dag", &sources, text).await;
    }
    assert_eq!(chat.parents(&same.id).await.len(), 1);
    assert_eq!(child.parents(&same.id).await.len(), 1);
    assert_eq!(grandchild.parents(&same.id).await.len(), 2);
}

/// Checks that a fork of a fork inherits its parent's view, even if it shares fewer positions than its parent does.
pub async fn forks_of_forks_inherit<S: FullStore>(store: &S) {
    let a = Chat::root(store, "a").await;
    a.fill(20).await;
    let first = a.leaf_over("dag", 1, 4).await;
    let b = a.fork("b", 16).await;
    b.fill(4).await;
    // The fork compacts the shared messages by itself.
    let second = b.leaf_over("dag", 5, 8).await;
    let third = b.leaf_over("dag", 9, 18).await;
    let top = b.condensed("dag", &[&first, &second, &third]).await;
    let id = |summary: &Summary| Some(summary.id.clone());
    let parts = [(1, id(&first)), (5, id(&second)), (9, None)];
    let c = b.fork("c", 10).await;
    assert_eq!(c.outline("dag").await, parts);
    let d = b.fork("d", 17).await;
    assert_eq!(d.outline("dag").await, parts);
    let e = b.fork("e", 20).await;
    assert_eq!(e.outline("dag").await, [(1, id(&top)), (19, None)]);
    // A fork that shares no position of its parent's own log.
    let f = c.fork("f", 8).await;
    assert_eq!(f.outline("dag").await, parts);
    let g = f.fork("g", 7).await;
    assert_eq!(g.outline("dag").await, [(1, id(&first)), (5, None)]);
    assert_eq!(g.summary_log().await, [first]);
    for child in [&c, &d, &e, &f, &g] {
        child.fill(4).await;
        let head = child.info().await.head;
        let from = child.spans("dag").await;
        let from = from.last().unwrap().range.first;
        let own = child.leaf_over("dag", from.0, head.0).await;
        assert_eq!(child.outline("dag").await.last().unwrap().0, head.0 + 1);
        let positions: Vec<Seq> = (from.0..=head.0).map(Seq).collect();
        assert_eq!(child.expand(&own.id).await, positions);
    }
}

/// Checks that later changes to a parent or to its fork do not affect the other's log, views and history.
pub async fn parent_and_child_go_their_own_ways<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let (leaves, [low, ..]) = chat.compacted().await;
    let child = chat.fork("child", 27).await;
    let all = async |chat: Chat<'_, S>| {
        (
            chat.snapshot("dag").await,
            chat.publications("dag").await,
            chat.spans("dag").await,
            chat.texts().await,
        )
    };
    let parents = all(chat).await;
    let childs = all(child).await;
    child.append([message("own", "the child speaks")]).await;
    let top = child.condensed("dag", &[&low, &leaves[4]]).await;
    child.leaf_over("dag", 26, 28).await;
    assert_eq!(all(chat).await, parents);
    assert_ne!(all(child).await, childs);
    let childs = all(child).await;
    chat.append([message("own", "the parent speaks")]).await;
    chat.leaf_over("dag", 46, 51).await;
    assert_ne!(all(chat).await, parents);
    assert_eq!(all(child).await, childs);
    assert_eq!(chat.summary_by_id(&top.id).await, None);
}
