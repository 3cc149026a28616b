use std::ops::Range;

use token_estimate::MessageView;

use crate::message::user_speaks;

/// Rule that determines the beginnings of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TurnBoundary {
    /// Neighbouring messages with the same turn index form a turn; a message without an index is a separate turn.
    Index,
    /// A turn begins at each user message without tool results. Messages before the first one form a
    /// turn too.
    Role,
}

/// The turns of a message list, numbered from 0 by position. The numbers do not depend on the turn indices of the
/// messages.
///
/// Notes belong to the turn around them. Building is O(1) a message, a lookup O(log turns).
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

    /// Creates an empty map for messages from this position on.
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

    /// Positions of the messages of several turns. Turns that do not exist have no messages.
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

    /// The messages of several turns in the list that the map was built from. Turns that do not exist have no messages.
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
