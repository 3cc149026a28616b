//! Publishes that a store refuses.

use memory_model::{Child, Hash, Seq, Span, SpanBody, SpanRange, Summary, SummaryId, ViewVersion};
use memory_store::{Published, Store};

use super::unchanged::refused;
use crate::Fixture;
use crate::builders::{
    chat, fill, leaf, omitted, publish_summary, range, raw, replace, root, shown, sound,
};

/// Spans that do not tile the range, or lie beyond the log, are refused.
pub async fn bad_spans_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 10).await;
    let at = range(2, 6);
    let open = Span {
        range: SpanRange {
            first: Seq(2),
            last: None,
        },
        body: SpanBody::Omitted,
        tokens: 0,
    };
    for (what, spans) in [
        ("no spans", vec![]),
        ("too short", vec![omitted(range(2, 5))]),
        ("too long", vec![omitted(range(2, 7))]),
        ("begins before", vec![omitted(range(1, 6))]),
        ("begins after", vec![omitted(range(3, 6))]),
        ("a gap", vec![omitted(range(2, 3)), raw(range(5, 6))]),
        ("an overlap", vec![omitted(range(2, 4)), raw(range(4, 6))]),
        ("out of order", vec![raw(range(4, 6)), omitted(range(2, 3))]),
        ("open", vec![open]),
    ] {
        refused(
            &store,
            chat,
            what,
            &replace("dag", at, vec![raw(at)], spans, vec![]),
        )
        .await;
    }
    let beyond = range(8, 11);
    let publish = replace(
        "dag",
        beyond,
        vec![raw(beyond)],
        vec![omitted(beyond)],
        vec![],
    );
    refused(&store, chat, "beyond the head", &publish).await;
    let far = range(1, u32::MAX);
    let publish = replace("dag", far, vec![raw(far)], vec![omitted(far)], vec![]);
    refused(&store, chat, "far beyond the head", &publish).await;
    sound(&store).await;
}

/// Summaries that contradict themselves, or what they refer to, are refused.
pub async fn bad_summaries_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = chat(&store, 12).await;
    let stored = leaf(&store, chat, range(1, 3), "stored").await;
    publish_summary(&store, chat, "dag", &stored).await;
    let other = root(&store, "other").await;
    fill(&store, other.id, 12).await;
    let foreign = leaf(&store, other.id, range(4, 6), "foreign").await;
    publish_summary(&store, other.id, "dag", &foreign).await;

    let at = range(4, 6);
    let good = leaf(&store, chat, at, "good").await;
    let publish = |summary: &Summary, span: Span| {
        replace("dag", at, vec![raw(at)], vec![span], vec![summary.clone()])
    };
    type Change = fn(&mut Summary);
    let changes: [(&str, Change); 10] = [
        ("another text", |s| s.body = "another text".into()),
        ("no sources", |s| {
            s.sources.clear();
            s.set_hash_and_id();
        }),
        ("a source beyond its range", |s| {
            s.sources = vec![Child::Messages { range: range(4, 7) }];
            s.set_hash_and_id();
        }),
        ("another id", |s| {
            s.id = SummaryId::new("sum_0000000000000000")
        }),
        ("another hash", |s| s.hash = Hash::ZERO),
        ("a wrong depth", |s| {
            s.depth = 1;
            s.set_hash_and_id();
        }),
        ("no children", |s| {
            s.children.clear();
            s.set_hash_and_id();
        }),
        ("a child too short", |s| {
            s.children = vec![Child::Messages { range: range(4, 5) }];
            s.set_hash_and_id();
        }),
        ("a child that begins before", |s| {
            s.children = vec![Child::Messages { range: range(3, 6) }];
            s.set_hash_and_id();
        }),
        ("children with a hole", |s| {
            s.children = vec![
                Child::Messages { range: range(4, 4) },
                Child::Messages { range: range(6, 6) },
            ];
            s.set_hash_and_id();
        }),
    ];
    for (what, change) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        refused(&store, chat, what, &publish(&bad, shown(&bad))).await;
    }

    let over = |first, last, summary: &Summary| Child::Summary {
        range: range(first, last),
        id: summary.id.clone(),
    };
    let missing = leaf(&store, chat, at, "never stored").await;
    for (what, child, depth) in [
        ("a child that is nowhere", over(4, 6, &missing), 1),
        ("a child of another conversation", over(4, 6, &foreign), 1),
        ("a child that covers something else", over(4, 6, &stored), 1),
    ] {
        let mut bad = good.clone();
        bad.children = vec![child.clone()];
        bad.depth = depth;
        bad.set_hash_and_id();
        refused(&store, chat, what, &publish(&bad, shown(&bad))).await;
        let mut bad = good.clone();
        bad.sources = vec![child];
        bad.set_hash_and_id();
        refused(&store, chat, what, &publish(&bad, shown(&bad))).await;
    }
    let around = range(1, 6);
    let mut deep = good.clone();
    deep.range = around;
    deep.children = vec![over(1, 3, &stored), Child::Messages { range: at }];
    deep.depth = 2;
    deep.set_hash_and_id();
    let expect = vec![shown(&stored), raw(at)];
    let publish_deep = replace("dag", around, expect, vec![shown(&deep)], vec![deep]);
    refused(&store, chat, "a depth that skips one", &publish_deep).await;

    let mut wrong = shown(&good);
    wrong.tokens += 1;
    refused(
        &store,
        chat,
        "a span with other tokens",
        &publish(&good, wrong),
    )
    .await;
    let mut wrong = shown(&good);
    wrong.body = SpanBody::Summary {
        id: good.id.clone(),
        depth: 1,
    };
    refused(
        &store,
        chat,
        "a span with another depth",
        &publish(&good, wrong),
    )
    .await;
    refused(
        &store,
        chat,
        "a summary that nothing shows",
        &publish(&good, omitted(at)),
    )
    .await;
    let span = Span::closed(at, shown(&stored).body, stored.tokens);
    let bring_nothing = replace("dag", at, vec![raw(at)], vec![span], vec![]);
    refused(&store, chat, "a span over another range", &bring_nothing).await;
    let bring_nothing = replace("dag", at, vec![raw(at)], vec![shown(&missing)], vec![]);
    refused(&store, chat, "a summary that is nowhere", &bring_nothing).await;
    let bring_nothing = replace("dag", at, vec![raw(at)], vec![shown(&foreign)], vec![]);
    refused(
        &store,
        chat,
        "a summary of another conversation",
        &bring_nothing,
    )
    .await;
    let twice = vec![good.clone(), good.clone()];
    let publish_twice = replace("dag", at, vec![raw(at)], vec![shown(&good)], twice);
    refused(&store, chat, "a summary brought twice", &publish_twice).await;
    let done = store
        .publish(chat, &publish(&good, shown(&good)))
        .await
        .unwrap();
    assert_eq!(
        done,
        Published::Done(ViewVersion(2)),
        "the good one is accepted"
    );
    sound(&store).await;
}
