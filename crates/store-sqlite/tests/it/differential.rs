//! Whatever is done, the database answers as the reference store does.

use memory_model::{
    Body, ConversationId, Message, Part, RawJson, Recipe, Role, Seq, SeqRange, Span, Summary,
    SummaryId, Timestamp, TrimPolicyId, ViewName, ViewVersion,
};
use memory_store::{
    AppendAt, Claim, ConversationFilter, ConversationPatch, ConversationRef, Draft, Fence,
    InMemoryStore, JobKey, JobOutcome, LogRead, Maintain as _, NewConversation, Order, Origin,
    Owner, Publish, Query, Search as _, Store, fill_raw_tokens,
};
use store_sqlite::SqliteStore;

use crate::common::{batch, dag, estimator, range, summary};

/// A small generator of numbers: a test must be the same at each run.
struct Dice(u64);

impl Dice {
    /// A number from 0 to `sides` - 1.
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }
}

/// Both answers, errors by kind alone.
macro_rules! same {
    ($a:expr, $b:expr, $($what:tt)*) => {{
        let a = $a.map_err(|error| error.kind());
        let b = $b.map_err(|error| error.kind());
        assert_eq!(a, b, $($what)*);
        a
    }};
}

fn message(dice: &mut Dice, n: u32) -> Message {
    let message = match dice.roll(6) {
        0 => Message::note(Role::System, vec![Part::text(format!("note {n}"))]),
        1 => Message::tool_call(
            format!("c{n}"),
            "run",
            RawJson::parse(r#"{"a": 1.0}"#).unwrap(),
        ),
        2 => Message::tool_result(format!("c{n}"), "out ä"),
        3 => Message::assistant(format!("said {n}"))
            .with_response("r")
            .with_turn("loop", n),
        _ => Message::user(format!("asked {n}"))
            .with_name("ann")
            .with_created_at(Timestamp(i64::from(n))),
    };
    match dice.roll(3) {
        0 => message,
        1 => message.with_external_id(format!("x{}", dice.roll(40))),
        _ => message.with_external_id(format!("y{n}")),
    }
}

async fn append_some(
    dice: &mut Dice,
    a: &InMemoryStore,
    b: &SqliteStore,
    id: ConversationId,
    n: u32,
) {
    let most = if dice.roll(4) == 0 { 100 } else { 5 };
    let count = dice.roll(most);
    let mut append = batch((0..count).map(|i| message(dice, n * 100 + i)).collect());
    match dice.roll(8) {
        0 => append.at = AppendAt::Head(Seq(dice.roll(20))),
        1 => append.estimator = "other@1".parse().unwrap(),
        _ => {}
    }
    let _ = same!(
        a.append(id, &append).await,
        b.append(id, &append).await,
        "append {n}"
    );
}

/// Publishes something that is likely to be right, and sometimes is not.
async fn publish_some(
    dice: &mut Dice,
    a: &InMemoryStore,
    b: &SqliteStore,
    id: ConversationId,
    n: u32,
) {
    let view = if dice.roll(4) == 0 {
        ViewName::new("other")
    } else {
        dag()
    };
    let Ok(shot) = a.snapshot(id, &view).await else {
        return;
    };
    let Some(all) = SeqRange::new(Seq(1), shot.head) else {
        return;
    };
    let spans = a
        .spans(&shot, all, Order::OldestFirst, 10_000)
        .await
        .unwrap()
        .items;
    let pick = dice.roll(u32::try_from(spans.len()).unwrap()) as usize;
    let many = 1 + dice.roll(4) as usize;
    let mut expect: Vec<Span> = spans[pick..(pick + many).min(spans.len())].to_vec();
    // Stay before the end of the log, and cut raw spans somewhere.
    for span in &mut expect {
        if span.range.last.is_none() {
            let last = shot.head.0.min(span.range.first.0 + dice.roll(12));
            span.range.last = Some(Seq(last));
        }
    }
    if expect[0].body == Body::Raw && dice.roll(2) == 0 {
        let whole = expect[0].closed_range().unwrap_or(all);
        let first = whole.first.0 + dice.roll(u32::try_from(whole.len()).unwrap());
        expect[0].range.first = Seq(first);
    }
    let Some(at) = SeqRange::new(
        expect[0].range.first,
        expect.last().unwrap().range.last.unwrap(),
    ) else {
        return;
    };
    if at.last > shot.head {
        return;
    }
    let recipe = format!("r{}", dice.roll(2));
    let ids: Vec<SummaryId> = expect
        .iter()
        .filter_map(|s| s.body.summary().cloned())
        .collect();
    let of: Vec<Summary> = if ids.len() == expect.len() {
        a.summaries(id, &ids)
            .await
            .unwrap()
            .into_iter()
            .flatten()
            .collect()
    } else {
        Vec::new()
    };
    let made = summary(a, id, at, &of, &recipe).await;
    let body = Body::Summary {
        id: made.id.clone(),
        depth: made.depth,
    };
    let (spans, summaries) = match dice.roll(7) {
        0 => (vec![Span::closed(at, Body::Omitted, 0)], vec![]),
        1 => (
            vec![Span::closed(at, Body::Trimmed(TrimPolicyId::new("t@1")), 2)],
            vec![],
        ),
        2 => (vec![Span::closed(at, Body::Raw, 0)], vec![]),
        // Wrong ones.
        3 if dice.roll(3) == 0 => (vec![Span::closed(at, body, made.tokens + 1)], vec![made]),
        4 if dice.roll(3) == 0 => (vec![Span::closed(at, body, made.tokens)], vec![]),
        5 if dice.roll(3) == 0 => (vec![], vec![]),
        _ => (vec![Span::closed(at, body, made.tokens)], vec![made]),
    };
    if dice.roll(10) == 0 {
        expect.pop();
    }
    let publish = Publish {
        view,
        at,
        expect,
        spans,
        summaries,
        fence: None,
        now: Timestamp(i64::from(n)),
    };
    let _ = same!(
        a.publish(id, &publish).await,
        b.publish(id, &publish).await,
        "publish {n}: {publish:?}"
    );
}

async fn work_some(
    dice: &mut Dice,
    a: &InMemoryStore,
    b: &SqliteStore,
    id: ConversationId,
    n: u32,
) {
    let key = JobKey(format!("k{}", dice.roll(2)));
    let owner = Owner(format!("o{}", dice.roll(2)));
    let now = Timestamp(i64::from(n));
    let claims = (
        a.claim(id, &key, &owner, now, 5).await,
        b.claim(id, &key, &owner, now, 5).await,
    );
    let fence = |claim: &Claim| match claim {
        Claim::Granted(fence) | Claim::Ready(fence, _) => Some(fence.clone()),
        Claim::Held { .. } => None,
    };
    let (Ok(x), Ok(y)) = (&claims.0, &claims.1) else {
        assert_eq!(claims.0.unwrap_err().kind(), claims.1.unwrap_err().kind());
        return;
    };
    match (x, y) {
        (Claim::Granted(_), Claim::Granted(_)) => {}
        (Claim::Ready(_, x), Claim::Ready(_, y)) => assert_eq!(x, y),
        (x, y) => assert_eq!(x, y),
    }
    let (Some(x), Some(y)) = (fence(x), fence(y)) else {
        return;
    };
    let outcome = match dice.roll(5) {
        0 => JobOutcome::Renew { ttl_micros: 50 },
        1 => JobOutcome::Prepared(Draft(RawJson::parse(n.to_string()).unwrap())),
        2 => JobOutcome::Failed,
        3 => JobOutcome::Release,
        _ => return,
    };
    let _ = same!(
        a.settle(&x, &outcome, now).await,
        b.settle(&y, &outcome, now).await,
        "settle {n}"
    );
    let late = |fence: Fence| Fence { token: 0, ..fence };
    let _ = same!(
        a.settle(&late(x), &outcome, now).await,
        b.settle(&late(y), &outcome, now).await,
        "late settle {n}"
    );
    let key = format!("s{}", dice.roll(2));
    let revision = u64::from(dice.roll(3));
    let value = RawJson::parse(n.to_string()).unwrap();
    let value = (dice.roll(4) > 0).then_some(&value);
    let _ = same!(
        a.put_state(id, &key, revision, value).await,
        b.put_state(id, &key, revision, value).await,
        "put_state {n}"
    );
    let _ = same!(
        a.state(id, &key).await,
        b.state(id, &key).await,
        "state {n}"
    );
}

/// Everything that can be read of a conversation.
async fn compare(dice: &mut Dice, a: &InMemoryStore, b: &SqliteStore, id: ConversationId) {
    let found = same!(
        a.conversation(&ConversationRef::Id(id)).await,
        b.conversation(&ConversationRef::Id(id)).await,
        "conversation"
    );
    let Some(found) = found.unwrap() else { return };
    let key = ConversationRef::Key(found.key.clone());
    let _ = same!(
        a.conversation(&key).await,
        b.conversation(&key).await,
        "by key"
    );
    let end = found.head.0 + 3;
    for _ in 0..4 {
        let first = 1 + dice.roll(end);
        let part = range(first, first + dice.roll(end));
        let mut read = LogRead::new(part).with_max_rows(dice.roll(20) as usize);
        read.max_bytes = u64::from(dice.roll(600));
        let _ = same!(a.read(id, &read).await, b.read(id, &read).await, "{read:?}");
        let read = read.newest_first();
        let _ = same!(a.read(id, &read).await, b.read(id, &read).await, "{read:?}");
        let at = [Seq(0), Seq(first), Seq(end), found.head];
        let _ = same!(
            a.running(id, &at).await,
            b.running(id, &at).await,
            "running {at:?}"
        );
        let tokens = u64::from(dice.roll(end * 3));
        let _ = same!(
            a.seq_at(id, tokens).await,
            b.seq_at(id, tokens).await,
            "seq_at {tokens}"
        );
    }
    let ids: Vec<String> = (0..45).map(|n| format!("x{n}")).collect();
    let _ = same!(a.find(id, &ids).await, b.find(id, &ids).await, "find");
    let _ = same!(a.views(id).await, b.views(id).await, "views");
    for view in [dag(), ViewName::new("other"), ViewName::new("none")] {
        let shot = same!(
            a.snapshot(id, &view).await,
            b.snapshot(id, &view).await,
            "snapshot"
        );
        let shot = shot.unwrap();
        let (after, limit) = (
            ViewVersion(u64::from(dice.roll(4))),
            1 + dice.roll(5) as usize,
        );
        let _ = same!(
            a.publications(id, &view, after, limit).await,
            b.publications(id, &view, after, limit).await,
            "publications"
        );
        for _ in 0..4 {
            let mut old = shot.clone();
            if shot.version > ViewVersion(0) {
                // One beyond the last, too.
                let versions = u32::try_from(shot.version.0).unwrap() + 2;
                old.version = ViewVersion(u64::from(dice.roll(versions)));
            }
            let first = 1 + dice.roll(end);
            let part = range(first, first + dice.roll(end));
            let limit = dice.roll(6) as usize;
            for order in [Order::OldestFirst, Order::NewestFirst] {
                let page = same!(
                    a.spans(&old, part, order, limit).await,
                    b.spans(&old, part, order, limit).await,
                    "spans of {old:?} over {part}, {order:?}, {limit}"
                );
                let Ok(page) = page else { continue };
                let (mut x, mut y) = (page.items.clone(), page.items);
                fill_raw_tokens(a, &old, &mut x).await.unwrap();
                fill_raw_tokens(b, &old, &mut y).await.unwrap();
                assert_eq!(x, y);
            }
        }
    }
    let log = a.summary_log(id, None, 1000).await.unwrap().items;
    let _ = same!(
        a.summary_log(id, None, 2).await,
        b.summary_log(id, None, 2).await,
        "log"
    );
    for summary in &log {
        let _ = same!(
            a.summary_log(id, Some(&summary.id), 3).await,
            b.summary_log(id, Some(&summary.id), 3).await,
            "log"
        );
        let _ = same!(
            a.containers(id, &summary.id).await,
            b.containers(id, &summary.id).await,
            "containers"
        );
        for recipe in ["r0", "r1", "none"].map(Recipe::new) {
            let _ = same!(
                a.made_from(id, summary.source_hash, &recipe).await,
                b.made_from(id, summary.source_hash, &recipe).await,
                "made_from"
            );
        }
    }
    let mut ids: Vec<SummaryId> = log.iter().map(|summary| summary.id.clone()).collect();
    ids.push(SummaryId::new("sum_none"));
    ids.reverse();
    let _ = same!(
        a.summaries(id, &ids).await,
        b.summaries(id, &ids).await,
        "summaries"
    );
    let query = Query::new("1").with_limit(5);
    let _ = same!(
        a.search(id, &query).await,
        b.search(id, &query).await,
        "search"
    );
}

async fn play(seed: u64, steps: u32) {
    let mut dice = Dice(seed);
    let (a, b) = (
        InMemoryStore::new(),
        SqliteStore::in_memory().await.unwrap(),
    );
    for n in 0..steps {
        let id = ConversationId(1 + dice.roll(4));
        match dice.roll(12) {
            0 | 1 => {
                let parent = ConversationId(1 + dice.roll(4));
                let origin = match dice.roll(4) {
                    0 => Origin::Spawn {
                        parent,
                        at: Seq(dice.roll(5)),
                        call: Some("c".to_owned()),
                    },
                    1 => Origin::Root,
                    _ => Origin::Fork {
                        parent,
                        at: Seq(dice.roll(60)),
                    },
                };
                let new = NewConversation {
                    origin,
                    title: Some("t".to_owned()),
                    meta: Some(RawJson::parse("{\"a\": 1}").unwrap()),
                    ..NewConversation::root(
                        format!("c{}", dice.roll(6)).as_str(),
                        estimator(),
                        Timestamp(1),
                    )
                };
                let _ = same!(a.open(&new).await, b.open(&new).await, "open {n}: {new:?}");
            }
            2..6 => append_some(&mut dice, &a, &b, id, n).await,
            6..10 => publish_some(&mut dice, &a, &b, id, n).await,
            10 => work_some(&mut dice, &a, &b, id, n).await,
            _ => {
                let patch = ConversationPatch {
                    title: (dice.roll(2) == 0).then(|| format!("t{n}")),
                    archived: (dice.roll(2) == 0).then(|| dice.roll(2) == 0),
                    ..ConversationPatch::default()
                };
                let now = Timestamp(i64::from(n));
                let _ = same!(
                    a.update(id, &patch, now).await,
                    b.update(id, &patch, now).await,
                    "update {n}"
                );
            }
        }
        if n % 16 == 15 {
            compare(&mut dice, &a, &b, id).await;
        }
    }
    for archived in [false, true] {
        for tree in [None, Some(ConversationId(1))] {
            let mut filter = ConversationFilter::default();
            (filter.archived, filter.tree) = (archived, tree);
            let after = Some(ConversationId(dice.roll(3)));
            let _ = same!(
                a.list(&filter, None, 2).await,
                b.list(&filter, None, 2).await,
                "list"
            );
            let _ = same!(
                a.list(&filter, after, 9).await,
                b.list(&filter, after, 9).await,
                "list"
            );
        }
    }
    assert_eq!(b.check().await.unwrap(), []);
}

#[tokio::test]
async fn it_answers_as_the_reference_does() {
    for seed in 0..24 {
        play(seed, 200).await;
    }
}
