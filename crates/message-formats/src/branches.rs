//! A conversation and its forks in one source.

use std::collections::HashMap;

use memory_model::{SessionKey, Timestamp, short_hash};
use serde_json::value::RawValue;

use crate::json_lines::Line;
use crate::raw::string;
use crate::session::{Digest16, SessionBuilder, digest};
use crate::{Error, Origin, ReadOptions, Sink};

/// A place behind an entry: the index of a branch, and the external id of the entry. `None` is the beginning.
pub(crate) type Place = (usize, Option<String>);

/// The root conversation and its forks in file order.
#[derive(Debug)]
pub(crate) struct Branches {
    /// Key of the session, or `None` before the first line.
    key: Option<String>,
    /// Whether the source names the session.
    named: bool,
    /// Session with the file that the source was copied from.
    copied_from: Option<SessionKey>,
    branches: Vec<Branch>,
    /// Index of the branch that was written to last.
    current: usize,
    /// Place behind each entry, by the hash of the entry's id: its branch, and the number of entries there. A record
    /// without an entry has the place behind the entry before it.
    entries: HashMap<Digest16, (u32, u32)>,
    /// Parent of the fork that the next entry begins, and the last entry that both share.
    back: Option<Place>,
    /// Time at which the source went back there.
    since: Option<Timestamp>,
    /// Name of that fork, if the source names it.
    next: Option<Named>,
    /// Whether a fork continues under the name of the session that it is a fork of.
    stand_in: bool,
}

/// A fork that its source names.
#[derive(Debug)]
struct Named {
    key: SessionKey,
    /// Session that the fork stands for: see [`SessionLog::stands_for`](crate::SessionLog::stands_for).
    replaced: Option<SessionKey>,
}

#[derive(Debug)]
struct Branch {
    log: SessionBuilder,
    named: Option<Named>,
    /// Time since which the branch is the one in use, if the source tells.
    since: Option<Timestamp>,
    /// Suffix of the session's key, or `None` for the root.
    name: Option<String>,
    parent: usize,
    /// Branch in use before this one began. It may be another than the parent: a rollback may go back into an earlier file.
    before: usize,
    after: Option<String>,
    /// Id of the last entry.
    tip: Option<String>,
}

impl Branches {
    /// Creates a root without entries, for a source that is read with these options.
    pub(crate) fn new(options: &ReadOptions) -> Self {
        let root = Branch {
            log: SessionBuilder::with_options(Origin::Root, options),
            named: None,
            since: None,
            name: None,
            parent: 0,
            before: 0,
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
            since: None,
            next: None,
            stand_in: false,
        }
    }

    /// Lets the fork in use continue under the name of the session that it is a fork of: see
    /// [`SessionLog::stands_for`](crate::SessionLog::stands_for).
    pub(crate) fn with_stand_ins(mut self) -> Self {
        self.stand_in = true;
        self
    }

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

    /// Sets the session with the file that the source was copied from.
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
        self.found(id)?.1
    }

    /// Returns the branch of an entry, and the entry's external id.
    fn found(&self, id: &str) -> Option<(usize, Option<String>)> {
        let (branch, count) = *self.entries.get(&digest(id))?;
        Some((
            branch as usize,
            self.id_before(branch as usize, count as usize),
        ))
    }

    /// Returns the external id of the last of a branch's first `count` entries. It is the last shared one if `count` is
    /// 0.
    pub(crate) fn id_before(&self, branch: usize, count: usize) -> Option<String> {
        let branch = self.branches.get(branch)?;
        branch.log.id_before(count).or_else(|| branch.after.clone())
    }

    /// Returns the branch of an entry with a stated parent. It is the parent's branch if the parent is the last entry
    /// there, and otherwise a new fork at the parent.
    pub(crate) fn place(&mut self, id: &str, parent: Option<&RawValue>) -> usize {
        let Some(parent) = parent else {
            return self.current;
        };
        // A repeated entry, or another entry with the same id, makes no branch.
        if let Some((branch, _)) = self.entries.get(&digest(id)) {
            return *branch as usize;
        }
        let name = string(parent);
        let (from, after) = match &name {
            Some(name) => match self.found(name) {
                Some(found) => found,
                // The parent's line could not be read, so only file order is left.
                None => return self.current,
            },
            None if parent.get() == "null" => (0, None),
            None => return self.current,
        };
        let Some(branch) = self.branches.get(from) else {
            return from;
        };
        // Nothing can be shared with a branch that has only records without an entry.
        if branch.tip == name || branch.log.len() == 0 {
            return from;
        }
        let log = branch.log.sibling();
        self.fork(from, after, id.to_owned(), log)
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
            named: None,
            since: None,
            name: Some(name),
            parent: from,
            before: self.current,
            after,
            tip: None,
        });
        self.branches.len() - 1
    }

    /// Records that an entry was added to a branch, or that a record without an entry follows the branch's last one.
    pub(crate) fn placed(&mut self, id: &str, branch: usize) {
        // A repeated record is not the branch's last one.
        if self.entries.contains_key(&digest(id)) {
            return;
        }
        self.current = branch;
        let Some(at) = self.branches.get_mut(branch) else {
            return;
        };
        at.tip = Some(id.to_owned());
        let place = (branch as u32, at.log.len() as u32);
        self.entries.insert(digest(id), place);
    }

    /// Returns the place behind the last entry, for a later [`go_back`](Self::go_back).
    pub(crate) fn end(&self) -> Place {
        if let Some(back) = &self.back {
            return back.clone();
        }
        match self.branches.get(self.current) {
            Some(branch) if branch.log.len() == 0 => (branch.parent, branch.after.clone()),
            Some(branch) => (self.current, branch.log.id_before(branch.log.len())),
            None => (0, None),
        }
    }

    /// Goes back to a place, so that the next entry begins a fork there. The fork is the branch in use since this time.
    pub(crate) fn go_back(&mut self, place: Place, since: Option<Timestamp>) {
        (self.back, self.since) = (Some(place), since);
    }

    /// Names the fork that begins at the place that was [gone back](Self::go_back) to. It stands for the session
    /// `replaced`.
    pub(crate) fn names_next(&mut self, key: SessionKey, replaced: Option<SessionKey>) {
        self.next = Some(Named { key, replaced });
    }

    /// Returns the branch in use of a source that does not name parents.
    pub(crate) fn in_use(&mut self) -> Option<&mut SessionBuilder> {
        if let Some((from, after)) = self.back.take() {
            let log = &self.branches.get(from)?.log;
            let next = self.next.take();
            self.current = match log.len() {
                0 => from,
                _ => {
                    let (name, log) = (format!("fork-{}", self.branches.len()), log.branch());
                    self.fork(from, after, name, log)
                }
            };
            if let Some(branch) = self.branches.get_mut(self.current) {
                branch.named = next.or(branch.named.take());
                branch.since = self.since.take().or(branch.since);
            }
        }
        self.log(self.current)
    }

    /// Passes the conversations with entries to the sink. `linked` means that entries name the entry that they follow.
    pub(crate) fn finish(self, linked: bool, sink: &mut dyn Sink) -> Result<(), Error> {
        let key = self.key.unwrap_or_default();
        let key_of = |branch: &Branch| match (&branch.named, &branch.name) {
            (Some(named), _) => named.key.clone(),
            (None, Some(name)) => SessionKey::new(format!("{key}/{name}")),
            (None, None) => SessionKey::new(key.as_str()),
        };
        let keys: Vec<SessionKey> = self.branches.iter().map(key_of).collect();
        let mut stand_for: Vec<Option<SessionKey>> = Vec::with_capacity(keys.len());
        let mut since: Vec<Option<Timestamp>> = Vec::with_capacity(keys.len());
        for branch in &self.branches {
            let (replaced, from) = match (&branch.named, &branch.name) {
                (Some(named), _) => (named.replaced.clone(), branch.since),
                (None, Some(_)) if self.stand_in => {
                    let known = stand_for.get(branch.before).cloned().flatten();
                    let replaced = known.or_else(|| keys.get(branch.before).cloned());
                    let before = || since.get(branch.before).copied().flatten();
                    (replaced, branch.since.or_else(before))
                }
                (None, _) => (None, None),
            };
            stand_for.push(replaced);
            since.push(from);
        }
        let separate = self.branches.iter().map(|branch| branch.named.is_some());
        let separate: Vec<bool> = separate.collect();
        for (index, (mut branch, key)) in self.branches.into_iter().zip(&keys).enumerate() {
            if branch.log.len() == 0 {
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
            log.stands_for = stand_for.get(index).cloned().flatten();
            log.since = since.get(index).copied().flatten();
            log.is_separate = separate.get(index) == Some(&true);
            sink.session(log)?;
        }
        Ok(())
    }
}
