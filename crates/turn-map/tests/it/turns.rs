//! Turns of conversations that are written as words.

use std::ops::Range;

use turn_map::{TurnBoundary, TurnMap};

use crate::parts::Msg;
use crate::script::lines;

fn ranges(map: &TurnMap) -> Vec<Range<usize>> {
    map.iter().collect()
}

fn indexed(turns: &[Option<u64>]) -> Vec<Msg> {
    turns
        .iter()
        .map(|turn| Msg {
            turn: *turn,
            ..lines("u").remove(0)
        })
        .collect()
}

#[test]
fn neighbours_with_the_same_index_are_one_turn() {
    let map = TurnMap::by_index(indexed(&[Some(7), Some(7), Some(7), Some(3), Some(3)]));
    assert_eq!(ranges(&map), [0..3, 3..5]);
    assert_eq!(map.count(), 2);
}

#[test]
fn messages_without_an_index_are_alone() {
    let map = TurnMap::by_index(indexed(&[None, None, None]));
    assert_eq!(ranges(&map), [0..1, 1..2, 2..3]);
    // A message without an index ends a turn: the same index on both sides makes two turns.
    let map = TurnMap::by_index(indexed(&[Some(1), None, Some(1), Some(1)]));
    assert_eq!(ranges(&map), [0..1, 1..2, 2..4]);
}

#[test]
fn by_role_a_turn_starts_where_a_user_speaks() {
    let map = TurnMap::by_role(lines("s u a+x u-x a u u a"));
    assert_eq!(ranges(&map), [0..1, 1..5, 5..6, 6..8]);
}

#[test]
fn notes_stay_in_the_turn_around_them() {
    assert_eq!(ranges(&TurnMap::by_role(lines("u n a n u"))), [0..4, 4..5]);
    let mut messages = indexed(&[Some(1), None, Some(1)]);
    messages[1].note = true;
    assert_eq!(TurnMap::by_index(&messages).range(0), 0..3);
}

#[test]
fn missing_turns_are_empty() {
    let messages = indexed(&[Some(1), Some(2), Some(2)]);
    let map = TurnMap::by_index(&messages);
    assert_eq!(map.slice(&messages, 0..1).len(), 1);
    assert_eq!(map.slice(&messages, 0..2).len(), 3);
    assert_eq!(map.slice(&messages, 1..9).len(), 2);
    assert_eq!(map.slice(&messages, 5..9).len(), 0);
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "a caller may well compute one"
    )]
    let backwards = 2..1;
    assert_eq!(map.slice(&messages, backwards).len(), 0);
    assert_eq!(map.range(usize::MAX), 3..3);
    assert_eq!(map.turn_of(3), None);
    // A list that is not the map's list returns no messages instead of a panic.
    assert_eq!(map.slice(&messages[..1], 0..2).len(), 0);
    let mut later = TurnMap::starting_at(10, TurnBoundary::Index);
    messages.iter().for_each(|message| later.push(message));
    assert_eq!(
        (ranges(&later), later.messages()),
        (vec![10..11, 11..13], 3)
    );
    assert_eq!(
        (later.turn_of(9), later.turn_of(12), later.turn_of(13)),
        (None, Some(1), None)
    );
    assert_eq!(later.slice(&messages, 1..2).len(), 2);
    let none = TurnMap::new(TurnBoundary::Role);
    assert_eq!(
        (none.count(), none.messages(), none.turn_of(0)),
        (0, 0, None)
    );
    assert_eq!(none.range(0), 0..0);
}
