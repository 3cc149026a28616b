//! Cases of reading views: spans, versions and snapshots.

use memory_model::{Seq, SeqRange, Span, SpanBody, TrimPolicyId, ViewVersion};
use memory_store::{ErrorKind, FullStore, Order, Published, Snapshot, Store, fill_raw_tokens};

use crate::builders::{omitted, pages, range, raw, refused};
use crate::chat::Chat;

fn starts(spans: &[Span]) -> Vec<u32> {
    spans.iter().map(|span| span.range.first.0).collect()
}

/// Returns the first positions of the spans in each page.
async fn pages_of<S: Store>(
    store: &S,
    snapshot: &Snapshot,
    range: SeqRange,
    order: Order,
    limit: usize,
) -> Vec<Vec<u32>> {
    let read = async |next: Option<_>| {
        let range = next.unwrap_or(range);
        store.spans(snapshot, range, order, limit).await
    };
    let pages = pages(read).await;
    pages.iter().map(|page| starts(page)).collect()
}

/// Checks that a view that was never published is one raw span, and is not listed.
pub async fn a_view_starts_as_one_raw_span<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    for head in [0, 3] {
        let found = chat.snapshot("dag").await;
        assert_eq!(
            (found.head, found.version, found.saved),
            (Seq(head), ViewVersion(0), 0)
        );
        assert_eq!(found.log_tokens, chat.info().await.tokens);
        assert_eq!((found.tokens(), found.spans), (found.log_tokens, 1));
        let spans = chat.spans("dag").await;
        assert_eq!(spans.len(), 1);
        assert_eq!((spans[0].range.first, spans[0].range.last), (Seq(1), None));
        assert_eq!((&spans[0].body, spans[0].tokens), (&SpanBody::Raw, 0));
        chat.fill(3).await;
    }
    assert_eq!(chat.views().await, []);
    assert_eq!(chat.publications("dag").await, []);
    // A version that does not exist yet cannot be read.
    let mut later = chat.snapshot("dag").await;
    later.version = ViewVersion(1);
    let answer = store
        .spans(&later, range(1, 1), Order::OldestFirst, 1)
        .await;
    refused(answer, ErrorKind::Invalid);
}

/// Publishes five leaves of four messages each, in a conversation of 24 messages.
async fn five_leaves<S: Store>(store: &S) -> Chat<'_, S> {
    let chat = Chat::filled(store, 24).await;
    for n in 0..5u32 {
        let at = range(n * 4 + 1, n * 4 + 4);
        let leaf = chat.leaf(at, &format!("leaf {n}")).await;
        let done = chat.show("dag", &leaf).await;
        assert_eq!(done, Published::Done(ViewVersion(u64::from(n) + 1)));
    }
    chat
}

/// Checks that pages of spans have whole spans that overlap the range, and that the pages have no gap between them.
pub async fn spans_are_paged_in_both_orders<S: FullStore>(store: &S) {
    let chat = five_leaves(store).await;
    let now = chat.snapshot("dag").await;
    let whole = range(1, 24);
    let up = |limit| pages_of(store, &now, whole, Order::OldestFirst, limit);
    let down = |limit| pages_of(store, &now, whole, Order::NewestFirst, limit);
    assert_eq!(up(100).await, [[1, 5, 9, 13, 17, 21]]);
    assert_eq!(up(4).await, [vec![1, 5, 9, 13], vec![17, 21]]);
    assert_eq!(up(3).await, [[1, 5, 9], [13, 17, 21]]);
    assert_eq!(up(0).await.len(), 6, "at least one");
    assert_eq!(down(4).await, [vec![21, 17, 13, 9], vec![5, 1]]);
    assert_eq!(down(1).await, [[21], [17], [13], [9], [5], [1]]);
    // Spans are returned whole, even if the range divides them.
    let page = store.spans(&now, range(6, 14), Order::OldestFirst, 9).await;
    let items = page.unwrap().items;
    let ranges: Vec<SeqRange> = items.iter().filter_map(Span::closed_range).collect();
    assert_eq!(ranges, [range(5, 8), range(9, 12), range(13, 16)]);
    let inside = pages_of(store, &now, range(6, 6), Order::NewestFirst, 1).await;
    assert_eq!(inside, [[5]]);
    let cut = pages_of(store, &now, range(6, 14), Order::NewestFirst, 2).await;
    assert_eq!(cut, [vec![13, 9], vec![5]]);
    // The last span has no end and overlaps every later range.
    let far = pages_of(store, &now, range(1_000, u32::MAX), Order::OldestFirst, 2).await;
    assert_eq!(far, [[21]]);
}

/// Checks that every old version of a view can be read, whole and in pages.
pub async fn old_versions_stay_readable<S: FullStore>(store: &S) {
    let chat = five_leaves(store).await;
    let mut then = chat.snapshot("dag").await;
    for version in 0..=5u32 {
        then.version = ViewVersion(u64::from(version));
        let mut expected: Vec<u32> = (0..=version).map(|n| n * 4 + 1).collect();
        let up = pages_of(store, &then, range(1, 24), Order::OldestFirst, 2).await;
        assert_eq!(up.concat(), expected, "version {version}");
        let down = pages_of(store, &then, range(1, 24), Order::NewestFirst, 2).await;
        expected.reverse();
        assert_eq!(down.concat(), expected, "version {version}");
        assert!(up[..up.len() - 1].iter().all(|page| page.len() == 2));
    }
    // Each version has its own spans: a condensed summary replaces the leaves only from its own version on.
    let leaves = chat.spans("dag").await;
    let at = range(1, 8);
    chat.put("dag", at, vec![omitted(at)], vec![]).await;
    for (version, expected) in [(5, &leaves[..2]), (6, &[omitted(at)])] {
        then.version = ViewVersion(version);
        let page = store.spans(&then, at, Order::OldestFirst, 9).await.unwrap();
        assert_eq!(page.items, expected);
    }
    then.version = ViewVersion(7);
    let answer = store.spans(&then, at, Order::OldestFirst, 9).await;
    refused(answer, ErrorKind::Invalid);
}

/// Checks that a snapshot reads the same after later appends and publishes.
pub async fn snapshots_do_not_move<S: FullStore>(store: &S) {
    let chat = five_leaves(store).await;
    let then = chat.snapshot("dag").await;
    let read = async || {
        let page = store
            .spans(&then, range(1, 24), Order::NewestFirst, 100)
            .await;
        let mut spans = page.unwrap().items;
        fill_raw_tokens(store, &then, &mut spans).await.unwrap();
        spans
    };
    let before = read().await;
    assert_eq!(
        before.iter().map(|span| span.tokens).sum::<u64>(),
        then.tokens()
    );
    chat.fill(5).await;
    assert_eq!(read().await, before, "after an append");
    let at = range(15, 26);
    let spans = chat.spans("dag").await;
    assert_eq!(starts(&spans).last(), Some(&21));
    chat.show_leaf("dag", range(17, 26), "another leaf").await;
    assert_eq!(read().await, before, "after a publish");
    let now = chat.snapshot("dag").await;
    assert_eq!((now.head, now.version), (Seq(29), ViewVersion(6)));
    assert_eq!(
        pages_of(store, &now, at, Order::OldestFirst, 9).await,
        [[13, 17]]
    );
}

/// Checks that the views of a conversation and of its forks do not affect each other.
pub async fn views_are_independent<S: FullStore>(store: &S) {
    let chat = five_leaves(store).await;
    let at = range(1, 10);
    let done = chat.put("blocks", at, vec![omitted(at)], vec![]).await;
    assert_eq!(done, Published::Done(ViewVersion(1)));
    assert_eq!(chat.spans("dag").await.len(), 6);
    assert_eq!(chat.spans("blocks").await.len(), 2);
    let views = chat.views().await;
    let listed: Vec<_> = views
        .iter()
        .map(|view| (view.name.as_str(), view.version.0, view.spans))
        .collect();
    assert_eq!(listed, [("blocks", 1, 2), ("dag", 5, 6)]);
    assert_eq!(chat.snapshot("blocks").await.spans, 2);
    assert_eq!(chat.snapshot("dag").await.spans, 6);
}

/// Checks that the saved tokens of a view are the cost of the messages minus the cost of the view's spans.
pub async fn saved_is_the_difference_of_costs<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let sums: Vec<Seq> = (0..=12).map(Seq).collect();
    let sums = chat.running(&sums).await;
    let cost = |first: usize, last: usize| (sums[last] - sums[first - 1]) as i64;
    let saved = async || chat.snapshot("v").await.saved;

    let leaf = chat.show_leaf("v", range(1, 4), "short").await;
    let mut expected = cost(1, 4) - leaf.tokens as i64;
    assert_eq!(saved().await, expected, "a summary");

    let trimmed = SpanBody::Trimmed(TrimPolicyId::new("trim@1"));
    let spans = vec![Span::closed(range(5, 6), trimmed, 7), omitted(range(7, 8))];
    chat.put("v", range(5, 8), spans, vec![]).await;
    expected += cost(5, 8) - 7;
    assert_eq!(saved().await, expected, "trimmed and omitted");

    // A summary longer than its source makes the saved tokens fall.
    let long = "a very long summary ".repeat(100);
    let longer = chat.show_leaf("v", range(9, 9), &long).await;
    expected += cost(9, 9) - longer.tokens as i64;
    assert_eq!(saved().await, expected, "a summary that costs more");
    let now = chat.snapshot("v").await;
    let view = chat.views().await.remove(0);
    assert_eq!((view.saved, view.version), (now.saved, now.version));

    // One publish back to raw messages: the saved tokens become 0.
    chat.put("v", range(1, 9), vec![raw(range(1, 9))], vec![])
        .await;
    assert_eq!(saved().await, 0);
    assert_eq!(chat.spans("v").await.len(), 1);
    assert_eq!(chat.snapshot("v").await.tokens(), chat.info().await.tokens);
}
