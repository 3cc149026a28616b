//! The state of the view at the start and at the end of a run.

use compaction_plan::{Mode, StopReason};
use compaction_runner::{Compaction, Outcome};
use memory_model::{ConversationId, ViewName};
use memory_store::{FullStore, InMemoryStore, Store};
use summarize_escalation::testing::Scripted;

use crate::world::{
    Lab, append, chat, dump, filled, lease_clock, on_sqlite, open, small, sound, spans, view,
};

/// Asserts that an outcome has the state of the store.
async fn agrees(store: &dyn Store, id: ConversationId, outcome: &Outcome) {
    let now = store.snapshot(id, &view()).await.unwrap();
    assert_eq!(outcome.snapshot, now);
    let views = store.views(id).await.unwrap();
    let listed = views.iter().find(|listed| listed.name == view()).unwrap();
    assert_eq!(outcome.after.spans, listed.spans);
    assert_eq!(outcome.after.tokens, now.tokens());
}

#[tokio::test]
async fn a_given_state_takes_the_place_of_a_look_up() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(on_sqlite(&lease_clock()).await, 120).await;
    let (twin, other) = filled(on_sqlite(&lease_clock()).await, 120).await;
    let start = store.snapshot(id, &view()).await.unwrap();
    let mut given = lab.compaction(&store, id, &model);
    given.snapshot = Some(start);
    let given = given.run_until(2, &|_| false).await.unwrap();
    let looked_up = lab.compaction(&twin, other, &model);
    let looked_up = looked_up.run_until(2, &|_| false).await.unwrap();
    assert_eq!((given.before.spans, given.before), (1, looked_up.before));
    assert_eq!(given.published, looked_up.published);
    assert!(given.published.total() > 0);
    agrees(&store, id, &given).await;
    assert_eq!(spans(&store, id).await, spans(&twin, other).await);
    sound(&store, id).await;

    // Without jobs, the only difference is the look-up.
    lab.full(&store, id, &model).await;
    let statements = async |compaction: &Compaction<'_>| {
        let before = store.statements();
        let outcome = compaction.run(Mode::Incremental).await.unwrap();
        assert_eq!(outcome.published.total(), 0);
        store.statements() - before
    };
    let now = store.snapshot(id, &view()).await.unwrap();
    let mut compaction = lab.compaction(&store, id, &model);
    let looked_up = statements(&compaction).await;
    compaction.snapshot = Some(now);
    assert_eq!(statements(&compaction).await, looked_up - 1);
}

#[tokio::test]
async fn an_outdated_state_loses_the_race_and_changes_nothing() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(InMemoryStore::new(), 120).await;
    let outdated = store.snapshot(id, &view()).await.unwrap();
    let first = lab.full(&store, id, &model).await;
    agrees(&store, id, &first).await;
    let before = dump(&store, id).await;
    let mut compaction = lab.compaction(&store, id, &model);
    compaction.snapshot = Some(outdated);
    let outcome = compaction.run(Mode::Incremental).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::LostRace);
    assert_eq!(outcome.published.total(), 0);
    agrees(&store, id, &outcome).await;
    assert_eq!(dump(&store, id).await, before);
    sound(&store as &dyn FullStore, id).await;
}

#[tokio::test]
async fn a_state_of_another_conversation_or_view_is_ignored() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(InMemoryStore::new(), 120).await;
    let other = open(&store, "other").await;
    append(&store, other, chat(1, 8)).await;
    let foreign = [
        store.snapshot(other, &view()).await.unwrap(),
        store.snapshot(id, &ViewName::new("other")).await.unwrap(),
    ];
    for state in foreign {
        let mut compaction = lab.compaction(&store, id, &model);
        compaction.snapshot = Some(state);
        let outcome = compaction.run(Mode::Incremental).await.unwrap();
        assert_eq!(outcome.before.messages, 120);
        agrees(&store, id, &outcome).await;
    }
    assert_eq!(store.views(other).await.unwrap(), []);
}
