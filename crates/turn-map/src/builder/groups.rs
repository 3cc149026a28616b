//! Tool groups that can still grow, and the atoms that are made of them and of the messages between them.

use std::collections::VecDeque;

use crate::atoms::Details;
use crate::{Atom, AtomKind, Atoms, GroupState, LateResult, UnansweredCall};

/// Range of positions of one response and its tool results, or of several responses with overlapping ranges.
#[derive(Debug, Clone)]
pub(super) struct ToolGroup {
    start: usize,
    end: usize,
    /// Number of responses in the group that can still get messages or tool results.
    pub(super) holds: usize,
    pub(super) has_calls: bool,
    /// Whether the unanswered calls may still get results. Set when the list ends.
    pub(super) open: bool,
    pub(super) unanswered: Vec<UnansweredCall>,
}

/// A message that is not yet part of an atom.
#[derive(Debug, Clone)]
struct Entry {
    note: bool,
    late: Vec<LateResult>,
}

/// The groups and messages that are not yet part of an atom, and the settled atoms.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    /// Groups after the settled atoms: disjoint and in order.
    groups: VecDeque<ToolGroup>,
    /// The messages after the settled atoms.
    tail: VecDeque<Entry>,
    settled: Vec<Atom>,
    /// Position of the first message in `settled`.
    first: usize,
    /// Position of the first message in `tail`.
    emitted: usize,
    /// Position of the next message.
    next: usize,
}

impl Groups {
    pub(super) fn starting_at(position: usize) -> Self {
        Self {
            groups: VecDeque::new(),
            tail: VecDeque::new(),
            settled: Vec::new(),
            first: position,
            emitted: position,
            next: position,
        }
    }

    /// Returns the position of the next message.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Adds a message and returns its position.
    pub(super) fn push(&mut self, note: bool) -> usize {
        self.tail.push_back(Entry {
            note,
            late: Vec::new(),
        });
        self.next += 1;
        self.next - 1
    }

    /// Records a late result of the latest message.
    pub(super) fn late(&mut self, result: LateResult) {
        if let Some(entry) = self.tail.back_mut() {
            entry.late.push(result);
        }
    }

    /// Opens a group that begins with the message at `position` and is held open by one response.
    pub(super) fn open(&mut self, position: usize) {
        self.groups.push_back(ToolGroup {
            start: position,
            end: position + 1,
            holds: 1,
            has_calls: false,
            open: false,
            unanswered: Vec::new(),
        });
    }

    fn index_of(&self, position: usize) -> Option<usize> {
        self.groups
            .partition_point(|group| group.start <= position)
            .checked_sub(1)
    }

    /// Returns the group that contains the response beginning at `position`.
    pub(super) fn of(&mut self, position: usize) -> Option<&mut ToolGroup> {
        let index = self.index_of(position)?;
        self.groups.get_mut(index)
    }

    /// Extends the group of the response that begins at `start` to `position`, the latest message. Merges all later
    /// groups into it. Only a result can extend a group over another one, so the group has calls.
    pub(super) fn extend(&mut self, start: usize, position: usize) {
        let Some(index) = self.index_of(start) else {
            return;
        };
        let later = self.groups.split_off(index + 1);
        let Some(group) = self.groups.back_mut() else {
            return;
        };
        for later in later {
            group.holds += later.holds;
            group.unanswered.extend(later.unanswered);
        }
        group.end = position + 1;
    }

    /// Turns everything before the first group that can still grow into atoms.
    pub(super) fn settle(&mut self) {
        while let Some(group) = self.groups.front() {
            let (start, holds) = (group.start, group.holds);
            self.emit_singles(start);
            if holds > 0 {
                return;
            }
            if let Some(group) = self.groups.pop_front() {
                self.emit_group(group);
            }
        }
        self.emit_singles(self.next);
    }

    /// Removes and returns the settled atoms.
    pub(super) fn drain_settled(&mut self) -> std::vec::Drain<'_, Atom> {
        self.first = self.emitted;
        self.settled.drain(..)
    }

    /// Turns all remaining groups and messages into atoms, and returns them.
    pub(super) fn finish(mut self) -> Atoms {
        let settled = self.settled.len();
        while let Some(group) = self.groups.pop_front() {
            self.emit_singles(group.start);
            self.emit_group(group);
        }
        self.emit_singles(self.next);
        Atoms::new(self.first, self.settled, settled)
    }

    /// Turns each message before `end` into an atom.
    fn emit_singles(&mut self, end: usize) {
        while self.emitted < end {
            let Some(Entry { note, late }) = self.tail.pop_front() else {
                return;
            };
            let kind = match (note, late.is_empty()) {
                (true, _) => AtomKind::Note,
                (false, true) => AtomKind::Plain,
                (false, false) => AtomKind::Late,
            };
            let details = Details {
                unanswered: Vec::new(),
                late,
            };
            self.emit(self.emitted + 1, usize::from(!note), kind, details);
        }
    }

    fn emit_group(&mut self, group: ToolGroup) {
        let mut details = Details {
            unanswered: group.unanswered,
            late: Vec::new(),
        };
        details.unanswered.sort_by_key(|call| call.message);
        let mut messages = 0;
        let length = (group.end - group.start).min(self.tail.len());
        for entry in self.tail.drain(..length) {
            messages += usize::from(!entry.note);
            details.late.extend(entry.late);
        }
        let kind = match () {
            () if group.open => AtomKind::Group(GroupState::Open),
            () if !details.unanswered.is_empty() => AtomKind::Group(GroupState::Interrupted),
            () if group.has_calls => AtomKind::Group(GroupState::Closed),
            () if !details.late.is_empty() => AtomKind::Late,
            () => AtomKind::Plain,
        };
        self.emit(group.end, messages, kind, details);
    }

    fn emit(&mut self, end: usize, messages: usize, kind: AtomKind, details: Details) {
        let none = details.unanswered.is_empty() && details.late.is_empty();
        self.settled.push(Atom {
            start: self.emitted,
            end,
            messages,
            kind,
            details: (!none).then(|| Box::new(details)),
        });
        self.emitted = end;
    }
}
