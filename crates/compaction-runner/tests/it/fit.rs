//! Making a view fit a budget without a model.

use compaction_plan::{Mode, Room, StopReason};
use memory_model::{ConversationId, Message, Span, SpanBody};
use memory_store::{InMemoryStore, Store};
use summarize_escalation::testing::{Answer, Scripted};
use summarize_escalation::{FailureKind, Ladder, Tier};

use crate::world::{Lab, append, filled, open, small, sound, spans, summaries, view, whole};

fn room(tokens: u64) -> Room {
    Room {
        tokens,
        whole_tail: false,
    }
}

async fn tokens(store: &InMemoryStore, id: ConversationId) -> u64 {
    store.snapshot(id, &view()).await.unwrap().tokens()
}

fn depths(spans: &[Span]) -> Vec<u32> {
    let depth = |span: &Span| match span.body {
        SpanBody::Summary { depth, .. } => Some(depth),
        _ => None,
    };
    spans.iter().filter_map(depth).collect()
}

#[tokio::test]
async fn it_publishes_until_the_view_fits_and_calls_no_model() {
    let (lab, model) = (Lab::new(small()), Scripted::hangs());
    let (store, id) = filled(InMemoryStore::new(), 200).await;
    let whole_view = tokens(&store, id).await;
    let mut before = whole_view;
    // Each maximum cost is smaller: messages become summaries, then summaries of equal depth are merged, and in the end
    // neighbours of any depth.
    for percent in [60, 30, 15, 10] {
        let most = whole_view * percent / 100;
        let compaction = lab.compaction(&store, id, &model);
        let outcome = compaction.extract_to_fit(room(most)).await.unwrap();
        let after = tokens(&store, id).await;
        assert_eq!(outcome.stop_reason, StopReason::Fits, "{percent} %");
        assert!(after <= most, "{after} of {most}");
        assert!(after <= before);
        before = after;
        assert_eq!((outcome.calls, model.calls()), (0, 0));
        sound(&store, id).await;
        whole(&store, id, 0).await;
    }
    let made = summaries(&store, id).await;
    assert!(!made.is_empty() && made.iter().all(|summary| summary.provisional));
}

#[tokio::test]
async fn what_waits_for_the_model_is_condensed_to_fit() {
    let lab = Lab::new(small());
    let model = Scripted::new([Answer::Failure(FailureKind::TimedOut, None)]);
    let (store, id) = filled(InMemoryStore::new(), 120).await;
    let outcome = lab.full(&store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::WaitsForModel);
    let leaves = depths(&spans(&store, id).await);
    assert!(leaves.len() > 9 && leaves.iter().all(|depth| *depth == 0));
    // A limit of the run itself, and a room.
    let cost = outcome.after.tokens;
    for most in [cost * 9 / 10, cost / 2] {
        let mut compaction = lab.compaction(&store, id, &model);
        compaction.room = Some(room(most));
        let outcome = compaction.run(Mode::Full).await.unwrap();
        assert!(outcome.published.get("condensed") > 0, "{outcome:?}");
        assert!(outcome.after.tokens < cost);
    }
    let compaction = lab.compaction(&store, id, &model);
    let outcome = compaction.extract_to_fit(room(cost / 4)).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Fits);
    sound(&store, id).await;
}

#[tokio::test]
async fn summaries_of_unequal_depth_are_condensed_when_nothing_else_helps() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(InMemoryStore::new(), 120).await;
    lab.full(&store, id, &model).await;
    let stairs = depths(&spans(&store, id).await);
    assert!(
        stairs.len() > 1 && stairs.windows(2).all(|pair| pair[0] > pair[1]),
        "{stairs:?}"
    );
    let before = tokens(&store, id).await;
    let compaction = lab.compaction(&store, id, &model);
    let again = compaction.run(Mode::Full).await.unwrap();
    assert_eq!(
        again.published.total(),
        0,
        "a compaction has nothing left to do"
    );

    let outcome = compaction.extract_to_fit(room(before - 1)).await.unwrap();
    assert_eq!(
        (outcome.stop_reason, outcome.published.get("condensed")),
        (StopReason::Fits, 1)
    );
    // The two latest summaries are merged, so that the beginning of the view stays.
    let after = depths(&spans(&store, id).await);
    assert_eq!(after[..stairs.len() - 2], stairs[..stairs.len() - 2]);
    assert_eq!(
        after.last(),
        stairs.get(stairs.len() - 2).map(|depth| depth + 1).as_ref()
    );
    sound(&store, id).await;
    whole(&store, id, 0).await;
}

#[tokio::test]
async fn an_unchanged_state_is_not_tried_again() {
    let (lab, model) = (Lab::new(small()), Scripted::hangs());
    let store = InMemoryStore::new();
    let id = open(&store, "chat").await;
    append(
        &store,
        id,
        vec![Message::user("One long message. ".repeat(400))],
    )
    .await;
    let compaction = lab.compaction(&store, id, &model);
    let stop = async |tokens| {
        let outcome = compaction.extract_to_fit(room(tokens)).await.unwrap();
        assert_eq!(outcome.published.total(), 0);
        outcome.stop_reason
    };
    assert_eq!(stop(500).await, StopReason::NothingEligible);
    assert_eq!(stop(500).await, StopReason::Exhausted);
    // Another maximum cost counts as another policy.
    assert_eq!(stop(400).await, StopReason::NothingEligible);
    append(&store, id, vec![Message::assistant("Well.")]).await;
    let outcome = compaction.extract_to_fit(room(400)).await.unwrap();
    assert_eq!(
        (outcome.published.get("leaf"), outcome.stop_reason),
        (1, StopReason::Fits)
    );
}

#[tokio::test]
async fn a_ladder_without_extracts_publishes_none() {
    let ladder = Ladder {
        tiers: vec![Tier::Normal, Tier::Cut],
        ..Ladder::default()
    };
    let (lab, model) = (Lab::new(small()).with_ladder(ladder), Scripted::hangs());
    let (store, id) = filled(InMemoryStore::new(), 60).await;
    let compaction = lab.compaction(&store, id, &model);
    let outcome = compaction.extract_to_fit(room(500)).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert_eq!(store.snapshot(id, &view()).await.unwrap().version.0, 0);
}

#[tokio::test]
async fn a_tail_that_contexts_show_whole_is_not_shortened() {
    let (lab, model) = (Lab::new(small()), Scripted::hangs());
    for whole_tail in [true, false] {
        let (store, id) = filled(InMemoryStore::new(), 60).await;
        let compaction = lab.compaction(&store, id, &model);
        let room = Room {
            tokens: 600,
            whole_tail,
        };
        compaction.extract_to_fit(room).await.unwrap();
        let spans = spans(&store, id).await;
        let tail = spans.last().unwrap();
        assert_eq!(tail.body, SpanBody::Raw);
        let messages = 61 - tail.range.first.0;
        // The policy protects six messages. A tail that is limited by the maximum cost is shorter.
        assert_eq!(messages >= 6, whole_tail, "{messages} messages stay");
    }
}

#[tokio::test]
async fn a_summary_that_was_ready_too_late_takes_the_place_of_its_extract() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(InMemoryStore::new(), 64).await;
    let mut compaction = lab.compaction(&store, id, &model);
    compaction.policy.prefetch_min_tokens = 100;
    let ready = compaction.prefetch_summaries().await.unwrap().ready;
    let paid = model.calls();
    let most = room(tokens(&store, id).await - 1);
    let extracted = compaction.extract_to_fit(most).await.unwrap();
    let leaves = extracted.published.get("leaf");
    assert!(leaves > 1 && ready >= leaves, "{ready}, {extracted:?}");

    // Summaries that were merged from the drafts are published with them.
    let published = compaction.publish_ready().await.unwrap();
    assert_eq!((published.published.total(), published.calls), (ready, 0));
    assert_eq!(published.published.get("leaf"), leaves);
    assert_eq!(model.calls(), paid);
    let shown = spans(&store, id).await;
    let shown: Vec<_> = shown
        .iter()
        .filter_map(|span| span.body.summary())
        .collect();
    let made = summaries(&store, id).await;
    let by_model = made
        .iter()
        .filter(|s| shown.contains(&&s.id) && !s.provisional);
    assert_eq!(by_model.count(), shown.len());
    assert!(!shown.is_empty());
    sound(&store, id).await;
}

#[tokio::test]
async fn a_growing_view_is_shrunk_again_and_again_and_stays_whole() {
    let model = Scripted::hangs();
    let mut deepest = 0;
    for most in [300, 420, 600, 900] {
        let lab = Lab::new(small());
        let (store, id) = filled(InMemoryStore::new(), 4).await;
        for step in 0..60_u32 {
            let words = "The tide table of the harbour says so. ".repeat(step as usize % 7 + 1);
            append(
                &store,
                id,
                vec![Message::user(words.clone()), Message::assistant(words)],
            )
            .await;
            if tokens(&store, id).await > most {
                let compaction = lab.compaction(&store, id, &model);
                compaction
                    .extract_to_fit(room(most / 10 * 6))
                    .await
                    .unwrap();
            }
        }
        sound(&store, id).await;
        whole(&store, id, 0).await;
        deepest = depths(&spans(&store, id).await)
            .into_iter()
            .max()
            .max(Some(deepest))
            .unwrap_or(0);
    }
    assert!(deepest >= 3, "{deepest}");
}
