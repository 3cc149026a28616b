//! How a list is mended, and what is reported.

use crate::Edit;

/// What becomes of a call without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Unanswered {
    /// It gets a result that says so.
    Stub,
    /// It goes. A message that is empty then gets the placeholder.
    Strip,
    /// Its whole message goes, text and answered calls included; their results are orphans then.
    DropMessage,
}

/// What becomes of a result that came after its call's group had closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Late {
    /// It becomes text where it stands, and its call is unanswered.
    Text,
    /// It moves behind its call.
    Move,
    /// It goes, and its call is unanswered.
    Drop,
}

/// What becomes of a result that answers no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Orphans {
    /// It becomes text where it stands.
    Text,
    /// It goes.
    Drop,
}

/// What becomes of a result that is not late, but does not stand right behind its call's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Misplaced {
    /// It moves there.
    Move,
    /// It goes, and its call is unanswered.
    Drop,
}

/// What becomes of a call whose id is empty or was used by a call before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum BadIds {
    /// It and its result get an id that no call before it has: the old one and a number.
    Rename,
    /// It goes, and its result is an orphan.
    Strip,
}

/// How [`sanitise`](crate::sanitise) mends a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct SanitisePolicy {
    /// Calls without a result.
    pub unanswered: Unanswered,
    /// Results that came too late.
    pub late: Late,
    /// Results without a call.
    pub orphans: Orphans,
    /// Results that stand in the wrong place.
    pub misplaced: Misplaced,
    /// Ids that are empty or used twice.
    pub ids: BadIds,
    /// What a result says that no tool gave.
    pub stub: String,
    /// What a message says whose calls were all stripped; empty drops the message.
    pub placeholder: String,
}

impl Default for SanitisePolicy {
    /// Loses nothing: calls without a result get a stub, late results and orphans become text,
    /// results move to their calls, and bad ids are renamed.
    fn default() -> Self {
        Self {
            unanswered: Unanswered::Stub,
            late: Late::Text,
            orphans: Orphans::Text,
            misplaced: Misplaced::Move,
            ids: BadIds::Rename,
            stub: "[no result]".to_owned(),
            placeholder: "[tool calls compacted]".to_owned(),
        }
    }
}

impl SanitisePolicy {
    /// The rule of anna's later generation: whatever does not pair in its place goes, and a message
    /// that is empty then says `[tool calls compacted]`.
    pub fn anna() -> Self {
        Self {
            unanswered: Unanswered::Strip,
            late: Late::Drop,
            orphans: Orphans::Drop,
            misplaced: Misplaced::Drop,
            ids: BadIds::Strip,
            ..Self::default()
        }
    }

    /// koda's rule: results whose call is missing go, and so do whole messages with a call whose
    /// result is missing. (koda leaves the results of such a message's other calls; here they go
    /// too. It does not look at places; here results move to their calls.)
    pub fn koda() -> Self {
        Self {
            unanswered: Unanswered::DropMessage,
            late: Late::Move,
            orphans: Orphans::Drop,
            ..Self::default()
        }
    }

    /// Sets what becomes of calls without a result.
    #[must_use]
    pub fn with_unanswered(mut self, unanswered: Unanswered) -> Self {
        self.unanswered = unanswered;
        self
    }

    /// Sets what becomes of late results.
    #[must_use]
    pub fn with_late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// Sets what becomes of results without a call.
    #[must_use]
    pub fn with_orphans(mut self, orphans: Orphans) -> Self {
        self.orphans = orphans;
        self
    }

    /// Sets what becomes of results in the wrong place.
    #[must_use]
    pub fn with_misplaced(mut self, misplaced: Misplaced) -> Self {
        self.misplaced = misplaced;
        self
    }

    /// Sets what becomes of calls with a bad id.
    #[must_use]
    pub fn with_ids(mut self, ids: BadIds) -> Self {
        self.ids = ids;
        self
    }

    /// Sets what a stub says.
    #[must_use]
    pub fn with_stub(mut self, stub: impl Into<String>) -> Self {
        self.stub = stub.into();
        self
    }

    /// Sets what stands for stripped calls.
    #[must_use]
    pub fn with_placeholder(mut self, placeholder: impl Into<String>) -> Self {
        self.placeholder = placeholder.into();
        self
    }
}

/// A call or result that no provider would take, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The position of its message.
    pub message: usize,
    /// The part in it.
    pub part: usize,
    /// Its id, as it was.
    pub id: String,
    /// What was wrong.
    pub problem: Problem,
    /// What was done.
    pub remedy: Remedy,
}

/// What is wrong with a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// A result that answers no call, or one that is not sent.
    Orphan,
    /// A result that came after its call's group had closed.
    Late,
    /// A result that does not stand right behind its call's message, in a user's or tool's message.
    Misplaced,
    /// A call without a result.
    Unanswered,
    /// A call by somebody who is no assistant.
    CallByAnother,
    /// A call without an id.
    EmptyId,
    /// A call with the id of an earlier one.
    DuplicateId,
    /// A sound call, in a message that had to go.
    InDroppedMessage,
}

/// What was done about a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The part went, or its whole message.
    Dropped,
    /// A result became text.
    MadeText,
    /// A result moved behind its call's message.
    Moved,
    /// A call got a result that says that there is none.
    Stubbed,
    /// A call and its result got another id.
    Renamed,
}

/// A plan that makes a list fit for a provider, and a report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sanitised {
    /// What to change; nothing when the list is clean.
    pub edits: Vec<Edit>,
    /// What was found, in order.
    pub findings: Vec<Finding>,
}

impl Sanitised {
    /// Whether there was nothing to mend.
    pub fn is_clean(&self) -> bool {
        self.edits.is_empty()
    }
}
