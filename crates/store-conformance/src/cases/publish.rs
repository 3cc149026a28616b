//! Cases of publishing: spans are compared with the expected ones and replaced.

use futures::future::join_all;
use memory_model::{
    Hash, Seq, SeqRange, Span, SpanBody, SpanStart, Summary, Timestamp, TrimPolicyId, ViewName,
    ViewVersion,
};
use memory_store::implementors::publication_hash;
use memory_store::{FullStore, Publish, Published};

use crate::builders::{omitted, over_raw, pages, range, raw, replace, showing, shown};
use crate::chat::{Chat, Source};

fn trimmed(policy: &str, at: SeqRange, tokens: u64) -> Span {
    Span::closed(at, SpanBody::Trimmed(TrimPolicyId::new(policy)), tokens)
}

/// Returns the raw span at the end of a view, which has no end.
fn open(first: u32) -> Span {
    let mut span = raw(range(first, first));
    span.range.last = None;
    span
}

/// Checks that a publish replaces the expected spans by new ones and raises the version by one.
pub async fn publishing_replaces_the_run<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 10).await;
    let first = chat.leaf(range(1, 4), "first").await;
    let second = chat.leaf(range(5, 8), "second").await;
    let at = range(1, 8);
    let spans = vec![shown(&first), shown(&second)];
    let publish = Publish {
        summaries: vec![first.clone(), second.clone()],
        now: Timestamp(88),
        ..over_raw("dag", at, spans)
    };
    let done = chat.publish(&publish).await;
    assert_eq!(done, Published::Done(ViewVersion(1)));
    assert_eq!(chat.info().await.updated_at, Timestamp(88));
    let found = chat.spans("dag").await;
    assert_eq!(found[..2], [shown(&first), shown(&second)]);
    assert_eq!(found[2].range.first, Seq(9));

    // A publish of a summary of stored summaries contains only the new summary.
    let sources = [Source::Summary(&first), Source::Summary(&second)];
    let condensed = chat.summary(&sources, "both").await;
    assert_eq!(condensed.depth, 1);
    let done = chat.show("dag", &condensed).await;
    assert_eq!(done, Published::Done(ViewVersion(2)));
    let found = chat.spans("dag").await;
    assert_eq!(found[0], shown(&condensed));
    assert_eq!(found.len(), 2);
    // Shows again an older summary, which is already stored.
    let spans = vec![raw(range(1, 4)), shown(&second)];
    let done = chat.put("dag", at, spans, vec![]).await;
    assert_eq!(done, Published::Done(ViewVersion(3)));
    // A range up to the end of the log.
    let last = chat.show_leaf("dag", range(9, 10), "last").await;
    let found = chat.spans("dag").await;
    assert_eq!(found.last().map(|span| span.range.first), Some(Seq(11)));
    chat.fill(1).await;
    // A leaf and a summary made from it, in one call. The summary comes before the leaf.
    let a = chat.leaf(range(11, 11), "a").await;
    let sources = [Source::Summary(&last), Source::Summary(&a)];
    let b = chat.summary(&sources, "b").await;
    let (spans, summaries) = (vec![shown(&b)], vec![b, a]);
    let done = chat.put("dag", range(9, 11), spans, summaries).await;
    assert_eq!(done, Published::Done(ViewVersion(5)));
}

/// Checks that repeating a publish has no effect and returns `Already`.
pub async fn publishing_twice_is_already_done<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 6).await;
    let leaf = chat.leaf(range(2, 4), "leaf").await;
    let mut publish = showing("dag", &leaf);
    chat.publish(&publish).await;
    let before = chat.everything().await;
    publish.now = Timestamp(99);
    let again = chat.publish(&publish).await;
    assert_eq!(again, Published::Already(ViewVersion(1)));
    assert_eq!(chat.everything().await, before);
}

/// Checks that publishing the current spans creates no new version.
pub async fn publishing_the_same_spans_is_already_done<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 6).await;
    let same = vec![raw(range(2, 3))];
    let done = chat.put("dag", range(2, 3), same, vec![]).await;
    assert_eq!(done, Published::Already(ViewVersion(0)));
    assert_eq!(chat.views().await, []);
    let leaf = chat.show_leaf("dag", range(2, 4), "leaf").await;
    let before = chat.everything().await;
    let done = chat.show("dag", &leaf).await;
    assert_eq!(done, Published::Already(ViewVersion(1)));
    assert_eq!(chat.everything().await, before);
}

/// Checks that a publish with outdated expected spans has no effect and stores no summary.
pub async fn a_lost_publish_has_no_effect<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let winner = chat.show_leaf("dag", range(3, 6), "winner").await;
    let before = chat.everything().await;
    // The same range, ranges that overlap on one side, a range around it, and a range within it.
    for (first, last) in [(3, 6), (5, 8), (1, 3), (1, 9), (4, 5)] {
        let at = range(first, last);
        let loser = chat.leaf(at, &format!("loser over {at}")).await;
        let lost = chat.publish(&showing("dag", &loser)).await;
        let found = chat.clipped("dag", at).await;
        assert_eq!(lost, Published::Lost { found }, "over {at}");
        assert_eq!(chat.everything().await, before, "over {at}");
        let stored = chat.summary_by_id(&loser.id).await;
        assert_eq!(stored, None, "the loser leaves no orphan");
        let made = chat
            .summary_by_source(loser.source_hash, &loser.recipe)
            .await;
        assert!(made.is_none_or(|made| made.id == winner.id));
    }
    // Expected spans with another division of the same range, with too few spans, and with too many.
    let at = range(7, 10);
    let loser = chat.leaf(at, "loser").await;
    for expect in [
        vec![],
        vec![raw(range(7, 8)), raw(range(9, 10))],
        vec![raw(range(7, 9))],
        vec![omitted(at)],
        vec![shown(&loser)],
    ] {
        let publish = Publish {
            expect,
            ..showing("dag", &loser)
        };
        let found = vec![raw(at)];
        assert_eq!(chat.publish(&publish).await, Published::Lost { found });
    }
    assert_eq!(chat.everything().await, before);
}

/// Checks that a part of a raw span can be replaced, and that the rest on both sides stays raw.
pub async fn publishing_over_part_of_a_raw_span<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let middle = chat.show_leaf("dag", range(5, 8), "middle").await;
    let found = chat.spans("dag").await;
    assert_eq!(found, [raw(range(1, 4)), shown(&middle), open(9)]);
    // A part of an omitted span can be replaced in the same way.
    for span in [omitted(range(1, 4)), raw(range(2, 3))] {
        let at = span.closed_range().unwrap();
        chat.put("dag", at, vec![span], vec![]).await;
    }
    let found = chat.spans("dag").await;
    let expected = [
        omitted(range(1, 1)),
        raw(range(2, 3)),
        omitted(range(4, 4)),
        shown(&middle),
        open(9),
    ];
    assert_eq!(found, expected);
}

/// Checks that adjacent raw spans and adjacent omitted spans become one span, and that other adjacent spans stay
/// separate. Costs of raw spans must not be stored.
pub async fn neighbours_merge<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 20).await;
    let put = async |at: SeqRange, spans: Vec<Span>| {
        let done = chat.put("dag", at, spans, vec![]).await;
        assert!(matches!(done, Published::Done(_)), "{done:?}");
        let mut found = chat.spans("dag").await;
        found.pop();
        found
    };
    let short = |first, last, tokens| trimmed("t@1", range(first, last), tokens);
    let found = put(range(1, 4), vec![short(1, 4, 10)]).await;
    assert_eq!(found, [short(1, 4, 10)]);
    let found = put(range(9, 12), vec![short(9, 12, 30)]).await;
    assert_eq!(found.len(), 3);
    let found = put(range(5, 8), vec![short(5, 6, 1), short(7, 8, 2)]).await;
    let all = [
        short(1, 4, 10),
        short(5, 6, 1),
        short(7, 8, 2),
        short(9, 12, 30),
    ];
    assert_eq!(found, all, "trimmed spans stay as they were published");
    let other = trimmed("t@2", range(13, 14), 5);
    let found = put(range(13, 14), vec![other.clone()]).await;
    assert_eq!(found.last(), Some(&other), "another policy");
    let parts = vec![omitted(range(15, 15)), omitted(range(16, 16))];
    let found = put(range(15, 16), parts).await;
    assert_eq!(found.last(), Some(&omitted(range(15, 16))));
    // Costs of raw and omitted spans are not stored: readers compute them.
    let odd = Span::closed(range(17, 18), SpanBody::Omitted, 99);
    let found = put(range(17, 18), vec![odd]).await;
    assert_eq!(found.last(), Some(&omitted(range(15, 18))));
    let odd = Span::closed(range(15, 16), SpanBody::Raw, 99);
    let found = put(range(15, 16), vec![odd]).await;
    assert!(found.ends_with(&[raw(range(15, 16)), omitted(range(17, 18))]));
    put(range(17, 18), vec![raw(range(17, 18))]).await;
    assert_eq!(chat.spans("dag").await.pop(), Some(open(15)));
}

/// Checks that a summary or a trimmed span can only be replaced as a whole.
pub async fn indivisible_spans_are_replaced_whole<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    chat.show_leaf("dag", range(3, 6), "whole").await;
    let spans = vec![trimmed("t@1", range(7, 10), 5)];
    chat.put("dag", range(7, 10), spans, vec![]).await;
    for (first, last) in [(3, 5), (4, 6), (2, 4), (8, 9), (9, 12)] {
        let at = range(first, last);
        let expect = chat.clipped("dag", at).await;
        let publish = replace("dag", at, expect, vec![omitted(at)], vec![]);
        chat.refuses(&format!("over {at}"), &publish).await;
    }
    let at = range(2, 11);
    chat.put("dag", at, vec![raw(at)], vec![]).await;
    assert_eq!(chat.spans("dag").await.len(), 1);
}

/// Checks that a stored summary does not change if a publish contains it again.
pub async fn a_stored_summary_is_kept_as_it_is<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 8).await;
    let at = range(1, 4);
    let first = chat.show_leaf("dag", at, "the summary").await;
    let mut again = first.clone();
    again.created_at = Timestamp(500);
    again.provisional = true;
    again.tier = "cut".to_owned();
    let done = chat.publish(&showing("blocks", &again)).await;
    assert_eq!(done, Published::Done(ViewVersion(1)));
    assert_eq!(chat.summary_by_id(&first.id).await.as_ref(), Some(&first));
    // The span gets the stored cost of the summary.
    again.tokens += 1;
    chat.refuses("another figure", &showing("third", &again))
        .await;
    assert_eq!(chat.summary_log().await, [first]);
}

/// Checks that a view's history lists every publish, in pages, with its range, rows, time and chain hash.
pub async fn publications_tell_the_history<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let a = chat.show_leaf("dag", range(2, 4), "a").await;
    let b = chat.show_leaf("dag", range(5, 6), "b").await;
    let sources = [Source::Summary(&a), Source::Summary(&b)];
    let c = chat.show_summary("dag", &sources, "c").await;
    let row = |first: u32, body: SpanBody, tokens| SpanStart {
        first: Seq(first),
        body,
        tokens,
    };
    let show = |s: &Summary| row(s.range.first.0, shown(s).body, s.tokens);
    let expected = [
        (
            range(2, 4),
            vec![],
            vec![show(&a), row(5, SpanBody::Raw, 0)],
        ),
        (
            range(5, 6),
            vec![row(5, SpanBody::Raw, 0)],
            vec![show(&b), row(7, SpanBody::Raw, 0)],
        ),
        (range(2, 6), vec![show(&a), show(&b)], vec![show(&c)]),
    ];
    let all = chat.publications("dag").await;
    assert_eq!(all.len(), 3);
    let mut chain = Hash::ZERO;
    for (n, (found, (at, removed, added))) in all.iter().zip(expected).enumerate() {
        let version = ViewVersion(n as u64 + 1);
        chain = publication_hash(chain, version, at, &removed, &added);
        assert_eq!((found.version, found.at), (version, at));
        assert_eq!((&found.removed, &found.added), (&removed, &added));
        assert_eq!((found.created_at, found.hash), (Timestamp(4), chain));
    }
    assert_eq!(chat.views().await[0].chain, chain);
    let view = ViewName::from("dag");
    let page = async |after, limit| store.publications(chat.id, &view, after, limit).await;
    let paged = pages(async |after: Option<_>| page(after.unwrap_or_default(), 2).await).await;
    assert_eq!(paged.concat(), all);
    let rest = page(ViewVersion(2), 0).await.unwrap();
    assert_eq!(rest.items, all[2..]);
    let none = page(ViewVersion(3), 5).await.unwrap();
    assert_eq!((none.items.len(), none.next), (0, None));
}

/// Checks that exactly one of two concurrent publishes over the same range succeeds, and that two over separate ranges
/// both succeed.
pub async fn two_writers_and_one_winner<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let mut publishes = Vec::new();
    for (first, last, text) in [(1, 6, "a"), (4, 9, "b"), (10, 12, "c")] {
        let leaf = chat.leaf(range(first, last), text).await;
        publishes.push(showing("dag", &leaf));
    }
    let outcomes = join_all(publishes.iter().map(|publish| chat.publish(publish))).await;
    let done = |p: &&Published| matches!(p, Published::Done(_));
    assert!(done(&&outcomes[2]), "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(done).count(), 2, "{outcomes:?}");
    let log = chat.summary_log().await;
    assert_eq!(log.len(), 2, "the loser leaves no orphan");
    assert_eq!(chat.snapshot("dag").await.version, ViewVersion(2));
}
