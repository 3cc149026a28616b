//! Pruning that the model asks for.

use block_overlay::{PruneOrder, Pruning};
use token_estimate::{TokenEstimator as _, TokenEstimatorExt as _};
use turn_map::Role;

use crate::world::{COUNTER, Msg, assistant, call, output, result, said, texts, user};

fn list() -> Vec<Msg> {
    vec![
        said(Role::System, "Be brief."),
        user("Where is it?"),
        call("x"),
        result("x", &output(10)),
        assistant("Not there."),
        user("Look elsewhere."),
        call("y"),
        result("y", &output(10)),
        call("open"),
    ]
}

#[test]
fn the_oldest_go_first_and_whole() {
    let list = list();
    let mut pruning = Pruning::default();
    let record = pruning.prun(&list, 1, &COUNTER);
    assert_eq!(record.positions, [2, 3]);
    assert_eq!(record.tokens_removed, COUNTER.messages(&list[2..4]));
    assert_eq!(pruning.apply(&list).len(), 7);
    // The next call goes on from there.
    assert_eq!(pruning.prun(&list, 1, &COUNTER).positions, [4]);
    assert_eq!(pruning.prun(&list, 1, &COUNTER).positions, [6, 7]);
    // Users, systems and calls that wait are never pruned.
    assert_eq!(pruning.prun(&list, 1, &COUNTER).positions, [0; 0]);
    assert_eq!(
        texts(&pruning.apply(&list)),
        ["Be brief.", "Where is it?", "Look elsewhere.", "<open>"]
    );
    assert_eq!(pruning.records().len(), 3);
}

#[test]
fn a_memo_stands_where_the_first_message_was() {
    let list = list();
    let mut pruning = Pruning::new(PruneOrder::NewestFirst);
    let both = COUNTER.messages(&list[6..8]) + COUNTER.message(&list[4]);
    let record = pruning.prun_with_memo(&list, both, "It is not in x.", &COUNTER);
    assert_eq!(
        (record.positions.as_slice(), record.tokens_removed),
        (&[4, 6, 7][..], both)
    );
    let left = pruning.apply(&list);
    assert_eq!(left[4], user("[Memo] It is not in x."));
    assert_eq!(left.len(), 7);
    // What a compaction left is not pruned, and records are kept as they are.
    let stored = serde_json::to_string(&pruning).unwrap();
    let read: Pruning = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, pruning);
    let mut later = Pruning::default();
    later.from = 4;
    assert_eq!(later.prun(&list, 1, &COUNTER).positions, [4]);
}

#[test]
fn braking_goes_back_to_an_earlier_state() {
    let list = list();
    let mut pruning = Pruning::default();
    let record = pruning.revert_to(&list, 4, "Tried y in vain.", &COUNTER);
    assert_eq!(record.positions, [4, 6, 7]);
    let left = texts(&pruning.apply(&list));
    assert_eq!(left[4], "[Memo] Tried y in vain.");
    assert_eq!(left[3], output(10));
    assert_eq!(pruning.from, 0);
}
