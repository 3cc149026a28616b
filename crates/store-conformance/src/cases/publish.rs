//! Publishing: compare and replace.

use memory_model::{
    Hash, Seq, SeqRange, Span, SpanBody, SpanRange, SpanStart, Summary, Timestamp, TrimPolicyId,
    ViewName, ViewVersion,
};
use memory_store::implementors::publication_hash;
use memory_store::{ErrorKind, Published, Store};

use super::unchanged::{refused, state};
use super::views::snapshot;
use crate::Fixture;
use crate::builders::{
    Source, chat, clipped, fill, info, join3, leaf, omitted, publish_summary, range, raw, replace,
    shown, sound, spans_of_view, summary_of,
};

fn trimmed(policy: &str, at: SeqRange, tokens: u64) -> Span {
    Span::closed(at, SpanBody::Trimmed(TrimPolicyId::new(policy)), tokens)
}

/// A publish puts new spans in place of the expected ones and raises the version by one.
pub async fn publishing_replaces_the_run<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 10).await;
    let first = leaf(&store, chat, range(1, 4), "first").await;
    let second = leaf(&store, chat, range(5, 8), "second").await;
    let at = range(1, 8);
    let spans = vec![shown(&first), shown(&second)];
    let mut publish = replace(
        "dag",
        at,
        vec![raw(at)],
        spans,
        vec![first.clone(), second.clone()],
    );
    publish.now = Timestamp(88);
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(1)));
    assert_eq!(info(&store, chat).await.updated_at, Timestamp(88));
    let found = spans_of_view(&store, chat, "dag").await;
    assert_eq!(found[..2], [shown(&first), shown(&second)]);
    assert_eq!(found[2].range.first, Seq(9));

    // A summary of summaries brings only itself.
    let sources = [Source::Summary(&first), Source::Summary(&second)];
    let condensed = summary_of(&store, chat, &sources, "both").await;
    assert_eq!(condensed.depth, 1);
    let done = publish_summary(&store, chat, "dag", &condensed).await;
    assert_eq!(done, Published::Done(ViewVersion(2)));
    let found = spans_of_view(&store, chat, "dag").await;
    assert_eq!(found[0], shown(&condensed));
    assert_eq!(found.len(), 2);
    // Back to an older summary, which is stored: nothing to bring.
    let publish = replace(
        "dag",
        at,
        vec![shown(&condensed)],
        vec![raw(range(1, 4)), shown(&second)],
        vec![],
    );
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(3)));
    // Up to the head itself.
    let last = leaf(&store, chat, range(9, 10), "last").await;
    publish_summary(&store, chat, "dag", &last).await;
    let found = spans_of_view(&store, chat, "dag").await;
    assert_eq!(found.last().map(|span| span.range.first), Some(Seq(11)));
    fill(&store, chat, 1).await;
    // A leaf and its parent in one call, the parent first.
    let a = leaf(&store, chat, range(11, 11), "a").await;
    let sources = [Source::Summary(&last), Source::Summary(&a)];
    let b = summary_of(&store, chat, &sources, "b").await;
    let expect = vec![shown(&last), raw(range(11, 11))];
    let publish = replace(
        "dag",
        range(9, 11),
        expect,
        vec![shown(&b)],
        vec![b.clone(), a],
    );
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(5)));
    sound(&store).await;
}

/// The same publish again changes nothing and says so.
pub async fn publishing_twice_is_already_done<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 6).await;
    let leaf = leaf(&store, chat, range(2, 4), "leaf").await;
    let at = range(2, 4);
    let publish = replace("dag", at, vec![raw(at)], vec![shown(&leaf)], vec![leaf]);
    store.publish(chat, &publish).await.unwrap();
    let before = state(&store, chat).await;
    let mut later = publish.clone();
    later.now = Timestamp(99);
    let again = store.publish(chat, &later).await.unwrap();
    assert_eq!(again, Published::Already(ViewVersion(1)));
    assert_eq!(state(&store, chat).await, before);
    sound(&store).await;
}

/// Putting in place what is already there is no new version.
pub async fn publishing_nothing_new_is_already_done<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 6).await;
    let same = replace(
        "dag",
        range(2, 3),
        vec![raw(range(2, 3))],
        vec![raw(range(2, 3))],
        vec![],
    );
    let done = store.publish(chat, &same).await.unwrap();
    assert_eq!(done, Published::Already(ViewVersion(0)));
    assert_eq!(store.views(chat).await.unwrap(), []);
    let leaf = leaf(&store, chat, range(2, 4), "leaf").await;
    publish_summary(&store, chat, "dag", &leaf).await;
    let before = state(&store, chat).await;
    let spans = vec![shown(&leaf)];
    let same = replace("dag", range(2, 4), spans.clone(), spans, vec![leaf]);
    let done = store.publish(chat, &same).await.unwrap();
    assert_eq!(done, Published::Already(ViewVersion(1)));
    assert_eq!(state(&store, chat).await, before);
    sound(&store).await;
}

/// A publish that expects what is no longer there changes nothing and leaves no summary.
pub async fn a_lost_publish_changes_nothing<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let winner = leaf(&store, chat, range(3, 6), "winner").await;
    publish_summary(&store, chat, "dag", &winner).await;
    let before = state(&store, chat).await;
    // The same range, one that overlaps on each side, and one around it.
    for at in [
        range(3, 6),
        range(5, 8),
        range(1, 3),
        range(1, 9),
        range(4, 5),
    ] {
        let loser = leaf(&store, chat, at, &format!("loser over {at}")).await;
        let spans = vec![shown(&loser)];
        let publish = replace("dag", at, vec![raw(at)], spans, vec![loser.clone()]);
        let lost = store.publish(chat, &publish).await.unwrap();
        let found = clipped(&store, chat, "dag", at).await;
        assert_eq!(lost, Published::Lost { found }, "over {at}");
        assert_eq!(state(&store, chat).await, before, "over {at}");
        let stored = store
            .summaries(chat, std::slice::from_ref(&loser.id))
            .await
            .unwrap();
        assert_eq!(stored, [None], "the loser leaves no orphan");
        let made = store
            .summaries_by_source(chat, &[(loser.source_hash, loser.recipe.clone())])
            .await
            .unwrap();
        assert!(made.iter().flatten().all(|made| made.id == winner.id));
    }
    // Another split of the same spans, too few, too many.
    let at = range(7, 10);
    let loser = leaf(&store, chat, at, "loser").await;
    for expect in [
        vec![],
        vec![raw(range(7, 8)), raw(range(9, 10))],
        vec![raw(range(7, 9))],
        vec![omitted(at)],
        vec![shown(&loser)],
    ] {
        let publish = replace("dag", at, expect, vec![shown(&loser)], vec![loser.clone()]);
        let lost = store.publish(chat, &publish).await.unwrap();
        assert_eq!(
            lost,
            Published::Lost {
                found: vec![raw(at)]
            }
        );
    }
    assert_eq!(state(&store, chat).await, before);
    sound(&store).await;
}

/// A part of a raw span is replaced; what is left on both sides stays raw.
pub async fn publishing_over_part_of_a_raw_span<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let middle = leaf(&store, chat, range(5, 8), "middle").await;
    publish_summary(&store, chat, "dag", &middle).await;
    let found = spans_of_view(&store, chat, "dag").await;
    let open = Span {
        range: SpanRange {
            first: Seq(9),
            last: None,
        },
        body: SpanBody::Raw,
        tokens: 0,
    };
    assert_eq!(found, [raw(range(1, 4)), shown(&middle), open.clone()]);
    // An omitted span is cut in the same way.
    let publish = replace(
        "dag",
        range(1, 4),
        vec![raw(range(1, 4))],
        vec![omitted(range(1, 4))],
        vec![],
    );
    store.publish(chat, &publish).await.unwrap();
    let publish = replace(
        "dag",
        range(2, 3),
        vec![omitted(range(2, 3))],
        vec![raw(range(2, 3))],
        vec![],
    );
    store.publish(chat, &publish).await.unwrap();
    let found = spans_of_view(&store, chat, "dag").await;
    let expected = [
        omitted(range(1, 1)),
        raw(range(2, 3)),
        omitted(range(4, 4)),
        shown(&middle),
        open,
    ];
    assert_eq!(found, expected);
    sound(&store).await;
}

/// Raw and omitted neighbours become one span, others stay apart; figures of raw spans are never
/// stored.
pub async fn neighbours_merge<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 20).await;
    let put = async |at: SeqRange, spans: Vec<Span>| {
        let expect = clipped(&store, chat, "dag", at).await;
        let publish = replace("dag", at, expect, spans, vec![]);
        let done = store.publish(chat, &publish).await.unwrap();
        assert!(matches!(done, Published::Done(_)), "{done:?}");
        let found = spans_of_view(&store, chat, "dag").await;
        found[..found.len() - 1].to_vec()
    };
    let found = put(range(1, 4), vec![trimmed("t@1", range(1, 4), 10)]).await;
    assert_eq!(found, [trimmed("t@1", range(1, 4), 10)]);
    let found = put(range(9, 12), vec![trimmed("t@1", range(9, 12), 30)]).await;
    assert_eq!(found.len(), 3);
    let found = put(
        range(5, 8),
        vec![
            trimmed("t@1", range(5, 6), 1),
            trimmed("t@1", range(7, 8), 2),
        ],
    )
    .await;
    assert_eq!(
        found,
        [
            trimmed("t@1", range(1, 4), 10),
            trimmed("t@1", range(5, 6), 1),
            trimmed("t@1", range(7, 8), 2),
            trimmed("t@1", range(9, 12), 30)
        ],
        "trimmed spans stay as they were published"
    );
    let found = put(range(13, 14), vec![trimmed("t@2", range(13, 14), 5)]).await;
    assert_eq!(
        found.last(),
        Some(&trimmed("t@2", range(13, 14), 5)),
        "another policy"
    );
    let found = put(
        range(15, 16),
        vec![omitted(range(15, 15)), omitted(range(16, 16))],
    )
    .await;
    assert_eq!(found.last(), Some(&omitted(range(15, 16))));
    // Raw and omitted figures are the readers' business.
    let odd = Span::closed(range(17, 18), SpanBody::Omitted, 99);
    let found = put(range(17, 18), vec![odd]).await;
    assert_eq!(found.last(), Some(&omitted(range(15, 18))));
    let odd = Span::closed(range(15, 16), SpanBody::Raw, 99);
    let found = put(range(15, 16), vec![odd]).await;
    assert_eq!(
        found[found.len() - 2..],
        [raw(range(15, 16)), omitted(range(17, 18))]
    );
    put(range(17, 18), vec![raw(range(17, 18))]).await;
    let found = spans_of_view(&store, chat, "dag").await;
    let last = found.last().unwrap();
    assert_eq!(
        (last.range.first, last.range.last, last.tokens),
        (Seq(15), None, 0)
    );
    sound(&store).await;
}

/// A summary or a trimmed span is replaced whole or not at all.
pub async fn indivisible_spans_are_replaced_whole<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let whole = leaf(&store, chat, range(3, 6), "whole").await;
    publish_summary(&store, chat, "dag", &whole).await;
    let publish = replace(
        "dag",
        range(7, 10),
        vec![raw(range(7, 10))],
        vec![trimmed("t@1", range(7, 10), 5)],
        vec![],
    );
    store.publish(chat, &publish).await.unwrap();
    let before = state(&store, chat).await;
    for at in [
        range(3, 5),
        range(4, 6),
        range(2, 4),
        range(8, 9),
        range(9, 12),
    ] {
        let expect = clipped(&store, chat, "dag", at).await;
        let publish = replace("dag", at, expect, vec![omitted(at)], vec![]);
        let error = store.publish(chat, &publish).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "over {at}: {error}");
        assert_eq!(state(&store, chat).await, before);
    }
    let at = range(2, 11);
    let expect = clipped(&store, chat, "dag", at).await;
    let publish = replace("dag", at, expect, vec![raw(at)], vec![]);
    store.publish(chat, &publish).await.unwrap();
    assert_eq!(spans_of_view(&store, chat, "dag").await.len(), 1);
    sound(&store).await;
}

/// A summary that is stored already is not changed by a publish that brings it again.
pub async fn a_stored_summary_is_kept_as_it_is<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 8).await;
    let at = range(1, 4);
    let first = leaf(&store, chat, at, "the summary").await;
    publish_summary(&store, chat, "dag", &first).await;
    let mut again = first.clone();
    again.created_at = Timestamp(500);
    again.provisional = true;
    again.tier = "cut".to_owned();
    let publish = replace(
        "blocks",
        at,
        vec![raw(at)],
        vec![shown(&again)],
        vec![again.clone()],
    );
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(1)));
    let found = store
        .summaries(chat, std::slice::from_ref(&first.id))
        .await
        .unwrap();
    assert_eq!(found, [Some(first.clone())]);
    // Its figure is the stored one.
    again.tokens += 1;
    let publish = replace("third", at, vec![raw(at)], vec![shown(&again)], vec![again]);
    refused(&store, chat, "another figure", &publish).await;
    let log = store.summary_log(chat, None, 9).await.unwrap();
    assert_eq!(log.items, [first]);
    sound(&store).await;
}

/// The history tells every publish: range, rows, time and chain, in pages.
pub async fn publications_tell_the_history<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let view = ViewName::from("dag");
    let a = leaf(&store, chat, range(2, 4), "a").await;
    let b = leaf(&store, chat, range(5, 6), "b").await;
    publish_summary(&store, chat, "dag", &a).await;
    publish_summary(&store, chat, "dag", &b).await;
    let sources = [Source::Summary(&a), Source::Summary(&b)];
    let c = summary_of(&store, chat, &sources, "c").await;
    publish_summary(&store, chat, "dag", &c).await;
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
    let all = store
        .publications(chat, &view, ViewVersion(0), 10)
        .await
        .unwrap();
    assert_eq!(all.next, None);
    assert_eq!(all.items.len(), 3);
    let mut chain = Hash::ZERO;
    for (n, (found, (at, removed, added))) in all.items.iter().zip(expected).enumerate() {
        let version = ViewVersion(n as u64 + 1);
        chain = publication_hash(chain, version, at, &removed, &added);
        assert_eq!((found.version, found.at), (version, at));
        assert_eq!((&found.removed, &found.added), (&removed, &added));
        assert_eq!((found.created_at, found.hash), (Timestamp(4), chain));
    }
    assert_eq!(store.views(chat).await.unwrap()[0].chain, chain);
    let mut paged = Vec::new();
    let mut after = ViewVersion(0);
    loop {
        let page = store.publications(chat, &view, after, 2).await.unwrap();
        paged.extend(page.items);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(paged, all.items);
    let rest = store
        .publications(chat, &view, ViewVersion(2), 0)
        .await
        .unwrap();
    assert_eq!(rest.items, all.items[2..]);
    let none = store
        .publications(chat, &view, ViewVersion(3), 5)
        .await
        .unwrap();
    assert_eq!((none.items.len(), none.next), (0, None));
    sound(&store).await;
}

/// Of two publishes over the same run exactly one is done; disjoint ones both are.
pub async fn two_writers_and_one_winner<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let make = async |at, text: &str| {
        let summary = leaf(&store, chat, at, text).await;
        replace(
            "dag",
            at,
            vec![raw(at)],
            vec![shown(&summary)],
            vec![summary],
        )
    };
    let a = make(range(1, 6), "a").await;
    let b = make(range(4, 9), "b").await;
    let c = make(range(10, 12), "c").await;
    let (a, b, c) = join3(
        store.publish(chat, &a),
        store.publish(chat, &b),
        store.publish(chat, &c),
    )
    .await;
    let outcomes = [a.unwrap(), b.unwrap(), c.unwrap()];
    let done = |p: &Published| matches!(p, Published::Done(_));
    assert!(done(&outcomes[2]), "{outcomes:?}");
    assert_eq!(
        outcomes.iter().filter(|p| done(p)).count(),
        2,
        "{outcomes:?}"
    );
    let log = store.summary_log(chat, None, 9).await.unwrap();
    assert_eq!(log.items.len(), 2, "the loser leaves no orphan");
    assert_eq!(snapshot(&store, chat, "dag").await.version, ViewVersion(2));
    sound(&store).await;
}
