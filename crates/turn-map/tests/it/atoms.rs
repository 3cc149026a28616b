//! Atoms of conversations that are written as words.

use turn_map::{Atom, AtomBuilder, AtomKind, GroupState, atoms};

use crate::parts::call;
use crate::script::{lines, shown};

fn partition(script: &str) -> String {
    shown(&atoms(lines(script)))
}

#[test]
fn plain_messages_are_alone() {
    assert_eq!(partition("s u a u n a"), "P0 P1 P2 P3 N4 P5");
}

#[test]
fn a_call_and_its_results_are_one_atom_in_any_role() {
    assert_eq!(partition("u a+x t-x a"), "P0 G1-2 P3");
    assert_eq!(partition("u a+x u-x a"), "P0 G1-2 P3");
    // Call and result in one message.
    assert_eq!(partition("u a+x-x a"), "P0 G1 P2");
}

#[test]
fn results_come_in_any_order_and_in_any_number_of_messages() {
    assert_eq!(partition("a+x+y+z t-z t-x-y u"), "G0-2 P3");
    assert_eq!(partition("a+x+y u-y u u-x u"), "G0-3 P4");
}

#[test]
fn messages_between_call_and_result_are_inside() {
    assert_eq!(partition("u a+x u s n t-x u"), "P0 G1-5 P6");
    // A message after the last result is outside of the group.
    assert_eq!(partition("a+x t-x s u"), "G0-1 P2 P3");
}

#[test]
fn the_lines_of_a_response_are_one_atom() {
    assert_eq!(partition("u a/r a/r a/s"), "P0 P1-2 | P3");
    // Call, result, call and result of one response.
    assert_eq!(partition("a/r a/r+x u-x a/r+y u-y u"), "G0-4 P5");
    assert_eq!(partition("a/r+x u u-x a/r+y u-y a/s u"), "G0-4 P5 P6");
    // A message without a response id is a separate response.
    assert_eq!(partition("a a u"), "P0 P1 P2");
}

#[test]
fn a_person_ends_a_response_that_has_its_results() {
    assert_eq!(partition("a/r u a/r u"), "P0 P1 P2 P3");
    assert_eq!(partition("a/r+x u-x u a/r+y u-y u"), "G0-1 P2 G3-4 P5");
    // A user message ends no response that waits for results. Notes and system messages do not count as user messages.
    assert_eq!(partition("a/r+x u a/r+y u-x u-y u"), "G0-4 P5");
    assert_eq!(partition("a/r+x u-x n s a/r u"), "G0-4 P5");
}

#[test]
fn a_call_without_result_is_interrupted_by_the_next_response() {
    assert_eq!(partition("u a+x u a u"), "P0 I1 P2 P3 P4");
    let found = atoms(lines("a+x+y+z t-y a"));
    let group = &found.as_slice()[0];
    assert_eq!(group.kind(), AtomKind::Group(GroupState::Interrupted));
    assert_eq!(group.range(), 0..2);
    let calls: Vec<_> = group
        .unanswered()
        .iter()
        .map(|c| (c.message, &*c.id))
        .collect();
    assert_eq!(calls, [(0, "x"), (0, "z")]);
}

#[test]
fn a_late_result_is_alone_and_points_to_its_call() {
    assert_eq!(partition("u a+x a t-x u"), "P0 I1 P2 L3 P4");
    let found = atoms(lines("u a+x a t-x t-x t-y"));
    let late: Vec<_> = found.iter().flat_map(|atom| atom.late()).collect();
    let late: Vec<_> = late.iter().map(|l| (l.message, &*l.id, l.call)).collect();
    // The second result for x and the result for y have no open call, so they are orphans.
    assert_eq!(late, [(3, "x", Some(1)), (4, "x", None), (5, "y", None)]);
}

#[test]
fn a_late_result_inside_of_a_group_stays_there() {
    assert_eq!(partition("a+x a a+y t-x t-y u"), "I0 P1 G2-4 P5");
    assert_eq!(partition("a+x a a+y t-x-y u"), "I0 P1 G2-3 P4");
    let found = atoms(lines("a+x a a+y t-x-y u"));
    assert_eq!(found.as_slice()[2].late()[0].call, Some(0));
    // A late result inside of a response.
    assert_eq!(partition("a+x a-x u"), "I0 L1 P2");
}

#[test]
fn neighbouring_lines_that_call_are_one_group_when_results_show_it() {
    assert_eq!(partition("a+x a+y t-x t-y u"), "G0-3 P4");
    assert_eq!(partition("a+x a+y t-y t-x u"), "G0-3 P4");
    assert_eq!(partition("u a+x a+y t-x-y a"), "P0 G1-3 P4");
    assert_eq!(partition("a+x a+y+z a+w t-w u t-z t-x a"), "I0-6 P7");
    // Notes do not separate neighbouring messages with calls.
    assert_eq!(partition("a+x n a+y t-x n t-y u"), "G0-5 P6");
    // Both calls have the same id.
    assert_eq!(partition("a+x a+x t-x t-x u"), "G0-3 P4");
    // More calls than are searched one by one.
    let calls: String = (0..20).map(|n| format!("a+{n} ")).collect();
    let results: String = (0..20).map(|n| format!("t-{n} ")).collect();
    assert_eq!(partition(&format!("{calls}{results}u")), "G0-39 P40");
    // Without a result that connects them, each message with calls is a separate response.
    assert_eq!(partition("a+x a+y t-y u a"), "I0 G1-2 P3 P4");
    assert_eq!(partition("a+w a+x a+y t-x a"), "I0 I1-3 P4");
    // Any other message between them separates the calls, and so does a response id.
    for between in ["u", "s", "a", "t-o"] {
        let found = partition(&format!("a+x {between} a+y t-x t-y u"));
        assert_eq!(found.split(' ').nth(2), Some("G2-4"), "{between}: {found}");
    }
    assert_eq!(partition("a/r+x a/s+y t-x t-y u"), "I0 G1-3 P4");
    assert_eq!(partition("a/r+x a+y t-x t-y u"), "I0 G1-3 P4");
    assert_eq!(partition("a+x a/r+y t-x t-y u"), "I0 G1-3 P4");
    // At the end of the list all of them are open.
    assert_eq!(partition("u a+x a+y"), "P0 | O1 O2");
    assert_eq!(partition("u a+x a+y t-x"), "P0 | O1-3");
    assert_eq!(partition("u a+x a+y t-y"), "P0 | O1 G2-3");
}

#[test]
fn each_late_result_finds_a_call_of_its_id() {
    let calls = |script: &str| -> Vec<Option<usize>> {
        let atoms = atoms(lines(script));
        let late = atoms.iter().flat_map(|atom| atom.late());
        late.map(|late| late.call).collect()
    };
    assert_eq!(calls("a+x a+x a t-x t-x"), [Some(1), Some(0)]);
    assert_eq!(
        calls("a+x u a+x u a+x+x a t-x-x t-x t-x t-x"),
        [Some(4), Some(4), Some(2), Some(0), None]
    );
    assert_eq!(calls("a+x a t-x a+x a t-x t-x"), [Some(0), Some(3), None]);
}

#[test]
fn a_reused_id_belongs_to_the_nearest_call_that_waits() {
    assert_eq!(partition("a+x t-x a+x t-x u"), "G0-1 G2-3 P4");
    // The first call x has no result. The third result is its late result.
    let found = atoms(lines("a+x u a+x t-x u t-x"));
    assert_eq!(shown(&found), "I0 P1 G2-3 P4 L5");
    assert_eq!(found.as_slice()[4].late()[0].call, Some(0));
    // One response calls twice with the same id, so it needs two results.
    assert_eq!(partition("a+x+x t-x u t-x u"), "G0-3 P4");
    assert_eq!(partition("a+x+x t-x a"), "I0-1 P2");
    // A result before its call is an orphan.
    assert_eq!(partition("t-x a+x u"), "L0 | O1 P2");
}

#[test]
fn only_the_head_is_open_and_unsettled() {
    assert_eq!(partition("u a+x"), "P0 | O1");
    assert_eq!(partition("u a+x+y t-x u"), "P0 | O1-2 P3");
    assert_eq!(partition("a+x u a+y"), "I0 P1 | O2");
    // The call has its result, but the response may get more messages. A response without an id cannot.
    assert_eq!(partition("u a/r+x t-x"), "P0 | G1-2");
    assert_eq!(partition("u a+x t-x"), "P0 G1-2");
    assert_eq!(partition("u a/r"), "P0 | P1");
    assert_eq!(partition("u a"), "P0 P1");
    let found = atoms(lines("a+x+y t-y"));
    let waiting: Vec<_> = found.as_slice()[0]
        .unanswered()
        .iter()
        .map(|c| &*c.id)
        .collect();
    assert_eq!(waiting, ["x"]);
    assert_eq!(found.settled_end(), found.start());
}

#[test]
fn calls_of_others_and_notes_do_no_harm() {
    // A message with calls is a response, whatever its role.
    assert_eq!(partition("u+x t-x a"), "G0-1 P2");
    let mut messages = lines("a+x n-x t-x u");
    messages[1].parts.push(call("y"));
    assert_eq!(shown(&atoms(&messages)), "G0-2 P3");
    let found = atoms(&messages);
    assert_eq!(found.as_slice()[0].messages(), 2);
}

#[test]
fn draining_takes_only_settled_atoms() {
    let messages = lines("u a+x t-x u a+y u");
    let mut builder = AtomBuilder::starting_at(100);
    let mut drained = Vec::new();
    for message in &messages {
        builder.push(message);
        drained.extend(builder.drain_settled());
    }
    assert_eq!(builder.position(), 106);
    let ranges: Vec<_> = drained.iter().map(Atom::range).collect();
    assert_eq!(ranges, [100..101, 101..103, 103..104]);
    let rest = builder.finish();
    assert_eq!(shown(&rest), "| O104 P105");
    assert_eq!(rest.range(), 104..106);
    assert_eq!(rest.atom_of(105).map(Atom::range), Some(105..106));
    assert_eq!(rest.atom_of(103), None);
}

#[test]
fn lookups_find_atoms_and_cuts_keep_them_whole() {
    let atoms = atoms(lines("u a+x t-x u"));
    assert_eq!(atoms.range(), 0..4);
    let found: Vec<_> = (0..5).map(|n| atoms.index_of(n)).collect();
    assert_eq!(found, [Some(0), Some(1), Some(1), Some(2), None]);
    let before: Vec<_> = (0..6).map(|n| atoms.cut_before(n).position()).collect();
    assert_eq!(before, [0, 1, 1, 3, 4, 4]);
    let after: Vec<_> = (0..6).map(|n| atoms.cut_after(n).position()).collect();
    assert_eq!(after, [0, 1, 3, 3, 4, 4]);
    let (from, to) = (atoms.cut_before(2), atoms.end());
    assert_eq!(atoms.between(from, to).len(), 2);
    assert_eq!(atoms.between(to, from), []);
    assert_eq!(
        atoms.cut_before(2).split(&[1, 2, 3, 4]),
        (&[1][..], &[2, 3, 4][..])
    );
}

#[test]
fn an_empty_list_has_no_atoms() {
    let none = atoms(lines(""));
    assert!(none.is_empty());
    assert_eq!((none.start(), none.settled_end()), (none.end(), none.end()));
    assert_eq!(none.index_of(0), None);
    assert_eq!(none.cut_before(3), none.start());
}
