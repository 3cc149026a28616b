//! The policy of a repair, and its report.

use crate::Edit;

/// Action of [`sanitize`](crate::sanitize) for a call without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum UnansweredCallPolicy {
    /// Inserts a result with the text of [`SanitizePolicy::stub`].
    Stub,
    /// Drops the call. A message that is empty afterwards gets the placeholder.
    Strip,
    /// Drops the whole message, text and answered calls included; the results of those calls become orphans.
    DropMessage,
}

/// Action of [`sanitize`](crate::sanitize) for a result that came after its call's group had closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LateResultPolicy {
    /// Turns the result into text in its place and treats its call as unanswered.
    Text,
    /// Moves the result behind its call.
    Move,
    /// Drops the result and treats its call as unanswered.
    Drop,
}

/// Action of [`sanitize`](crate::sanitize) for a result that answers no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OrphanPolicy {
    /// Turns the result into text in its place.
    Text,
    /// Drops the result.
    Drop,
}

/// Action of [`sanitize`](crate::sanitize) for a result that is not late but does not directly follow its call's
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum MisplacedResultPolicy {
    /// Moves the result directly behind its call's message.
    Move,
    /// Drops the result and treats its call as unanswered.
    Drop,
}

/// Action of [`sanitize`](crate::sanitize) for a call whose id is empty or was used by an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CallIdPolicy {
    /// Gives the call and its result an id that no earlier call has: the old id and a number.
    Rename,
    /// Drops the call and treats its result as an orphan.
    Strip,
}

/// How [`sanitize`](crate::sanitize) repairs a list of messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct SanitizePolicy {
    /// Action for calls without a result.
    pub unanswered: UnansweredCallPolicy,
    /// Action for results that came after their call's group had closed.
    pub late: LateResultPolicy,
    /// Action for results without a call.
    pub orphans: OrphanPolicy,
    /// Action for results that do not directly follow their call's message.
    pub misplaced: MisplacedResultPolicy,
    /// Action for calls whose id is empty or was used before.
    pub ids: CallIdPolicy,
    /// Text of an inserted result.
    pub stub: String,
    /// Text of a message whose calls were all dropped; with an empty placeholder the message is dropped.
    pub placeholder: String,
}

impl Default for SanitizePolicy {
    /// Loses nothing: calls without a result get a stub, late results and orphans become text,
    /// results move to their calls, and bad ids are renamed.
    fn default() -> Self {
        Self {
            unanswered: UnansweredCallPolicy::Stub,
            late: LateResultPolicy::Text,
            orphans: OrphanPolicy::Text,
            misplaced: MisplacedResultPolicy::Move,
            ids: CallIdPolicy::Rename,
            stub: "[no result]".to_owned(),
            placeholder: "[tool calls compacted]".to_owned(),
        }
    }
}

impl SanitizePolicy {
    /// Returns the preset anna: drops calls and results that do not pair in their place. A message that
    /// is empty afterwards says `[tool calls compacted]`.
    pub fn anna() -> Self {
        Self {
            unanswered: UnansweredCallPolicy::Strip,
            late: LateResultPolicy::Drop,
            orphans: OrphanPolicy::Drop,
            misplaced: MisplacedResultPolicy::Drop,
            ids: CallIdPolicy::Strip,
            ..Self::default()
        }
    }

    /// Returns the preset koda: drops results without a call, and whole messages with a call without a
    /// result, with the results of their other calls. Misplaced results move to their calls.
    pub fn koda() -> Self {
        Self {
            unanswered: UnansweredCallPolicy::DropMessage,
            late: LateResultPolicy::Move,
            orphans: OrphanPolicy::Drop,
            ..Self::default()
        }
    }

    /// Sets what to do with calls without a result.
    #[must_use]
    pub fn with_unanswered(mut self, unanswered: UnansweredCallPolicy) -> Self {
        self.unanswered = unanswered;
        self
    }

    /// Sets what to do with late results.
    #[must_use]
    pub fn with_late(mut self, late: LateResultPolicy) -> Self {
        self.late = late;
        self
    }

    /// Sets what to do with results without a call.
    #[must_use]
    pub fn with_orphans(mut self, orphans: OrphanPolicy) -> Self {
        self.orphans = orphans;
        self
    }

    /// Sets what to do with results in the wrong place.
    #[must_use]
    pub fn with_misplaced(mut self, misplaced: MisplacedResultPolicy) -> Self {
        self.misplaced = misplaced;
        self
    }

    /// Sets what to do with calls whose id is empty or was used before.
    #[must_use]
    pub fn with_ids(mut self, ids: CallIdPolicy) -> Self {
        self.ids = ids;
        self
    }

    /// Sets the text of an inserted result.
    #[must_use]
    pub fn with_stub(mut self, stub: impl Into<String>) -> Self {
        self.stub = stub.into();
        self
    }

    /// Sets the text of a message whose calls were all dropped.
    #[must_use]
    pub fn with_placeholder(mut self, placeholder: impl Into<String>) -> Self {
        self.placeholder = placeholder.into();
        self
    }
}

/// A call or result that a provider would refuse, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Position of the message.
    pub message: usize,
    /// Index of the part in the message.
    pub part: usize,
    /// Id of the call or result before the repair.
    pub id: String,
    /// Problem of the call or result.
    pub problem: Problem,
    /// Remedy that was applied.
    pub remedy: Remedy,
}

/// Problem of a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// A result that answers no call, or a call that is not sent.
    Orphan,
    /// A result that came after its call's group had closed.
    Late,
    /// A result that does not directly follow its call's message in a message of the user or a tool.
    Misplaced,
    /// A call without a result.
    Unanswered,
    /// A message that is not the assistant's contains a tool call.
    CallByAnother,
    /// A call without an id.
    EmptyId,
    /// A call with the id of an earlier call.
    DuplicateId,
    /// A valid call in a message that was dropped.
    InDroppedMessage,
}

/// Remedy of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// The part or its whole message was dropped.
    Dropped,
    /// The result became text.
    MadeText,
    /// The result moved behind its call's message.
    Moved,
    /// A result was inserted for the call.
    Stubbed,
    /// The call and its result got another id.
    Renamed,
}

/// Edits that repair a list for a provider, and a report of what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use]
pub struct Sanitized {
    /// Edits to apply; empty when the list is valid.
    pub edits: Vec<Edit>,
    /// Problems found, in order.
    pub findings: Vec<Finding>,
}

impl Sanitized {
    /// Whether the list needs no edits.
    pub fn is_clean(&self) -> bool {
        self.edits.is_empty()
    }
}
