use std::ops::Range;

use token_estimate::MessageView;

use crate::message::user_speaks;

/// Rule that determines where a turn of a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TurnBoundary {
    /// Neighbouring messages with the same turn index ([`MessageView::turn`]) form a turn. A message without an index
    /// is a separate turn.
    Index,
    /// A turn begins at each user message without tool results. Messages before the first one of these form a turn too.
    Role,
}

/// The turns of a list of messages, numbered from 0 in the order of the list. The numbers do not depend on the turn
/// indices of the messages.
///
/// Notes belong to the turn before them. A note at the beginning of the list begins the first turn. Adding a message
/// takes O(1) time, a lookup O(log turns).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMap {
    grouping: TurnBoundary,
    starts: Vec<usize>,
    first: usize,
    /// Position of the next message.
    next: usize,
    /// Turn index of the messages of the last turn.
    current: Option<u64>,
    /// Whether turn 0 does not begin with a user message. Used only for turns by role.
    headless: bool,
}

impl TurnMap {
    /// Creates an empty map. The first message that is [added](Self::push) has position 0.
    pub const fn new(grouping: TurnBoundary) -> Self {
        Self::starting_at(0, grouping)
    }

    /// Creates an empty map. The first message that is [added](Self::push) has the position `position`.
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

    /// Creates the map of `messages`, with the turns of [`TurnBoundary::Index`].
    pub fn by_index<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Self {
        Self::of(TurnBoundary::Index, messages)
    }

    /// Creates the map of `messages`, with the turns of [`TurnBoundary::Role`].
    pub fn by_role<M: MessageView>(messages: impl IntoIterator<Item = M>) -> Self {
        Self::of(TurnBoundary::Role, messages)
    }

    fn of<M: MessageView>(grouping: TurnBoundary, messages: impl IntoIterator<Item = M>) -> Self {
        let mut map = Self::new(grouping);
        messages.into_iter().for_each(|message| map.push(&message));
        map
    }

    /// Adds the next message of the list.
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

    /// Returns the number of turns.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of messages, including notes (log entries that are never sent to a model).
    pub fn messages(&self) -> usize {
        self.next - self.first
    }

    /// Returns the positions of the messages of a turn; empty if there is no such turn.
    pub fn range(&self, turn: usize) -> Range<usize> {
        self.span(turn..turn.saturating_add(1))
    }

    /// Returns the positions of the messages of several turns. Turns that do not exist have no messages.
    pub fn span(&self, turns: Range<usize>) -> Range<usize> {
        let start = |turn: usize| self.starts.get(turn).copied().unwrap_or(self.next);
        let first = start(turns.start);
        first..start(turns.end).max(first)
    }

    /// Returns the number of the turn that contains the message at `position`; `None` if there is no such message.
    pub fn turn_of(&self, position: usize) -> Option<usize> {
        if position >= self.next {
            return None;
        }
        self.starts
            .partition_point(|start| *start <= position)
            .checked_sub(1)
    }

    /// Returns the position of the first message of the turn that contains the message at `position`. Returns `None` if
    /// there is no message at `position`. Also returns `None` for turns by [`Role`](TurnBoundary::Role) if the turn
    /// does not begin with a user message.
    pub fn start_of(&self, position: usize) -> Option<usize> {
        let turn = self.turn_of(position)?;
        if self.headless && turn == 0 {
            return None;
        }
        self.starts.get(turn).copied()
    }

    /// Returns the messages of several turns. `messages` must be the list that the map was built from. Turns that do
    /// not exist have no messages.
    pub fn slice<'m, M>(&self, messages: &'m [M], turns: Range<usize>) -> &'m [M] {
        let span = self.span(turns);
        messages
            .get(span.start - self.first..span.end - self.first)
            .unwrap_or_default()
    }

    /// Returns the positions of each turn's messages, in the order of the turns.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        (0..self.count()).map(|turn| self.range(turn))
    }
}
