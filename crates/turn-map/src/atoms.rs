use std::ops::Range;

/// Kind of an [`Atom`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AtomKind {
    /// A message without calls and results, or all messages of a model response without calls.
    Plain,
    /// A tool group: the messages of a model response with calls, the results of the calls, and all messages in
    /// between.
    Group(GroupState),
    /// A message without calls that contains a late result, which came after its tool group had ended, or an orphaned
    /// result, which has no call. See [`Atom::late`].
    Late,
    /// A note outside of any tool group. A note is a log entry that is never sent to a model.
    Note,
}

/// State of a tool group, a response with tool calls and its results: whether each call has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupState {
    /// Every call of the group has a result.
    Closed,
    /// The group ended although some calls have no result: see [`Atom::unanswered`]. Results that come later are not
    /// part of the group. The list can be divided after the group.
    Interrupted,
    /// Some calls of the group have no result yet, and their results may still follow. Usually only the last group is
    /// open. If the format gives no response ids, several neighbouring messages with calls may be open at the end of
    /// the list.
    Open,
}

/// A tool call that has no result in its tool group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnansweredCall {
    /// Position of the message that contains the call.
    pub message: usize,
    /// Id of the call, as in the message.
    pub id: Box<str>,
}

/// A tool result outside of the tool group of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateResult {
    /// Position of the message that contains the tool result.
    pub message: usize,
    /// Id of the call that the result names.
    pub id: Box<str>,
    /// Position of the message with the unanswered call that the result answers. `None` for an orphaned result: no call
    /// with this id lacks a result.
    pub call: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Details {
    pub(crate) unanswered: Vec<UnansweredCall>,
    pub(crate) late: Vec<LateResult>,
}

/// A run of messages that must stay together, such as a tool call and its result. An atom is kept, moved, shortened or
/// left out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atom {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) messages: usize,
    pub(crate) kind: AtomKind,
    /// Unanswered calls and late results; `None` for an atom without either.
    pub(crate) details: Option<Box<Details>>,
}

impl Atom {
    /// Returns the positions of the atom's messages; never empty.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the number of messages in the atom. Notes, which are never sent to a model, do not count. Returns 0 for
    /// an atom that is a single note.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the kind of the atom.
    pub fn kind(&self) -> AtomKind {
        self.kind
    }

    /// Returns the calls in the atom that have no result, in order.
    pub fn unanswered(&self) -> &[UnansweredCall] {
        self.details
            .as_ref()
            .map_or(&[], |details| &details.unanswered)
    }

    /// Returns the late and orphaned results in the atom's messages, in order. A late result came after the tool group
    /// of its call had ended. An orphaned result has no call. Most of them are in an atom of kind
    /// [`Late`](AtomKind::Late). A few are between a call and a result of another tool group.
    pub fn late(&self) -> &[LateResult] {
        self.details.as_ref().map_or(&[], |details| &details.late)
    }
}

/// A position at which a list of messages can be divided without splitting an atom: before, between or after the atoms.
///
/// Only [`Atoms`] creates cuts. A cut is valid for the list that its atoms were made from. A cut up to
/// [`Atoms::settled_end`] is also valid after messages were appended to the list.
///
/// ```compile_fail,E0423
/// let anywhere = turn_map::Cut(3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cut(usize);

impl Cut {
    /// Returns the position of the first message after the cut, or the end of the list.
    pub fn position(self) -> usize {
        self.0
    }

    /// Splits `messages` at the cut. The first message of the slice must have position 0. If the list ends before the
    /// cut, all messages are in the first part.
    pub fn split<M>(self, messages: &[M]) -> (&[M], &[M]) {
        messages.split_at(self.0.min(messages.len()))
    }
}

/// All [`Atom`]s of a list of messages, in order. Every message is in exactly one atom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atoms {
    first: usize,
    atoms: Vec<Atom>,
    settled: usize,
}

impl Atoms {
    pub(crate) fn new(first: usize, atoms: Vec<Atom>, settled: usize) -> Self {
        Self {
            first,
            atoms,
            settled,
        }
    }

    /// Returns all atoms, in order.
    pub fn as_slice(&self) -> &[Atom] {
        &self.atoms
    }

    /// Returns an iterator over all atoms, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Atom> {
        self.atoms.iter()
    }

    /// Returns the number of atoms.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Returns whether there are no atoms, because the list has no messages.
    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Returns the range from the position of the first message to the end of the list.
    pub fn range(&self) -> Range<usize> {
        self.first..self.end().position()
    }

    /// Returns the settled atoms, which appended messages cannot change. Only open tool groups at the end, the latest
    /// model response and the atoms after them can be unsettled, while messages or tool results may still follow.
    pub fn settled(&self) -> &[Atom] {
        self.atoms.get(..self.settled).unwrap_or_default()
    }

    /// Returns the index of the atom that contains the message at `position`; `None` if there is no such message. Takes
    /// O(log atoms) time.
    pub fn index_of(&self, position: usize) -> Option<usize> {
        if !self.range().contains(&position) {
            return None;
        }
        self.atoms
            .partition_point(|atom| atom.start <= position)
            .checked_sub(1)
    }

    /// Returns the atom that contains the message at `position`; `None` if there is no such message.
    pub fn atom_of(&self, position: usize) -> Option<&Atom> {
        self.index_of(position)
            .and_then(|index| self.atoms.get(index))
    }

    /// Returns the cut before the first atom.
    pub fn start(&self) -> Cut {
        Cut(self.first)
    }

    /// Returns the cut after the last atom, even if this atom is a tool group that still waits for tool results.
    pub fn end(&self) -> Cut {
        Cut(self.atoms.last().map_or(self.first, |atom| atom.end))
    }

    /// Returns the cut after the last settled atom. Appended messages cannot change settled atoms.
    pub fn settled_end(&self) -> Cut {
        Cut(self.settled().last().map_or(self.first, |atom| atom.end))
    }

    /// Returns the last cut at or before `position`. If `position` is inside an atom, this atom is after the cut.
    pub fn cut_before(&self, position: usize) -> Cut {
        match self.atom_of(position) {
            Some(atom) => Cut(atom.start),
            None if position < self.first => self.start(),
            None => self.end(),
        }
    }

    /// Returns the first cut at or after `position`. If `position` is inside an atom, this atom is before the cut.
    pub fn cut_after(&self, position: usize) -> Cut {
        match self.atom_of(position) {
            Some(atom) if atom.start == position => Cut(position),
            Some(atom) => Cut(atom.end),
            None if position < self.first => self.start(),
            None => self.end(),
        }
    }

    /// Returns the atoms between two cuts.
    pub fn between(&self, from: Cut, to: Cut) -> &[Atom] {
        let index = |cut: Cut| {
            self.atoms
                .partition_point(|atom| atom.start < cut.position())
        };
        self.atoms.get(index(from)..index(to)).unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a Atoms {
    type Item = &'a Atom;
    type IntoIter = std::slice::Iter<'a, Atom>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
