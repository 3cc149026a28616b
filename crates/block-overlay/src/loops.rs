//! Agent loops and the session that holds them.

use std::collections::{BTreeMap, HashMap};

use memory_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::block::CompactionBlock;
use crate::error::{Error, Result};

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

/// The loops of one session. A loop is found by its id in constant time.
///
/// Each loop names its parent, so that branches, reruns and parallel groups are a tree; the loops from
/// the first to a given one are its [chain](Self::chain).
#[derive(Debug, Clone, PartialEq)]
pub struct LoopSession<M> {
    session_id: String,
    loops: Vec<LoopRecord<M>>,
    places: HashMap<String, usize>,
    extra: BTreeMap<String, Value>,
}

/// The stored form of a session.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "M: Serialize", deserialize = "M: Deserialize<'de>"))]
struct Stored<'a, M: Clone> {
    session_id: std::borrow::Cow<'a, str>,
    #[serde(default = "no_loops")]
    loops: std::borrow::Cow<'a, [LoopRecord<M>]>,
    #[serde(flatten)]
    extra: std::borrow::Cow<'a, BTreeMap<String, Value>>,
}

fn no_loops<'a, M: Clone>() -> std::borrow::Cow<'a, [LoopRecord<M>]> {
    std::borrow::Cow::Owned(Vec::new())
}

impl<M: Clone + Serialize> Serialize for LoopSession<M> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        Stored {
            session_id: self.session_id.as_str().into(),
            loops: std::borrow::Cow::Borrowed(&self.loops),
            extra: std::borrow::Cow::Borrowed(&self.extra),
        }
        .serialize(to)
    }
}

impl<'de, M: Clone + Deserialize<'de>> Deserialize<'de> for LoopSession<M> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let stored = Stored::<M>::deserialize(from)?;
        let mut session = Self::new(stored.session_id);
        session.extra = stored.extra.into_owned();
        for record in stored.loops.into_owned() {
            session.push(record);
        }
        Ok(session)
    }
}

impl<M> LoopSession<M> {
    /// Creates a session without loops.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            loops: Vec::new(),
            places: HashMap::new(),
            extra: BTreeMap::new(),
        }
    }

    /// Id of the session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// All loops, in the order in which they were added.
    pub fn loops(&self) -> &[LoopRecord<M>] {
        &self.loops
    }

    /// Adds a loop, and its id to the children of its parent. A loop of the same id is replaced.
    pub fn push(&mut self, record: LoopRecord<M>) {
        let id = record.loop_id.clone();
        let parent = record
            .parent_loop_id
            .as_deref()
            .and_then(|id| self.places.get(id));
        if let Some(parent) = parent.and_then(|place| self.loops.get_mut(*place))
            && parent.loop_id != id
            && !parent.children_loop_ids.contains(&id)
        {
            parent.children_loop_ids.push(id.clone());
        }
        match self
            .places
            .get(&id)
            .and_then(|place| self.loops.get_mut(*place))
        {
            Some(place) => *place = record,
            None => {
                self.places.insert(id, self.loops.len());
                self.loops.push(record);
            }
        }
    }

    /// The loop of that id.
    pub fn get(&self, loop_id: &str) -> Option<&LoopRecord<M>> {
        self.places
            .get(loop_id)
            .and_then(|place| self.loops.get(*place))
    }

    /// The loop of that id, to be changed. Its id stays what it is.
    pub fn get_mut(&mut self, loop_id: &str) -> Option<&mut LoopRecord<M>> {
        self.places
            .get(loop_id)
            .and_then(|place| self.loops.get_mut(*place))
    }

    /// The loop of that id.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownLoop`](crate::ErrorKind::UnknownLoop).
    pub(crate) fn require(&self, loop_id: &str) -> Result<&LoopRecord<M>> {
        self.get(loop_id)
            .ok_or_else(|| Error::unknown_loop(&self.session_id, loop_id))
    }

    /// The loops from the given one back to the first, newest first, by their parents. A parent that the
    /// session does not have ends the chain, and so does a loop that was there before.
    pub fn ancestors<'s>(&'s self, loop_id: &str) -> impl Iterator<Item = &'s LoopRecord<M>> + 's {
        let place = |id: &str| self.places.get(id).copied();
        let mut next = place(loop_id);
        let mut seen = vec![false; self.loops.len()];
        std::iter::from_fn(move || {
            let current = next?;
            let seen = seen.get_mut(current).filter(|seen| !**seen)?;
            *seen = true;
            let record = self.loops.get(current)?;
            next = record.parent_loop_id.as_deref().and_then(place);
            Some(record)
        })
    }

    /// The loops from the first to the given one, oldest first: see [`ancestors`](Self::ancestors).
    pub fn chain(&self, loop_id: &str) -> Vec<&LoopRecord<M>> {
        let mut chain: Vec<_> = self.ancestors(loop_id).collect();
        chain.reverse();
        chain
    }

    /// The loops without a parent in this session.
    pub fn roots(&self) -> impl Iterator<Item = &LoopRecord<M>> {
        self.loops.iter().filter(|record| {
            let parent = record.parent_loop_id.as_deref();
            parent.is_none_or(|parent| !self.places.contains_key(parent))
        })
    }

    /// The loops that follow a loop.
    pub fn children(&self, loop_id: &str) -> impl Iterator<Item = &LoopRecord<M>> {
        let ids = self
            .get(loop_id)
            .map(|record| record.children_loop_ids.as_slice());
        ids.unwrap_or_default().iter().filter_map(|id| self.get(id))
    }

    /// The loops that ran beside a loop, the loop itself included.
    pub fn parallel_group(&self, loop_id: &str) -> impl Iterator<Item = &LoopRecord<M>> {
        let group = self
            .get(loop_id)
            .and_then(|record| record.parallel_group.as_ref());
        let ids = group.map(|group| group.all_loop_ids.as_slice());
        ids.unwrap_or_default().iter().filter_map(|id| self.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(loops: &[(&str, Option<&str>)]) -> LoopSession<u8> {
        let mut session = LoopSession::new("s");
        for (id, parent) in loops {
            let record = LoopRecord::new(*id, Vec::new());
            session.push(match parent {
                Some(parent) => record.with_parent(*parent),
                None => record,
            });
        }
        session
    }

    fn ids(chain: Vec<&LoopRecord<u8>>) -> Vec<&str> {
        chain
            .into_iter()
            .map(|record| record.loop_id.as_str())
            .collect()
    }

    #[test]
    fn a_chain_follows_parents_past_branches() {
        let session = session(&[
            ("a", None),
            ("b", Some("a")),
            ("c", Some("b")),
            ("x", Some("a")),
            ("y", Some("lost")),
        ]);
        assert_eq!(ids(session.chain("c")), ["a", "b", "c"]);
        assert_eq!(ids(session.chain("x")), ["a", "x"]);
        assert_eq!(ids(session.chain("y")), ["y"]);
        assert_eq!(ids(session.chain("nobody")), [""; 0]);
        assert_eq!(ids(session.children("a").collect()), ["b", "x"]);
        assert_eq!(ids(session.roots().collect()), ["a", "y"]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let mut session = session(&[("a", Some("c")), ("b", Some("a")), ("c", Some("b"))]);
        assert_eq!(ids(session.chain("c")), ["a", "b", "c"]);
        session.get_mut("a").unwrap().parent_loop_id = Some("a".to_owned());
        assert_eq!(ids(session.chain("c")), ["a", "b", "c"]);
    }

    #[test]
    fn the_same_id_replaces() {
        let mut session = session(&[("a", None), ("b", Some("a"))]);
        session.push(LoopRecord::new("b", vec![1]).with_parent("a"));
        assert_eq!(session.loops().len(), 2);
        assert_eq!(session.get("b").unwrap().messages, [1]);
        assert_eq!(session.get("a").unwrap().children_loop_ids, ["b"]);
    }
}
