use std::ops::Range;

use token_estimate::MessageView;

use crate::message::user_speaks;

/// Rule that decides where turns begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TurnBoundary {
    /// Neighbouring messages with the same turn index form a turn; a message without an index is a turn
    /// of its own.
    Index,
    /// A turn begins at each user message without tool results. Messages before the first one form a
    /// turn too.
    Role,
}

/// The turns of a message list, numbered from 0 by position, whatever indices the messages carry.
///
/// Notes belong to the turn that they stand in. Building is O(1) a message, a lookup O(log turns).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMap {
    grouping: TurnBoundary,
    starts: Vec<usize>,
    first: usize,
    /// Position of the next message.
    next: usize,
    /// Turn index of the messages of the last turn.
    current: Option<u64>,
    /// Whether turn 0 consists of the messages before the first turn by role.
    headless: bool,
}

impl TurnMap {
    /// Creates an empty map. The first [pushed](Self::push) message has position 0.
    pub const fn new(grouping: TurnBoundary) -> Self {
        Self::starting_at(0, grouping)
    }

    /// Creates an empty map whose first message has this position.
    pub const fn starting_at(position: usize, grouping: TurnBoundary) -> Self {
        Self {
            grouping,
            starts: Vec::new(),
            first: position,
            next: position,
            current: None,
            headless: false,
        }
    }

    /// Creates the map of `messages` by [`TurnBoundary::Index`].
    pub fn by_index<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Self {
        Self::of(TurnBoundary::Index, messages)
    }

    /// Creates the map of `messages` by [`TurnBoundary::Role`].
    pub fn by_role<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Self {
        Self::of(TurnBoundary::Role, messages)
    }

    fn of<M: MessageView>(grouping: TurnBoundary, messages: impl IntoIterator<Item = M>) -> Self {
        let mut map = Self::new(grouping);
        messages.into_iter().for_each(|message| map.push(&message));
        map
    }

    /// Adds the next message.
    pub fn push(&mut self, message: &impl MessageView) {
        let starts = if self.starts.is_empty() {
            self.current = message.turn();
            self.headless = self.grouping == TurnBoundary::Role && !user_speaks(message);
            true
        } else if message.is_note() {
            false
        } else {
            match self.grouping {
                TurnBoundary::Role => user_speaks(message),
                TurnBoundary::Index => {
                    let before = std::mem::replace(&mut self.current, message.turn());
                    before.is_none() || before != self.current
                }
            }
        };
        if starts {
            self.starts.push(self.next);
        }
        self.next += 1;
    }

    /// Number of turns.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Number of messages, notes included.
    pub fn messages(&self) -> usize {
        self.next - self.first
    }

    /// Positions of the messages of a turn; empty if there is no such turn.
    pub fn range(&self, turn: usize) -> Range<usize> {
        self.span(turn..turn.saturating_add(1))
    }

    /// Positions of the messages of several turns. Turns that do not exist add nothing.
    pub fn span(&self, turns: Range<usize>) -> Range<usize> {
        let start = |turn: usize| self.starts.get(turn).copied().unwrap_or(self.next);
        let first = start(turns.start);
        first..start(turns.end).max(first)
    }

    /// Turn of the message at `position`; `None` if there is no such message.
    pub fn turn_of(&self, position: usize) -> Option<usize> {
        if position >= self.next {
            return None;
        }
        self.starts
            .partition_point(|start| *start <= position)
            .checked_sub(1)
    }

    /// Position at which the turn of the message at `position` begins; `None` if there is no such
    /// message, or if the turn by role begins with no user message.
    pub fn start_of(&self, position: usize) -> Option<usize> {
        let turn = self.turn_of(position)?;
        if self.headless && turn == 0 {
            return None;
        }
        self.starts.get(turn).copied()
    }

    /// The messages of several turns in the list that the map was built from. Turns that do not exist
    /// add nothing.
    pub fn slice<'m, M>(&self, messages: &'m [M], turns: Range<usize>) -> &'m [M] {
        let span = self.span(turns);
        messages
            .get(span.start - self.first..span.end - self.first)
            .unwrap_or_default()
    }

    /// The positions of each turn's messages, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        (0..self.count()).map(|turn| self.range(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Line, lines};

    fn ranges(map: &TurnMap) -> Vec<Range<usize>> {
        map.iter().collect()
    }

    fn indexed(turns: &[Option<u64>]) -> Vec<Line> {
        turns
            .iter()
            .map(|turn| Line {
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
        // They also break a run: the same index on both sides is two turns.
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
    fn what_does_not_exist_is_empty() {
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
        // A list that is not the map's own gives nothing rather than a panic.
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
}
