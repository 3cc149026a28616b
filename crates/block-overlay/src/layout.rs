//! Where a loop's turns begin, and which of them are kept.

use serde::{Deserialize, Serialize};
use turn_map::{Atoms, MessageView, PartView, Role, TurnBoundary, TurnMap, atoms};

use crate::turn_range::TurnRange;

/// Rule that decides where the turns of a loop begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnRule {
    /// By the turn index that messages carry: neighbours with the same index are a turn, a message
    /// without one is a turn of its own. The default.
    #[default]
    Index,
    /// By answers of the model: a turn ends with an answer and the results of its tools, and begins
    /// with what the user said before it. For messages that carry no index.
    Responses,
}

/// The turns that a block keeps at the beginning and at the end of a loop, and those between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sections {
    /// Turns whose messages are shown as they are.
    pub first: Option<TurnRange>,
    /// Turns that are summarized.
    pub middle: Option<TurnRange>,
    /// Turns whose messages are shown with shortened tool output.
    pub recent: Option<TurnRange>,
}

/// The turns of a loop, and its tool calls with their results, which nothing splits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopLayout {
    turns: TurnMap,
    atoms: Atoms,
}

/// A message of which only the turn matters.
struct Numbered {
    turn: Option<u64>,
    is_note: bool,
}

impl MessageView for Numbered {
    fn role(&self) -> Role {
        Role::Assistant
    }

    fn parts(&self, _visit: &mut dyn FnMut(PartView<'_>)) {}

    fn turn(&self) -> Option<u64> {
        self.turn
    }

    fn is_note(&self) -> bool {
        self.is_note
    }
}

impl LoopLayout {
    /// Reads the messages of a loop.
    pub fn new<M: MessageView>(messages: &[M], rule: TurnRule) -> Self {
        let atoms = atoms(messages);
        let turns = match rule {
            TurnRule::Index => TurnMap::by_index(messages),
            TurnRule::Responses => by_responses(messages, &atoms),
        };
        Self { turns, atoms }
    }

    /// The turns, numbered from 0 by position.
    pub fn turns(&self) -> &TurnMap {
        &self.turns
    }

    /// The tool calls with their results, and the messages between.
    pub fn atoms(&self) -> &Atoms {
        &self.atoms
    }

    /// The messages of a range of turns, in the list that the layout was made of.
    pub fn slice<'m, M>(&self, messages: &'m [M], range: TurnRange) -> &'m [M] {
        self.turns.slice(messages, range.indices())
    }

    /// Divides the turns: at least `first` at the beginning and `recent` at the end are kept, and more
    /// where a tool call and its results would be divided otherwise. No turn is in two sections: where
    /// a loop has fewer turns than both together, those at the beginning are kept as they are. What
    /// further messages may still join, as a tool call whose results are to come, is in the last section.
    pub fn sections(&self, first: usize, recent: usize) -> Sections {
        let count = self.turns.count();
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

    /// Whether no tool group reaches over the beginning of a turn. True for the first turn and the end.
    pub(crate) fn is_cut(&self, turn: usize) -> bool {
        let position = self.turns.range(turn).start;
        turn == 0 || self.atoms.cut_before(position).position() == position
    }

    /// First turn that further messages may still join to others, as results of an open tool group do;
    /// the number of turns where there is none.
    fn unsettled_turn(&self) -> usize {
        let settled = self.atoms.settled_end().position();
        self.turns.turn_of(settled).unwrap_or(self.turns.count())
    }
}

/// Turns that end with an answer of the model and its results.
fn by_responses<M: MessageView>(messages: &[M], atoms: &Atoms) -> TurnMap {
    let mut map = TurnMap::new(TurnBoundary::Index);
    let mut turn = 0;
    for atom in atoms.iter() {
        let of_atom = messages.get(atom.range()).unwrap_or_default();
        for message in of_atom {
            map.push(&Numbered {
                turn: Some(turn),
                is_note: message.is_note(),
            });
        }
        let answers = |message: &M| message.role() == Role::Assistant && !message.is_note();
        turn += u64::from(of_atom.iter().any(answers));
    }
    map
}

#[cfg(test)]
mod tests {
    use memory_model::{Message, RawJson};

    use super::*;

    fn call(id: &str) -> Message {
        Message::tool_call(id, "read", RawJson::parse("{}").unwrap())
    }

    fn range(start: u32, end: u32) -> Option<TurnRange> {
        TurnRange::new(start, end)
    }

    fn singles(count: usize) -> Vec<Message> {
        (0..count).map(|n| Message::user(format!("m{n}"))).collect()
    }

    #[test]
    fn short_loops_have_no_turn_twice() {
        let layout = LoopLayout::new(&singles(10), TurnRule::Index);
        let sections = layout.sections(2, 10);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (range(0, 1), None, range(2, 9))
        );
        let all = LoopLayout::new(&singles(2), TurnRule::Index).sections(2, 10);
        assert_eq!(
            (all.first, all.middle, all.recent),
            (range(0, 1), None, None)
        );
        assert_eq!(
            LoopLayout::new(&singles(0), TurnRule::Index).sections(2, 10),
            Sections::default()
        );
    }

    #[test]
    fn no_first_turns_are_none() {
        let sections = LoopLayout::new(&singles(5), TurnRule::Index).sections(0, 2);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (None, range(0, 2), range(3, 4))
        );
        let none = LoopLayout::new(&singles(5), TurnRule::Index).sections(0, 0);
        assert_eq!((none.middle, none.recent), (range(0, 4), None));
    }

    #[test]
    fn sections_grow_to_whole_tool_groups() {
        // Messages without an index: a turn each, so groups reach over turns.
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
        let layout = LoopLayout::new(&messages, TurnRule::Index);
        let sections = layout.sections(2, 2);
        assert_eq!(
            (sections.first, sections.middle, sections.recent),
            (range(0, 2), range(3, 4), range(5, 7))
        );
        // A call that still waits is never summarized.
        let open = LoopLayout::new(&messages[..6], TurnRule::Index).sections(1, 0);
        assert_eq!((open.middle, open.recent), (range(1, 4), range(5, 5)));
    }

    #[test]
    fn a_turn_by_responses_begins_with_what_the_user_said() {
        let messages = [
            Message::user("a"),
            Message::user("b"),
            call("x"),
            Message::tool_result("x", "found"),
            Message::assistant("It is there."),
            Message::user("c"),
        ];
        let layout = LoopLayout::new(&messages, TurnRule::Responses);
        let ranges: Vec<_> = layout.turns().iter().collect();
        assert_eq!(ranges, [0..4, 4..5, 5..6]);
        assert_eq!(
            layout.slice(&messages, TurnRange::new(1, 2).unwrap()).len(),
            2
        );
    }
}
