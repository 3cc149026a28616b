//! The turns of a loop (a run of the agent), and their division into the sections of a block (its compacted form).

use std::ops::Range;

use turn_map::{Atoms, MessageView, Role, atoms};

use crate::block::TurnRange;

/// Division of the turns of a run of the agent into the three sections of its block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sections {
    /// Turns at the beginning, with their original messages.
    pub(crate) first: Option<TurnRange>,
    /// Turns in the middle, which are summarized.
    pub(crate) middle: Option<TurnRange>,
    /// Turns at the end, with shortened tool output.
    pub(crate) recent: Option<TurnRange>,
}

/// The turns of a list of messages by index, and its groups of tool calls and results, which are never split.
///
/// ```
/// use block_overlay::{TurnMap, TurnRange};
/// use memory_model::Message;
///
/// let messages = [
///     Message::user("Where is the log?").with_turn("run", 0),
///     Message::assistant("In /var/log.").with_turn("run", 0),
///     Message::user("A message without a turn."),
///     Message::user("Rotate it.").with_turn("run", 1),
/// ];
/// let turns = TurnMap::from_messages(&messages);
/// assert_eq!(turns.turn_count(), 3);
/// assert_eq!(turns.turn_msg_range(0), Some(0..2));
/// assert_eq!(turns.turn_msg_range(3), None);
/// // A range of turns is inclusive.
/// let last = TurnRange { start_turn: 1, end_turn: 2 };
/// assert_eq!(turns.messages_for_range(last, &messages), &messages[2..]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMap {
    starts: Vec<usize>,
    messages: usize,
    atoms: Atoms,
}

impl TurnMap {
    /// Groups messages by their turn index. A message without an index is a separate turn.
    pub fn from_messages<M: MessageView>(messages: &[M]) -> Self {
        let turns = turn_map::TurnMap::by_index(messages);
        Self {
            starts: turns.iter().map(|turn| turn.start).collect(),
            messages: messages.len(),
            atoms: atoms(messages),
        }
    }

    /// Groups messages by the answers of the model. A turn begins with the user's messages before an answer, and ends
    /// with the answer and the results of its tool calls.
    fn by_answers<M: MessageView>(messages: &[M]) -> Self {
        let atoms = atoms(messages);
        let mut starts = Vec::new();
        let mut answered = true;
        for atom in atoms.iter() {
            let of_atom = messages.get(atom.range()).unwrap_or_default();
            let mut said = of_atom.iter().filter(|message| !message.is_note());
            if answered && (starts.is_empty() || said.clone().next().is_some()) {
                starts.push(atom.range().start);
                answered = false;
            }
            answered |= said.any(|message| message.role() == Role::Assistant);
        }
        Self {
            starts,
            messages: messages.len(),
            atoms,
        }
    }

    /// Groups the messages of a loop (a run of the agent) into turns. Uses the turn index of the messages if the first
    /// message has one. Otherwise each answer of the model ends a turn. Blocks use this rule, because messages that are
    /// added later never change earlier turns.
    pub fn of_loop<M: MessageView>(messages: &[M]) -> Self {
        let first = messages.iter().find(|message| !message.is_note());
        match first.and_then(MessageView::turn) {
            Some(_) => Self::from_messages(messages),
            None => Self::by_answers(messages),
        }
    }

    /// Returns the number of turns.
    pub fn turn_count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the index range of the messages of a turn. `None` if there is no turn with this index.
    pub fn turn_msg_range(&self, turn_index: usize) -> Option<Range<usize>> {
        (turn_index < self.turn_count()).then(|| self.span(turn_index..turn_index + 1))
    }

    /// Returns the messages of a range of turns. `messages` must be the list from which the map was made. Turns that do
    /// not exist are skipped.
    pub fn messages_for_range<'m, M>(&self, range: TurnRange, messages: &'m [M]) -> &'m [M] {
        messages.get(self.span(range.indices())).unwrap_or_default()
    }

    /// Returns the index range of the messages of several turns.
    pub(crate) fn span(&self, turns: Range<usize>) -> Range<usize> {
        let start = |turn: usize| self.starts.get(turn).copied().unwrap_or(self.messages);
        let first = start(turns.start);
        first..start(turns.end).max(first)
    }

    /// Divides the turns into sections. Keeps at least `first` turns at the beginning and `recent` turns at the end,
    /// and more if a tool call would otherwise be separated from its results. No turn is in two sections: if the loop
    /// has fewer turns than `first + recent`, the last section has only the turns after the first section. Turns after
    /// the first section that later messages may still join, such as a call without a result, are in the last section.
    pub(crate) fn sections(&self, first: usize, recent: usize) -> Sections {
        let count = self.turn_count();
        let mut head = first.min(count);
        while head > 0 && !self.is_cut(head) {
            head += 1;
        }
        let mut tail = count.saturating_sub(recent).min(self.unsettled_turn());
        while !self.is_cut(tail) {
            tail -= 1;
        }
        let tail = tail.max(head);
        Sections {
            first: TurnRange::from_indices(0..head),
            middle: TurnRange::from_indices(head..tail),
            recent: TurnRange::from_indices(tail..count),
        }
    }

    /// Returns whether a run of the agent can be divided before `turn` without separating a tool call from its result.
    /// True for the first turn and for the end.
    pub(crate) fn is_cut(&self, turn: usize) -> bool {
        let position = self.span(turn..turn).start;
        turn == 0 || self.atoms.cut_before(position).position() == position
    }

    /// Divides the turns into the smallest groups that do not split a tool group.
    pub(crate) fn groups(&self, turns: Range<usize>) -> Vec<Range<usize>> {
        let mut groups = Vec::new();
        let mut start = turns.start;
        for end in turns.start + 1..=turns.end {
            if end == turns.end || self.is_cut(end) {
                groups.push(start..end);
                start = end;
            }
        }
        groups
    }

    /// Returns the turn of the message at `position`; `None` for a message before the first turn.
    pub(crate) fn turn_of(&self, position: usize) -> Option<usize> {
        self.starts
            .partition_point(|start| *start <= position)
            .checked_sub(1)
    }

    /// Returns the first turn that later messages may still join with others, because a tool group is open. Returns the
    /// number of turns if there is none.
    fn unsettled_turn(&self) -> usize {
        let settled = self.atoms.settled_end().position();
        match settled < self.messages {
            true => self.turn_of(settled).unwrap_or(0),
            false => self.turn_count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{Message, RawJson};

    use super::*;

    fn call(id: &str) -> Message {
        Message::tool_call(id, "read", RawJson::parse("{}").unwrap())
    }

    fn range(start: usize, end: usize) -> Option<TurnRange> {
        TurnRange::from_indices(start..end + 1)
    }

    fn singles(count: usize) -> TurnMap {
        let messages: Vec<Message> = (0..count).map(|n| Message::user(format!("m{n}"))).collect();
        TurnMap::from_messages(&messages)
    }

    #[test]
    fn ranges_are_inclusive() {
        assert_eq!(range(2, 14).unwrap().indices(), 2..15);
        assert_eq!(range(2, 14).unwrap().to_string(), "turns 2-14");
        assert_eq!(TurnRange::from_indices(4..4), None);
        assert_eq!(range(4, 4).unwrap().to_string(), "turn 4");
    }

    #[test]
    fn short_loops_have_no_turn_twice() {
        let sections = singles(10).sections(2, 10);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (range(0, 1), None, range(2, 9))
        );
        let all = singles(2).sections(2, 10);
        assert_eq!(
            (all.first, all.middle, all.recent),
            (range(0, 1), None, None)
        );
        assert_eq!(singles(0).sections(2, 10), Sections::default());
    }

    #[test]
    fn no_first_turns_are_none() {
        let sections = singles(5).sections(0, 2);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (None, range(0, 2), range(3, 4))
        );
        let none = singles(5).sections(0, 0);
        assert_eq!((none.middle, none.recent), (range(0, 4), None));
    }

    #[test]
    fn sections_grow_to_whole_tool_groups() {
        // Each message without an index is a turn, so a tool group extends over several turns.
        let result = |id| Message::tool_result(id, "found");
        let messages = [
            Message::user("a"),
            call("x"),
            result("x"),
            Message::user("b"),
            Message::user("c"),
            call("y"),
            result("y"),
            Message::user("d"),
        ];
        let sections = TurnMap::from_messages(&messages).sections(2, 2);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (range(0, 2), range(3, 4), range(5, 7))
        );
        // A call that still waits for its result is never summarized.
        let open = TurnMap::from_messages(&messages[..6]).sections(1, 0);
        assert_eq!((open.middle, open.recent), (range(1, 4), range(5, 5)));
    }

    #[test]
    fn a_turn_by_answers_begins_with_what_the_user_said() {
        let messages = [
            Message::user("a"),
            Message::user("b"),
            call("x"),
            Message::tool_result("x", "found"),
            Message::assistant("It is there."),
            Message::user("c"),
        ];
        let turns = TurnMap::of_loop(&messages);
        let ranges = [0, 1, 2, 3].map(|turn| turns.turn_msg_range(turn));
        assert_eq!(ranges, [Some(0..4), Some(4..5), Some(5..6), None]);
        let last = turns.messages_for_range(range(1, 2).unwrap(), &messages);
        assert_eq!(last, &messages[4..]);
    }
}
