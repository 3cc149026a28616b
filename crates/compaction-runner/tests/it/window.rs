//! The beginnings of atoms, found from a few entries and compared with the atoms of the whole log.

use compaction_plan::Tail;
use compaction_runner::{atom_start, newest_entries};
use memory_model::{ConversationId, EntryKind, LogEntry, Message, Seq};
use memory_store::{InMemoryStore, Store as _};
use proptest::prelude::*;
use store_sqlite::SqliteOptions;
use turn_map::{AtomBuilder, Atoms};

use crate::world::{append, entries, open, script};

fn atoms(entries: &[LogEntry]) -> Atoms {
    let mut builder = AtomBuilder::starting_at(1);
    entries.iter().for_each(|entry| builder.push(entry));
    builder.finish()
}

fn starts(atoms: &Atoms) -> Vec<u32> {
    atoms.iter().map(|atom| atom.range().start as u32).collect()
}

async fn check(store: &InMemoryStore, id: ConversationId) {
    let log = entries(store, id).await;
    let all = atoms(&log);
    let starts = starts(&all);
    let head = Seq(log.len() as u32);
    for seq in 1..=head.0 {
        let found = atom_start(store, id, Seq::FIRST, Seq(seq)).await.unwrap();
        assert!(starts.contains(&found.0), "{seq} → {found} in {starts:?}");
        let own = all.atom_of(seq as usize).unwrap().range().start as u32;
        assert!(found.0 <= own, "{seq} → {found}, beyond {own}");
        for floor in starts.iter().filter(|start| **start <= seq) {
            let found = atom_start(store, id, Seq(*floor), Seq(seq)).await.unwrap();
            assert!(found.0 >= *floor && starts.contains(&found.0));
        }
    }
    let messages = log.iter().filter(|e| e.kind == EntryKind::Message).count();
    for window in 0..=messages + 1 {
        let newest = newest_entries(store, id, head, Tail::messages(window.max(1)))
            .await
            .unwrap();
        let kept = newest
            .iter()
            .filter(|e| e.kind == EntryKind::Message)
            .count();
        assert!(kept >= window.min(messages));
        let Some(first) = newest.first() else {
            assert!(log.is_empty());
            continue;
        };
        assert!(starts.contains(&first.seq.0), "{window} → {}", first.seq);
        assert_eq!(newest, log[first.seq.0 as usize - 1..]);
        // The atoms from there on are the same as in the whole log.
        let mut builder = AtomBuilder::starting_at(first.seq.0 as usize);
        newest.iter().for_each(|entry| builder.push(entry));
        let some: Vec<_> = builder.finish().iter().map(|atom| atom.range()).collect();
        let tail: Vec<_> = all.iter().map(|atom| atom.range()).collect();
        assert!(tail.ends_with(&some));
    }
}

fn checked(messages: Vec<Message>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = InMemoryStore::new();
        let id = open(&store, "chat").await;
        append(&store, id, messages).await;
        check(&store, id).await;
    });
}

pub(crate) fn any_log(most: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => Just("u"), 3 => Just("a"), 2 => Just("n"), 1 => Just("s"),
        2 => Just("a/r"), 1 => Just("a/q"), 2 => Just("a/r+x"), 1 => Just("a/q+y"),
        2 => Just("a+x"), 1 => Just("a+x+y"), 1 => Just("a+y"), 1 => Just("u+z"),
        2 => Just("t-x"), 2 => Just("t-y"), 1 => Just("u-x-y"), 1 => Just("t-z"),
        1 => Just("a/r-x"), 1 => Just("u-o"),
    ];
    prop::collection::vec(word, 0..most).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_window_begins_at_an_atom(log in any_log(28)) {
        checked(script(&log));
    }
}

#[test]
fn responses_that_are_not_an_assistants_begin_atoms_too() {
    checked(script("u a u+x u u-x u a"));
}

/// Neighbouring messages with calls and without a response id may be one group. The window begins with the first of
/// them.
#[test]
fn neighbouring_lines_that_call_are_kept_together() {
    for log in [
        "u a+x a+y t-x t-y u",
        "u a+x a+y t-y t-x a",
        "u a+x n a+y a+z t-x u",
        "a a+x a+y",
        "a/r+x a+y a+z t-y t-z u",
    ] {
        checked(script(log));
    }
    let calls: String = (0..300).map(|n| format!("a+c{n} ")).collect();
    checked(script(&format!("u {calls} t-c0 u")));
}

#[test]
fn a_group_may_be_longer_than_any_page() {
    for before in ["", "a", "a/q", "n"] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = InMemoryStore::new();
            let id = open(&store, "chat").await;
            let log = format!("u {before} a/r+x {} t-x u u", "u ".repeat(5_000));
            append(&store, id, script(&log)).await;
            let log = entries(&store, id).await;
            let start = starts(&atoms(&log)).into_iter().rev().nth(2).unwrap();
            let head = Seq(log.len() as u32);
            for window in [3, 20, 300] {
                let newest = newest_entries(&store, id, head, Tail::messages(window))
                    .await
                    .unwrap();
                assert_eq!(newest[0].seq, Seq(start));
            }
            for seq in [start + 1, start + 100, start + 4_000, start + 5_001] {
                let found = atom_start(&store, id, Seq::FIRST, Seq(seq)).await.unwrap();
                assert_eq!(found, Seq(start));
            }
        });
    }
}

/// The number of entries read does not depend on the length of the log before the window, even without any response.
#[tokio::test]
async fn reading_does_not_grow_with_the_log() {
    for kind in ["u ", "u a ", "u a/r#+x t-x a/r# ", "n "] {
        let mut costs = Vec::new();
        for size in [2_000, 20_000] {
            let store = SqliteOptions::new().in_memory().await.unwrap();
            let id = open(&store, "chat").await;
            let turns = size / kind.split_whitespace().count();
            let words: String = (0..turns)
                .map(|turn| kind.replace('#', &turn.to_string()))
                .collect();
            append(&store, id, script(&words)).await;
            let head = store
                .snapshot(id, &crate::world::view())
                .await
                .unwrap()
                .head;
            let before = store.statements();
            if kind != "n " {
                newest_entries(&store, id, head, Tail::messages(20))
                    .await
                    .unwrap();
            }
            let windows = store.statements() - before;
            atom_start(&store, id, Seq::FIRST, Seq(head.0 - 50))
                .await
                .unwrap();
            costs.push((windows, store.statements() - before));
        }
        assert_eq!(costs[0], costs[1], "{kind}");
        assert!(costs[0].1 <= 16, "{kind}: {costs:?}");
    }
}
