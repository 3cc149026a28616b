//! The session that holds agent loops.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::loops::LoopRecord;

/// Loops in a row of a chain, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopRun {
    /// Id of the oldest loop.
    pub first_loop_id: String,
    /// Id of the newest loop.
    pub last_loop_id: String,
    /// Number of loops.
    pub loops: usize,
    /// Number of their messages, notes included.
    pub messages: usize,
}

impl fmt::Display for LoopRun {
    /// Such as `loops s1.0 to s1.11: 12 loops, 340 messages`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first_loop_id,
            last_loop_id,
            loops,
            messages,
        } = self;
        match loops {
            1 => write!(f, "loop {first_loop_id}: {messages} messages"),
            _ => write!(
                f,
                "loops {first_loop_id} to {last_loop_id}: {loops} loops, {messages} messages"
            ),
        }
    }
}

/// What the chain up to a loop holds, that loop included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChainTotals {
    /// Place of the first loop.
    first: usize,
    loops: usize,
    messages: usize,
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
    /// Totals of the chain up to each loop; `None` where its parents go in a circle.
    totals: Vec<Option<ChainTotals>>,
    /// Ids of the parents that loops name.
    parents: HashSet<String>,
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
            totals: Vec::new(),
            parents: HashSet::new(),
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
        let place = match self.places.get(&id) {
            Some(place) => *place,
            None => self.loops.len(),
        };
        match self.loops.get_mut(place) {
            Some(old) => *old = record,
            None => {
                self.places.insert(id, place);
                self.loops.push(record);
                self.totals.push(None);
            }
        }
        self.count(place);
    }

    /// The loop of that id.
    pub fn get(&self, loop_id: &str) -> Option<&LoopRecord<M>> {
        self.places
            .get(loop_id)
            .and_then(|place| self.loops.get(*place))
    }

    /// Changes the loop of that id, which keeps its id, and returns what the change returns; `None` where
    /// there is no such loop.
    pub fn update<T>(
        &mut self,
        loop_id: &str,
        change: impl FnOnce(&mut LoopRecord<M>) -> T,
    ) -> Option<T> {
        let place = *self.places.get(loop_id)?;
        let record = self.loops.get_mut(place)?;
        let result = change(record);
        if record.loop_id != loop_id {
            record.loop_id = loop_id.to_owned();
        }
        self.count(place);
        Some(result)
    }

    /// Counts the chain up to a loop that was added or changed, and those that go through it.
    fn count(&mut self, place: usize) {
        let Some(record) = self.loops.get(place) else {
            return;
        };
        if let Some(parent) = &record.parent_loop_id
            && !self.parents.contains(parent)
        {
            self.parents.insert(parent.clone());
        }
        let has_children = self.parents.contains(&record.loop_id);
        let parent = self.parent_place(place);
        let totals = match parent {
            None => Some(ChainTotals {
                first: place,
                loops: 1,
                messages: record.messages.len(),
            }),
            Some(parent) => self
                .totals
                .get(parent)
                .copied()
                .flatten()
                .map(|above| ChainTotals {
                    first: above.first,
                    loops: above.loops + 1,
                    messages: above.messages + record.messages.len(),
                }),
        };
        if self.totals.get(place) == Some(&totals) && totals.is_some() {
            return;
        }
        // What children count hangs on this loop, and a circle goes through one.
        match has_children {
            true => self.count_all(),
            false => {
                if let Some(place) = self.totals.get_mut(place) {
                    *place = totals;
                }
            }
        }
    }

    /// Counts the chains of all loops, each loop once.
    fn count_all(&mut self) {
        self.totals = vec![None; self.loops.len()];
        let mut reached = vec![false; self.loops.len()];
        for start in 0..self.loops.len() {
            // Up to a loop that is counted or that was reached before, then down again.
            let mut open = Vec::new();
            let mut next = Some(start);
            while let Some(place) = next
                && let Some(reached) = reached.get_mut(place).filter(|reached| !**reached)
            {
                *reached = true;
                open.push(place);
                next = self.parent_place(place);
            }
            // Where parents go in a circle, the one above is not counted.
            let mut above = next.map(|place| self.totals.get(place).copied().flatten());
            while let Some(place) = open.pop() {
                let messages = self
                    .loops
                    .get(place)
                    .map_or(0, |record| record.messages.len());
                let totals = match above {
                    None => Some(ChainTotals {
                        first: place,
                        loops: 1,
                        messages,
                    }),
                    Some(above) => above.map(|above| ChainTotals {
                        first: above.first,
                        loops: above.loops + 1,
                        messages: above.messages + messages,
                    }),
                };
                if let Some(slot) = self.totals.get_mut(place) {
                    *slot = totals;
                }
                above = Some(totals);
            }
        }
    }

    /// Place of a loop's parent, where the session has it.
    fn parent_place(&self, place: usize) -> Option<usize> {
        let parent = self.loops.get(place)?.parent_loop_id.as_deref()?;
        self.places.get(parent).copied()
    }

    /// Counts the loops of a chain that come before its newest `newest` loops; `None` where there are
    /// none. It reads `newest` loops, however long the chain is, unless parents go in a circle.
    pub fn older_than(&self, loop_id: &str, newest: usize) -> Option<LoopRun> {
        let last = self.ancestors(loop_id).nth(newest)?;
        let totals = |id: &str| {
            let place = self.places.get(id)?;
            self.totals.get(*place).copied().flatten()
        };
        match totals(loop_id).and_then(|_| totals(&last.loop_id)) {
            Some(counted) => Some(LoopRun {
                first_loop_id: self.loops.get(counted.first)?.loop_id.clone(),
                last_loop_id: last.loop_id.clone(),
                loops: counted.loops,
                messages: counted.messages,
            }),
            None => {
                let mut older = self.ancestors(loop_id).skip(newest).peekable();
                let mut run = LoopRun {
                    first_loop_id: String::new(),
                    last_loop_id: older.peek()?.loop_id.clone(),
                    loops: 0,
                    messages: 0,
                };
                for record in older {
                    run.first_loop_id.clone_from(&record.loop_id);
                    run.loops += 1;
                    run.messages += record.messages.len();
                }
                Some(run)
            }
        }
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
        // A chain that is counted ends by itself; parents that go in a circle are watched for.
        let counted = next.and_then(|place| self.totals.get(place).copied().flatten());
        let mut seen = match counted {
            Some(_) => Vec::new(),
            None => vec![false; self.loops.len()],
        };
        let most = counted.map_or(self.loops.len(), |totals| totals.loops);
        let chain = std::iter::from_fn(move || {
            let current = next?;
            if counted.is_none() {
                let seen = seen.get_mut(current).filter(|seen| !**seen)?;
                *seen = true;
            }
            let record = self.loops.get(current)?;
            next = record.parent_loop_id.as_deref().and_then(place);
            Some(record)
        });
        chain.take(most)
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
    use proptest::prelude::*;

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
        session.update("a", |a| a.parent_loop_id = Some("a".to_owned()));
        assert_eq!(ids(session.chain("c")), ["a", "b", "c"]);
        session.update("a", |a| a.parent_loop_id = None);
        assert_eq!(ids(session.chain("b")), ["a", "b"]);
    }

    proptest! {
        /// In whatever order loops come and change, also in circles.
        #[test]
        fn older_loops_are_counted_as_a_reader_counts_them(
            steps in prop::collection::vec((0..12_usize, prop::option::of(0..12_usize), 0..5_usize), 1..40),
            newest in 0..6_usize,
        ) {
            let mut session = LoopSession::new("s");
            for (id, parent, messages) in steps {
                let id = id.to_string();
                match (session.get(&id).is_some(), parent) {
                    (true, _) => {
                        session.update(&id, |record: &mut LoopRecord<u8>| {
                            record.parent_loop_id = parent.map(|parent| parent.to_string());
                            record.messages = vec![0; messages];
                        });
                    }
                    (false, Some(parent)) => {
                        let record = LoopRecord::new(id, vec![0; messages]);
                        session.push(record.with_parent(parent.to_string()));
                    }
                    (false, None) => session.push(LoopRecord::new(id, vec![0; messages])),
                }
                for record in session.loops() {
                    // By the records alone, as they are.
                    let mut chain: Vec<&LoopRecord<u8>> = Vec::new();
                    let mut next = Some(record);
                    while let Some(one) = next.filter(|one| chain.iter().all(|old| old.loop_id != one.loop_id)) {
                        chain.push(one);
                        next = session.loops().iter().find(|other| Some(&other.loop_id) == one.parent_loop_id.as_ref());
                    }
                    let older = chain.get(newest..).unwrap_or_default();
                    let expected = older.last().map(|first| LoopRun {
                        first_loop_id: first.loop_id.clone(),
                        last_loop_id: older[0].loop_id.clone(),
                        loops: older.len(),
                        messages: older.iter().map(|record| record.messages.len()).sum(),
                    });
                    prop_assert_eq!(session.older_than(&record.loop_id, newest), expected);
                }
            }
        }
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
