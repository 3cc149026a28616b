use std::ops::Range;

/// Kind of an [`Atom`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AtomKind {
    /// A message without calls and results, or all lines of a response without calls.
    Plain,
    /// A tool group: the lines of a response with calls, their results, and all messages between.
    Group(GroupState),
    /// A message without calls that holds a late or orphaned result: see [`Atom::late`].
    Late,
    /// A note outside of any group.
    Note,
}

/// State of a tool group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupState {
    /// Every call has its result.
    Closed,
    /// The group closed with unanswered calls: see [`Atom::unanswered`]. It blocks no cut.
    Interrupted,
    /// Calls have no result yet, and results may still come. Such a group is the last one, unless the
    /// last ones are neighbouring lines that call without a response id.
    Open,
}

/// A call without a result in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnansweredCall {
    /// Position of the message that holds the call.
    pub message: usize,
    /// Id of the call.
    pub id: Box<str>,
}

/// A result outside its call's group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateResult {
    /// Position of the message that holds the result.
    pub message: usize,
    /// Id of the call that the result names.
    pub id: Box<str>,
    /// Position of the interrupted call that it answers; `None` for an orphan, when no call with that
    /// id lacks a result.
    pub call: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Details {
    pub(crate) unanswered: Vec<UnansweredCall>,
    pub(crate) late: Vec<LateResult>,
}

/// A run of messages that is kept, moved, trimmed or left out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atom {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) messages: usize,
    pub(crate) kind: AtomKind,
    /// `None` for most atoms.
    pub(crate) details: Option<Box<Details>>,
}

impl Atom {
    /// Positions of its messages, never empty.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Number of messages without notes; 0 for a single note.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Kind of the atom.
    pub fn kind(&self) -> AtomKind {
        self.kind
    }

    /// Calls without a result, in order.
    pub fn unanswered(&self) -> &[UnansweredCall] {
        self.details
            .as_ref()
            .map_or(&[], |details| &details.unanswered)
    }

    /// The late and orphaned results in its messages, in order. Most are in an atom of kind [`Late`](AtomKind::Late),
    /// but one may fall between another group's call and result.
    pub fn late(&self) -> &[LateResult] {
        self.details.as_ref().map_or(&[], |details| &details.late)
    }
}

/// A position between two atoms, before the first, or after the last.
///
/// Only [`Atoms`] creates one, so a cut never splits an atom. It is valid for the list that it was
/// created from and, up to [`Atoms::settled_end`], for every longer list.
///
/// ```compile_fail,E0423
/// let anywhere = turn_map::Cut(3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cut(usize);

impl Cut {
    /// Position of the first message after the cut.
    pub fn position(self) -> usize {
        self.0
    }

    /// Splits `messages`, which begin at position 0, at the cut. A list that ends before the cut is all in the first
    /// part.
    pub fn split<M>(self, messages: &[M]) -> (&[M], &[M]) {
        messages.split_at(self.0.min(messages.len()))
    }
}

/// The atoms of a list of messages: every message is in exactly one, in order.
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

    /// All atoms, in order.
    pub fn as_slice(&self) -> &[Atom] {
        &self.atoms
    }

    /// All atoms, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Atom> {
        self.atoms.iter()
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Whether the list has no messages.
    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Positions of all messages.
    pub fn range(&self) -> Range<usize> {
        self.first..self.end().position()
    }

    /// Atoms that no further message can change: all before the latest response, if that may still get lines or
    /// results.
    pub fn settled(&self) -> &[Atom] {
        self.atoms.get(..self.settled).unwrap_or_default()
    }

    /// Index of the atom that holds the message at `position`; `None` if there is no such message.
    /// O(log atoms).
    pub fn index_of(&self, position: usize) -> Option<usize> {
        if !self.range().contains(&position) {
            return None;
        }
        self.atoms
            .partition_point(|atom| atom.start <= position)
            .checked_sub(1)
    }

    /// The atom that holds the message at `position`; `None` if there is no such message.
    pub fn atom_of(&self, position: usize) -> Option<&Atom> {
        self.index_of(position)
            .and_then(|index| self.atoms.get(index))
    }

    /// The cut before the first atom.
    pub fn start(&self) -> Cut {
        Cut(self.first)
    }

    /// The cut after the last atom, open groups included.
    pub fn end(&self) -> Cut {
        Cut(self.atoms.last().map_or(self.first, |atom| atom.end))
    }

    /// The cut after the last settled atom.
    pub fn settled_end(&self) -> Cut {
        Cut(self.settled().last().map_or(self.first, |atom| atom.end))
    }

    /// The last cut at or before `position`. The atom that holds this position is after the cut.
    pub fn cut_before(&self, position: usize) -> Cut {
        match self.atom_of(position) {
            Some(atom) => Cut(atom.start),
            None if position < self.first => self.start(),
            None => self.end(),
        }
    }

    /// The first cut at or after `position`. The atom that holds this position is before the cut, unless it begins
    /// there.
    pub fn cut_after(&self, position: usize) -> Cut {
        match self.atom_of(position) {
            Some(atom) if atom.start == position => Cut(position),
            Some(atom) => Cut(atom.end),
            None if position < self.first => self.start(),
            None => self.end(),
        }
    }

    /// The atoms between two cuts.
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
