//! Reading views: spans, versions, snapshots.

use memory_model::{Seq, SeqRange, Span, SpanBody, TrimPolicyId, ViewName, ViewVersion};
use memory_store::{ErrorKind, Order, Published, Snapshot, Store, fill_raw_tokens};

use crate::Fixture;
use crate::builders::{
    Source, fill, info, publish_summary, range, raw, replace, root, shown, sound, spans_of_view,
    summary_of,
};

pub(super) async fn snapshot<S: Store>(
    store: &S,
    conversation: memory_model::ConversationId,
    view: &str,
) -> Snapshot {
    store
        .snapshot(conversation, &ViewName::from(view))
        .await
        .unwrap()
}

fn starts(spans: &[Span]) -> Vec<u32> {
    spans.iter().map(|span| span.range.first.0).collect()
}

async fn pages<S: Store>(
    store: &S,
    snapshot: &Snapshot,
    range: SeqRange,
    order: Order,
    limit: usize,
) -> Vec<Vec<u32>> {
    let mut pages = Vec::new();
    let mut rest = Some(range);
    while let Some(range) = rest {
        let page = store.spans(snapshot, range, order, limit).await.unwrap();
        pages.push(starts(&page.items));
        rest = page.next;
    }
    pages
}

/// A view that was never published is one raw span, and is not listed.
pub async fn a_view_starts_as_one_raw_span<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    for head in [0, 3] {
        let found = snapshot(&store, chat.id, "dag").await;
        assert_eq!(
            (found.head, found.version, found.saved),
            (Seq(head), ViewVersion(0), 0)
        );
        assert_eq!(found.log_tokens, info(&store, chat.id).await.tokens);
        assert_eq!((found.tokens(), found.spans), (found.log_tokens, 1));
        let spans = spans_of_view(&store, chat.id, "dag").await;
        assert_eq!(spans.len(), 1);
        assert_eq!((spans[0].range.first, spans[0].range.last), (Seq(1), None));
        assert_eq!((&spans[0].body, spans[0].tokens), (&SpanBody::Raw, 0));
        fill(&store, chat.id, 3).await;
    }
    assert_eq!(store.views(chat.id).await.unwrap(), []);
    let view = ViewName::from("dag");
    let history = store
        .publications(chat.id, &view, ViewVersion(0), 9)
        .await
        .unwrap();
    assert_eq!((history.items.len(), history.next), (0, None));
    // A version that is not there yet cannot be read.
    let mut later = snapshot(&store, chat.id, "dag").await;
    later.version = ViewVersion(1);
    let error = store
        .spans(&later, range(1, 1), Order::OldestFirst, 1)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    sound(&store).await;
}

/// Five leaves of four messages each, over 24 messages.
async fn five_leaves<S: Store>(store: &S) -> memory_model::ConversationId {
    let chat = root(store, "chat").await;
    fill(store, chat.id, 24).await;
    for n in 0..5u32 {
        let at = range(n * 4 + 1, n * 4 + 4);
        let leaf = summary_of(
            store,
            chat.id,
            &[Source::Messages(at)],
            &format!("leaf {n}"),
        )
        .await;
        let done = publish_summary(store, chat.id, "dag", &leaf).await;
        assert_eq!(done, Published::Done(ViewVersion(u64::from(n) + 1)));
    }
    chat.id
}

/// Pages of spans hold whole spans that touch the range, and join without gaps.
pub async fn spans_are_paged_in_both_orders<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = five_leaves(&store).await;
    let now = snapshot(&store, chat, "dag").await;
    let whole = range(1, 24);
    let up = |limit| pages(&store, &now, whole, Order::OldestFirst, limit);
    let down = |limit| pages(&store, &now, whole, Order::NewestFirst, limit);
    assert_eq!(up(100).await, [[1, 5, 9, 13, 17, 21]]);
    assert_eq!(up(4).await, [vec![1, 5, 9, 13], vec![17, 21]]);
    assert_eq!(up(3).await, [[1, 5, 9], [13, 17, 21]]);
    assert_eq!(up(0).await.len(), 6, "at least one");
    assert_eq!(down(4).await, [vec![21, 17, 13, 9], vec![5, 1]]);
    assert_eq!(down(1).await, [[21], [17], [13], [9], [5], [1]]);
    // Spans are whole even where the range cuts them.
    let page = store
        .spans(&now, range(6, 14), Order::OldestFirst, 9)
        .await
        .unwrap();
    let ranges: Vec<SeqRange> = page.items.iter().filter_map(Span::closed_range).collect();
    assert_eq!(ranges, [range(5, 8), range(9, 12), range(13, 16)]);
    let inside = pages(&store, &now, range(6, 6), Order::NewestFirst, 1).await;
    assert_eq!(inside, [[5]]);
    let cut = pages(&store, &now, range(6, 14), Order::NewestFirst, 2).await;
    assert_eq!(cut, [vec![13, 9], vec![5]]);
    // The open span touches everything after it.
    let far = pages(&store, &now, range(1_000, u32::MAX), Order::OldestFirst, 2).await;
    assert_eq!(far, [[21]]);
    sound(&store).await;
}

/// Every version of a view stays readable, whole and by page.
pub async fn old_versions_stay_readable<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = five_leaves(&store).await;
    let mut then = snapshot(&store, chat, "dag").await;
    for version in 0..=5u32 {
        then.version = ViewVersion(u64::from(version));
        let mut expected: Vec<u32> = (0..=version).map(|n| n * 4 + 1).collect();
        let up = pages(&store, &then, range(1, 24), Order::OldestFirst, 2).await;
        assert_eq!(up.concat(), expected, "version {version}");
        let down = pages(&store, &then, range(1, 24), Order::NewestFirst, 2).await;
        expected.reverse();
        assert_eq!(down.concat(), expected, "version {version}");
        assert!(up[..up.len() - 1].iter().all(|page| page.len() == 2));
    }
    // Each version knows its own spans: a condensed summary hides the leaves only from its own on.
    let leaves = spans_of_view(&store, chat, "dag").await;
    let at = range(1, 8);
    let omitted = Span::closed(at, SpanBody::Omitted, 0);
    let publish = replace(
        "dag",
        at,
        leaves[..2].to_vec(),
        vec![omitted.clone()],
        vec![],
    );
    store.publish(chat, &publish).await.unwrap();
    let page = store.spans(&then, at, Order::OldestFirst, 9).await.unwrap();
    assert_eq!(page.items, leaves[..2]);
    then.version = ViewVersion(6);
    let page = store.spans(&then, at, Order::OldestFirst, 9).await.unwrap();
    assert_eq!(page.items, [omitted]);
    then.version = ViewVersion(7);
    let error = store
        .spans(&then, at, Order::OldestFirst, 9)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    sound(&store).await;
}

/// A snapshot reads the same after appends and publishes.
pub async fn snapshots_do_not_move<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = five_leaves(&store).await;
    let then = snapshot(&store, chat, "dag").await;
    let read = async || {
        let mut spans = store
            .spans(&then, range(1, 24), Order::NewestFirst, 100)
            .await
            .unwrap()
            .items;
        fill_raw_tokens(&store, &then, &mut spans).await.unwrap();
        spans
    };
    let before = read().await;
    assert_eq!(
        before.iter().map(|span| span.tokens).sum::<u64>(),
        then.tokens()
    );
    fill(&store, chat, 5).await;
    assert_eq!(read().await, before, "after an append");
    let at = range(15, 26);
    let spans = spans_of_view(&store, chat, "dag").await;
    assert_eq!(starts(&spans).last(), Some(&21));
    let expect = vec![spans[4].clone(), raw(range(21, 26))];
    let whole = range(17, 26);
    let sources = [Source::Messages(whole)];
    let leaf = summary_of(&store, chat, &sources, "another leaf").await;
    let publish = replace("dag", whole, expect, vec![shown(&leaf)], vec![leaf]);
    store.publish(chat, &publish).await.unwrap();
    assert_eq!(read().await, before, "after a publish");
    let now = snapshot(&store, chat, "dag").await;
    assert_eq!((now.head, now.version), (Seq(29), ViewVersion(6)));
    assert_eq!(
        pages(&store, &now, at, Order::OldestFirst, 9).await,
        [[13, 17]]
    );
    sound(&store).await;
}

/// Views of one conversation, and of its forks, do not touch each other.
pub async fn views_are_independent<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = five_leaves(&store).await;
    let omitted = Span::closed(range(1, 10), SpanBody::Omitted, 0);
    let publish = replace(
        "blocks",
        range(1, 10),
        vec![raw(range(1, 10))],
        vec![omitted],
        vec![],
    );
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(1)));
    assert_eq!(spans_of_view(&store, chat, "dag").await.len(), 6);
    assert_eq!(spans_of_view(&store, chat, "blocks").await.len(), 2);
    let views = store.views(chat).await.unwrap();
    let listed: Vec<_> = views
        .iter()
        .map(|view| (view.name.as_str(), view.version.0, view.spans))
        .collect();
    assert_eq!(listed, [("blocks", 1, 2), ("dag", 5, 6)]);
    assert_eq!(snapshot(&store, chat, "blocks").await.spans, 2);
    assert_eq!(snapshot(&store, chat, "dag").await.spans, 6);
    sound(&store).await;
}

/// What a view saves is the cost of the messages less that of what stands for them.
pub async fn saved_is_what_the_view_saves<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 12).await;
    let sums: Vec<Seq> = (0..=12).map(Seq).collect();
    let sums = store.running(chat.id, &sums).await.unwrap();
    let cost = |first: usize, last: usize| (sums[last] - sums[first - 1]) as i64;
    let saved = async || snapshot(&store, chat.id, "v").await.saved;

    let leaf = summary_of(&store, chat.id, &[Source::Messages(range(1, 4))], "short").await;
    publish_summary(&store, chat.id, "v", &leaf).await;
    let mut expected = cost(1, 4) - leaf.tokens as i64;
    assert_eq!(saved().await, expected, "a summary");

    let trimmed = SpanBody::Trimmed(TrimPolicyId::new("trim@1"));
    let spans = vec![
        Span::closed(range(5, 6), trimmed, 7),
        Span::closed(range(7, 8), SpanBody::Omitted, 0),
    ];
    let publish = replace(
        "v",
        range(5, 8),
        vec![raw(range(5, 8))],
        spans.clone(),
        vec![],
    );
    store.publish(chat.id, &publish).await.unwrap();
    expected += cost(5, 8) - 7;
    assert_eq!(saved().await, expected, "trimmed and omitted");

    // Longer than its source: saved falls.
    let long = "a very long summary ".repeat(100);
    let longer = summary_of(&store, chat.id, &[Source::Messages(range(9, 9))], &long).await;
    publish_summary(&store, chat.id, "v", &longer).await;
    expected += cost(9, 9) - longer.tokens as i64;
    assert_eq!(saved().await, expected, "a summary that costs more");
    let now = snapshot(&store, chat.id, "v").await;
    let view = store.views(chat.id).await.unwrap().remove(0);
    assert_eq!((view.saved, view.version), (now.saved, now.version));

    // Back to raw in one go: nothing is saved.
    let all = [vec![shown(&leaf)], spans, vec![shown(&longer)]].concat();
    let publish = replace("v", range(1, 9), all, vec![raw(range(1, 9))], vec![]);
    store.publish(chat.id, &publish).await.unwrap();
    assert_eq!(saved().await, 0);
    assert_eq!(spans_of_view(&store, chat.id, "v").await.len(), 1);
    assert_eq!(
        snapshot(&store, chat.id, "v").await.tokens(),
        info(&store, chat.id).await.tokens
    );
    sound(&store).await;
}
