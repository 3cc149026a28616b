//! Cases of publishes that a store refuses.

use memory_model::{Child, Hash, Span, SpanBody, Summary, SummaryId, ViewVersion};
use memory_store::{FullStore, Publish, Published};

use crate::builders::{omitted, over_raw, range, raw, showing, shown};
use crate::chat::Chat;

/// Checks that a publish is refused if its spans do not cover exactly the range, or lie beyond the end of the log.
pub async fn bad_spans_are_refused<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 10).await;
    let at = range(2, 6);
    let mut open = omitted(at);
    open.range.last = None;
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
        chat.refuses(what, &over_raw("dag", at, spans)).await;
    }
    for beyond in [range(8, 11), range(1, u32::MAX)] {
        let publish = over_raw("dag", beyond, vec![omitted(beyond)]);
        chat.refuses("beyond the head", &publish).await;
    }
}

/// Checks that a publish is refused if a summary contradicts itself or the objects to which it refers.
pub async fn bad_summaries_are_refused<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 12).await;
    let stored = chat.show_leaf("dag", range(1, 3), "stored").await;
    let other = Chat::root(store, "other").await;
    other.fill(12).await;
    let foreign = other.show_leaf("dag", range(4, 6), "foreign").await;

    let at = range(4, 6);
    let good = chat.leaf(at, "good").await;
    let refused = async |what: &str, change: &dyn Fn(&mut Summary)| {
        let mut bad = good.clone();
        change(&mut bad);
        chat.refuses(what, &showing("dag", &bad)).await;
    };
    type Change = fn(&mut Summary);
    let changes: [(&str, Change); 3] = [
        ("another text", |s| s.body = "another text".into()),
        ("another id", |s| {
            s.id = SummaryId::new("sum_0000000000000000");
        }),
        ("another hash", |s| s.hash = Hash::ZERO),
    ];
    for (what, change) in changes {
        refused(what, &change).await;
    }
    let messages = |first, last| {
        let range = range(first, last);
        Child::Messages { range }
    };
    let over = |first, last, summary: &Summary| Child::Summary {
        range: range(first, last),
        id: summary.id.clone(),
    };
    let missing = chat.leaf(at, "never stored").await;
    // The hash and the id of the following summaries match their content.
    refused("a wrong depth", &|s| {
        s.depth = 1;
        s.set_hash_and_id();
    })
    .await;
    for (what, children) in [
        ("no children", vec![]),
        ("a child too short", vec![messages(4, 5)]),
        ("a child that begins before", vec![messages(3, 6)]),
        ("children with a hole", vec![messages(4, 4), messages(6, 6)]),
    ] {
        refused(what, &|s| {
            s.children.clone_from(&children);
            s.set_hash_and_id();
        })
        .await;
    }
    for (what, sources) in [
        ("no sources", vec![]),
        ("a source beyond its range", vec![messages(4, 7)]),
    ] {
        refused(what, &|s| {
            s.sources.clone_from(&sources);
            s.set_hash_and_id();
        })
        .await;
    }
    for (what, named) in [
        ("it is nowhere", over(4, 6, &missing)),
        ("it is of another conversation", over(4, 6, &foreign)),
        ("it covers something else", over(4, 6, &stored)),
    ] {
        refused(&format!("a child: {what}"), &|s| {
            s.children = vec![named.clone()];
            s.depth = 1;
            s.set_hash_and_id();
        })
        .await;
        refused(&format!("a source: {what}"), &|s| {
            s.sources = vec![named.clone()];
            s.set_hash_and_id();
        })
        .await;
    }
    let mut deep = good.clone();
    deep.range = range(1, 6);
    deep.children = vec![over(1, 3, &stored), messages(4, 6)];
    deep.depth = 2;
    deep.set_hash_and_id();
    let deep = Publish {
        expect: vec![shown(&stored), raw(at)],
        ..showing("dag", &deep)
    };
    chat.refuses("a depth that skips one", &deep).await;

    let mut dearer = shown(&good);
    dearer.tokens += 1;
    let mut deeper = shown(&good);
    deeper.body = SpanBody::Summary {
        id: good.id.clone(),
        depth: 1,
    };
    for (what, span) in [
        ("a span with other tokens", dearer),
        ("a span with another depth", deeper),
        ("a summary that nothing shows", omitted(at)),
    ] {
        let publish = Publish {
            spans: vec![span],
            ..showing("dag", &good)
        };
        chat.refuses(what, &publish).await;
    }
    let elsewhere = Span::closed(at, shown(&stored).body, stored.tokens);
    for (what, span) in [
        ("a span over another range", elsewhere),
        ("a summary that is nowhere", shown(&missing)),
        ("a summary of another conversation", shown(&foreign)),
    ] {
        chat.refuses(what, &over_raw("dag", at, vec![span])).await;
    }
    let twice = Publish {
        summaries: vec![good.clone(), good.clone()],
        ..showing("dag", &good)
    };
    chat.refuses("a summary brought twice", &twice).await;
    let done = chat.publish(&showing("dag", &good)).await;
    let expected = Published::Done(ViewVersion(2));
    assert_eq!(done, expected, "the good one is accepted");
}
