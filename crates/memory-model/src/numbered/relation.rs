//! The relation of two sentences with numbers.

use std::ops::Range;

/// Relation of a later sentence to an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberedRelation {
    /// The numbers of the sentences do not decide it.
    Undecided,
    /// The sentences are about different things, or the later one leaves the earlier one as it is.
    Unchanged,
    /// The later sentence changes the earlier one.
    Changed {
        /// Text range of the new value in the later sentence. `None` if the new value is not a number.
        value: Option<Range<usize>>,
        /// Whether a part of the earlier sentence is not changed.
        in_part: bool,
    },
    /// The later sentence has a new value but hardly says of what. It changes the earlier sentence if it directly
    /// follows it: `Make that 30.`
    ChangedIfNext {
        /// Text range of the new value in the later sentence.
        value: Range<usize>,
    },
}

impl NumberedRelation {
    /// Among the relations of the parts of two sentences, the highest rank decides.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::Undecided => 0,
            Self::Unchanged => 1,
            Self::ChangedIfNext { .. } => 2,
            Self::Changed { .. } => 3,
        }
    }
}
