//! A conversation and its forks in one source.

use std::collections::HashMap;

use memory_model::SessionKey;
use serde_json::value::RawValue;

use crate::json_lines::Line;
use crate::raw::string;
use crate::session::{SessionBuilder, short_hash};
use crate::{Error, Origin, Sink};

/// The root conversation and its forks in file order.
#[derive(Debug)]
pub(crate) struct Branches {
    /// Key of the session, or `None` before the first line.
    key: Option<String>,
    /// Whether the source names the session.
    named: bool,
    /// Session whose file the source was copied from.
    copied_from: Option<SessionKey>,
    branches: Vec<Branch>,
    /// Index of the branch that was written to last.
    current: usize,
    /// Branch and external id of each entry, by the entry's id. A record without an entry has the external id of the
    /// entry before it.
    entries: HashMap<String, (usize, Option<String>)>,
    /// Parent of the fork that the next entry begins, and the last entry that both share.
    back: Option<(usize, Option<String>)>,
}

#[derive(Debug)]
struct Branch {
    log: SessionBuilder,
    /// Suffix of the session's key, or `None` for the root.
    name: Option<String>,
    parent: usize,
    after: Option<String>,
    /// Id of the last entry.
    tip: Option<String>,
}

impl Default for Branches {
    fn default() -> Self {
        let root = Branch {
            log: SessionBuilder::new(Origin::Root),
            name: None,
            parent: 0,
            after: None,
            tip: None,
        };
        Self {
            key: None,
            named: false,
            copied_from: None,
            branches: vec![root],
            current: 0,
            entries: HashMap::new(),
            back: None,
        }
    }
}

impl Branches {
    /// Sets the session's key from the first line. If the line names no session, the key is `prefix` and the line's
    /// hash. Returns whether this is the first line.
    pub(crate) fn name(
        &mut self,
        line: &Line<'_>,
        named: impl FnOnce() -> Option<String>,
        prefix: &str,
    ) -> bool {
        let is_first = self.key.is_none();
        if is_first {
            let named = named();
            self.named = named.is_some();
            self.key = named.or_else(|| Some(format!("{prefix}-{}", short_hash(line.text))));
        }
        is_first
    }

    /// Sets the session whose file the source was copied from.
    pub(crate) fn copied_from(&mut self, parent: String) {
        self.copied_from = Some(SessionKey::new(parent));
    }

    /// Marks the root as a conversation that another conversation started.
    pub(crate) fn spawned_by(&mut self, parent: String) {
        if let Some(root) = self.branches.first_mut() {
            root.log.origin = Origin::Spawn {
                parent: SessionKey::new(parent),
                call: None,
                after: None,
            };
        }
    }

    /// Returns the branch that was written to last.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Returns whether no branch has a message yet.
    pub(crate) fn is_without_messages(&self) -> bool {
        let mut branches = self.branches.iter();
        branches.all(|branch| branch.log.is_without_messages())
    }

    /// Returns the entries of a branch.
    pub(crate) fn log(&mut self, branch: usize) -> Option<&mut SessionBuilder> {
        self.branches.get_mut(branch).map(|branch| &mut branch.log)
    }

    /// Returns the external id of an entry.
    pub(crate) fn external(&self, id: &str) -> Option<String> {
        self.entries.get(id)?.1.clone()
    }

    /// Returns the branch of an entry with a stated parent. It is the parent's branch if the parent is the last entry
    /// there, and otherwise a new fork at the parent.
    pub(crate) fn place(&mut self, id: &str, parent: Option<&RawValue>) -> usize {
        let Some(parent) = parent else {
            return self.current;
        };
        // A repeated entry, or another entry with the same id, makes no branch.
        if let Some((branch, _)) = self.entries.get(id) {
            return *branch;
        }
        let name = string(parent);
        let (from, after) = match &name {
            Some(name) => match self.entries.get(name) {
                Some(found) => found.clone(),
                // The parent's line could not be read, so only file order is left.
                None => return self.current,
            },
            None if parent.get() == "null" => (0, None),
            None => return self.current,
        };
        let tip = self.branches.get(from).and_then(|b| b.tip.as_deref());
        if tip == name.as_deref() {
            return from;
        }
        self.fork(
            from,
            after,
            id.to_owned(),
            SessionBuilder::new(Origin::Root),
        )
    }

    fn fork(
        &mut self,
        from: usize,
        after: Option<String>,
        name: String,
        log: SessionBuilder,
    ) -> usize {
        self.branches.push(Branch {
            log,
            name: Some(name),
            parent: from,
            after,
            tip: None,
        });
        self.branches.len() - 1
    }

    /// Records that an entry is the last one of its branch. `external` is `None` for a record without an entry.
    pub(crate) fn placed(&mut self, id: &str, branch: usize, external: Option<String>) {
        self.current = branch;
        let Some(at) = self.branches.get_mut(branch) else {
            return;
        };
        let last = || at.log.messages.last()?.external_id.clone();
        let external = external.or_else(last).or_else(|| at.after.clone());
        at.tip = Some(id.to_owned());
        self.entries.insert(id.to_owned(), (branch, external));
    }

    /// Returns the place behind the last entry, for a later [`go_back`](Self::go_back).
    pub(crate) fn end(&self) -> (usize, Option<String>) {
        if let Some(back) = &self.back {
            return back.clone();
        }
        let current = self.branches.get(self.current);
        let last = current.and_then(|branch| branch.log.messages.last());
        match (last, current) {
            (Some(last), _) => (self.current, last.external_id.clone()),
            (None, Some(branch)) => (branch.parent, branch.after.clone()),
            (None, None) => (0, None),
        }
    }

    /// Goes back to a place, so that the next entry begins a fork there.
    pub(crate) fn go_back(&mut self, place: (usize, Option<String>)) {
        self.back = Some(place);
    }

    /// Returns the branch in use of a source that does not name parents.
    pub(crate) fn in_use(&mut self) -> Option<&mut SessionBuilder> {
        if let Some((from, after)) = self.back.take() {
            let name = format!("fork-{}", self.branches.len());
            let log = self.log(from)?.branch();
            self.current = self.fork(from, after, name, log);
        }
        self.log(self.current)
    }

    /// Passes the conversations with entries to the sink. `linked` means that entries name the entry that they follow.
    pub(crate) fn finish(self, linked: bool, sink: &mut dyn Sink) -> Result<(), Error> {
        let key = self.key.unwrap_or_default();
        let key_of = |branch: &Branch| match &branch.name {
            Some(name) => SessionKey::new(format!("{key}/{name}")),
            None => SessionKey::new(key.as_str()),
        };
        let keys: Vec<SessionKey> = self.branches.iter().map(key_of).collect();
        for (index, (mut branch, key)) in self.branches.into_iter().zip(&keys).enumerate() {
            if branch.log.messages.is_empty() {
                continue;
            }
            if branch.name.is_some() {
                branch.log.origin = Origin::Fork {
                    parent: keys.get(branch.parent).unwrap_or(key).clone(),
                    after: branch.after,
                };
            }
            let mut log = branch.log.finish(key.clone());
            log.named = self.named;
            log.linked = linked;
            log.in_use = index == self.current;
            log.copied_from = self.copied_from.clone();
            sink.session(log)?;
        }
        Ok(())
    }
}
