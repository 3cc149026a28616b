//! Agent loops.

use std::collections::BTreeMap;

use memory_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::block::CompactionBlock;

/// How a loop relates to its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ContinuationKind {
    /// The first loop of a session, or of a sub-agent. The default.
    #[default]
    Initial,
    /// It continues its parent.
    Default,
    /// It runs its parent again, as after an error.
    Rerun,
    /// It explores a branch.
    Branch {
        /// What the host records about the branch.
        #[serde(flatten)]
        details: BTreeMap<String, Value>,
    },
}

/// State of a loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LoopStatus {
    /// Announced, but not begun.
    Pending,
    /// Under way.
    Running,
    /// Ended by itself. The default.
    #[default]
    Completed,
    /// Refused by a filter of its input: see [`LoopRecord::rejection`].
    Rejected,
    /// Ended from outside.
    Aborted,
}

/// The loops that ran side by side on the same input, of which one was chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ParallelGroup {
    /// Ids of all loops of the group.
    #[serde(default)]
    pub all_loop_ids: Vec<String>,
    /// Id of the chosen loop.
    #[serde(default)]
    pub selected_loop_id: String,
    /// Whether this loop is the chosen one.
    #[serde(default)]
    pub is_selected: bool,
    /// Other fields, kept as they came.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Loop and turn of a message, or of a [`TurnRecord`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopTurnId {
    /// Id of the loop.
    #[serde(alias = "loopId")]
    pub loop_id: String,
    /// Index of the turn in the loop, from 0.
    #[serde(alias = "turnIndex")]
    pub turn_index: u32,
}

/// What a host records about one turn: one answer of the model and the tools that it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The turn.
    #[serde(default, alias = "turnId")]
    pub turn_id: LoopTurnId,
    /// Time at which it began.
    #[serde(default, with = "crate::time::optional")]
    pub started_at: Option<Timestamp>,
    /// Time at which it ended.
    #[serde(default, with = "crate::time::optional")]
    pub ended_at: Option<Timestamp>,
    /// Other fields, kept as they came.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// One run of an agent loop: its messages, which are never changed, and the block beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "M: Serialize", deserialize = "M: Deserialize<'de>"))]
#[non_exhaustive]
pub struct LoopRecord<M> {
    /// Id of the loop.
    pub loop_id: String,
    /// Id of its session.
    #[serde(default)]
    pub session_id: String,
    /// Id of the agent that ran it.
    #[serde(default)]
    pub agent_id: String,
    /// Id of the loop before it; `None` for a first loop.
    #[serde(default)]
    pub parent_loop_id: Option<String>,
    /// How it relates to its parent.
    #[serde(default, deserialize_with = "or_default")]
    pub continuation_kind: ContinuationKind,
    /// Time at which it began.
    #[serde(default, with = "crate::time::optional")]
    pub started_at: Option<Timestamp>,
    /// Time at which it ended; `None` while it runs.
    #[serde(default, with = "crate::time::optional")]
    pub ended_at: Option<Timestamp>,
    /// State.
    #[serde(default)]
    pub status: LoopStatus,
    /// Why a filter refused its input.
    #[serde(default)]
    pub rejection: Option<String>,
    /// Its messages, in order.
    #[serde(default = "Vec::new")]
    pub messages: Vec<M>,
    /// Its turns, where the host records them.
    #[serde(default)]
    pub turns: Vec<TurnRecord>,
    /// Ids of the loops of the same session that follow it.
    #[serde(default)]
    pub children_loop_ids: Vec<String>,
    /// The group that it ran in.
    #[serde(default)]
    pub parallel_group: Option<ParallelGroup>,
    /// What a context shows in its place; `None` for its messages.
    #[serde(
        default,
        alias = "compactionBlock",
        skip_serializing_if = "Option::is_none"
    )]
    pub compaction_block: Option<CompactionBlock<M>>,
    /// Other fields, such as its configuration, usage and events, kept as they came.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Reads null as the default.
fn or_default<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<ContinuationKind, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl<M> LoopRecord<M> {
    /// Creates a completed first loop of these messages.
    pub fn new(loop_id: impl Into<String>, messages: Vec<M>) -> Self {
        Self {
            loop_id: loop_id.into(),
            session_id: String::new(),
            agent_id: String::new(),
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            started_at: None,
            ended_at: None,
            status: LoopStatus::Completed,
            rejection: None,
            messages,
            turns: Vec::new(),
            children_loop_ids: Vec::new(),
            parallel_group: None,
            compaction_block: None,
            extra: BTreeMap::new(),
        }
    }

    /// Sets the parent, and [`ContinuationKind::Default`] unless another kind was set.
    #[must_use]
    pub fn with_parent(mut self, parent: impl Into<String>) -> Self {
        self.parent_loop_id = Some(parent.into());
        if self.continuation_kind == ContinuationKind::Initial {
            self.continuation_kind = ContinuationKind::Default;
        }
        self
    }

    /// Sets how it relates to its parent.
    #[must_use]
    pub fn with_continuation(mut self, kind: ContinuationKind) -> Self {
        self.continuation_kind = kind;
        self
    }

    /// Sets the state.
    #[must_use]
    pub fn with_status(mut self, status: LoopStatus) -> Self {
        self.status = status;
        self
    }

    /// Sets why a filter refused its input, and [`LoopStatus::Rejected`].
    #[must_use]
    pub fn with_rejection(mut self, reason: impl Into<String>) -> Self {
        self.rejection = Some(reason.into());
        self.status = LoopStatus::Rejected;
        self
    }

    /// Sets the group that it ran in.
    #[must_use]
    pub fn with_parallel_group(mut self, group: ParallelGroup) -> Self {
        self.parallel_group = Some(group);
        self
    }
}
