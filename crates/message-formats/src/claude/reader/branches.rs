//! Places the lines of the root conversation in the tree and on its branches.

use super::Reader;
use super::chain::{Chain, Start};
use crate::claude::line::session_of;
use crate::claude::tree::{LineKind, Name, Step, TreeLine};
use crate::raw::RawObject;

impl Reader {
    /// Returns the chain that owns the line at a place of another chain, and that place.
    pub(super) fn owner(&self, mut chain: usize, place: usize) -> (usize, usize) {
        while let Some(at) = self.sessions.get(chain)
            && place < at.shared()
        {
            chain = at.parent;
        }
        (chain, place)
    }

    /// Returns whether a chain shows the line that another chain owns at a place.
    pub(super) fn shows(&self, chain: usize, (owner, place): (usize, usize)) -> bool {
        self.owner(chain, place).0 == owner
    }

    /// Returns the branch that a line of the root conversation belongs to. It is a new fork if the line begins a turn
    /// in the place of a turn that was taken back. `is_copy` means that the line repeats an earlier one.
    pub(super) fn branch(
        &mut self,
        object: &RawObject<'_>,
        uuid: Option<&str>,
        tag: &str,
        noise: bool,
        is_copy: bool,
    ) -> usize {
        let name = uuid.map(|uuid| self.names.of(uuid));
        if let Some(name) = name
            && let Some(place) = self.lines.get(name).and_then(TreeLine::place)
        {
            // The line is written again, or another line has its uuid.
            let chain = match self.shows(self.current, place) {
                true => self.current,
                false => place.0,
            };
            self.stand_again(chain, name);
            return place.0;
        }
        if is_copy {
            return self.current;
        }
        let Some(stated) = object.get("parentUuid") else {
            return self.current;
        };
        let parent = self.parent(object);
        if parent.is_none() && stated.get() != "null" {
            return self.current;
        }
        if noise {
            if let Some(name) = name {
                let line = TreeLine {
                    parent,
                    place: None,
                    kind: LineKind::Aside,
                    session: None,
                };
                self.lines.insert(name, line);
            }
            return self.current;
        }
        let place = parent.and_then(|parent| self.placed(parent));
        let place = place.and_then(|uuid| self.lines.get(uuid)?.place());
        let branch = match place {
            Some(place) if !self.shows(self.current, place) => place.0,
            _ => self.current,
        };
        let kind = LineKind::of(object, tag);
        let session = session_of(object).map(|session| self.names.of(&session));
        if kind.may_begin_turn()
            && (parent.is_none() || place.is_some())
            && let Some(shared) = self.taken_back(branch, parent, session)
            && let Some(from) = self.sessions.get(branch)
        {
            let name = uuid.map_or_else(|| format!("fork-{}", self.sessions.len()), str::to_owned);
            let mut fork = Chain::new(
                from.log.branch(),
                branch,
                Some(name),
                Start::Fork { shared },
            );
            fork.newest = from.newest;
            self.sessions.push(fork);
            self.current = self.sessions.len() - 1;
            return self.current;
        }
        // A late result does not bring its branch back into use.
        if kind.may_begin_turn() || kind == LineKind::Assistant {
            self.current = branch;
        }
        branch
    }

    /// Returns the uuid of the line above a line.
    fn parent(&mut self, object: &RawObject<'_>) -> Option<Name> {
        let parent = object.string("parentUuid")?;
        Some(self.names.of(&parent))
    }

    /// Returns this line, or the nearest line above it that is not noise.
    fn placed(&self, mut uuid: Name) -> Option<Name> {
        // The parents in a file can form a circle.
        for _ in 0..=self.lines.depth() {
            let line = self.lines.get(uuid)?;
            if line.place.is_some() {
                return Some(uuid);
            }
            uuid = line.parent?;
        }
        None
    }

    /// Records the place of a line that was added to a branch.
    pub(super) fn step(
        &mut self,
        session: usize,
        object: &RawObject<'_>,
        uuid: Option<String>,
        kind: LineKind,
        is_copy: bool,
    ) {
        let parent = self.parent(object);
        let uuid = uuid.map(|uuid| self.names.of(&uuid));
        if kind == LineKind::Boundary {
            self.end_at_boundary(session, object);
        }
        let step = Step {
            uuid,
            above: parent.and_then(|parent| self.placed(parent)),
            is_root: object
                .get("parentUuid")
                .is_some_and(|parent| parent.get() == "null"),
            kind,
            session: session_of(object).map(|session| self.names.of(&session)),
            is_copy,
        };
        let named = step.session;
        let Some(chain) = self.sessions.get_mut(session) else {
            return;
        };
        let place = chain.end();
        chain.steps.push(step);
        if let Some(uuid) = uuid.filter(|uuid| self.lines.get(*uuid).is_none()) {
            let line = TreeLine {
                parent,
                place: Some((session as u32, place as u32)),
                kind,
                session: named,
            };
            self.lines.insert(uuid, line);
            if is_copy {
                self.again.entry(uuid).or_default().push((session, place));
            }
        }
    }

    /// Returns whether a line with a uuid has a place in the tree.
    pub(super) fn is_placed(&mut self, uuid: &str) -> bool {
        let line = self.lines.get(self.names.of(uuid));
        line.is_some_and(|line| line.place.is_some())
    }

    /// Records that the program wrote a line of the tree again. It is at the end of the chain once more, so that a
    /// line behind it continues there and takes nothing back.
    fn stand_again(&mut self, chain: usize, name: Name) {
        let Some(line) = self.lines.get(name) else {
            return;
        };
        let step = Step {
            uuid: Some(name),
            above: line.parent.and_then(|parent| self.placed(parent)),
            is_root: line.parent.is_none(),
            kind: line.kind,
            session: line.session,
            is_copy: true,
        };
        if let Some(at) = self.sessions.get_mut(chain) {
            let end = at.end();
            at.again.push((end as u32, step));
            self.again.entry(name).or_default().push((chain, end));
        }
    }

    /// Records that a compaction took the conversation as it stood. The line that the boundary names as the last one is
    /// then the end of the conversation, wherever the program had put it in the tree.
    fn end_at_boundary(&mut self, chain: usize, object: &RawObject<'_>) {
        let last = object.string("logicalParentUuid");
        let mut at = last.map(|last| self.names.of(&last));
        for _ in 0..=self.lines.depth() {
            let Some((name, line)) = at.and_then(|name| Some((name, self.lines.get(name)?))) else {
                return;
            };
            let (kind, parent) = (line.kind, line.parent);
            if line.place().is_some_and(|place| self.shows(chain, place)) {
                self.stand_again(chain, name);
            }
            if kind != LineKind::Aside {
                return;
            }
            at = parent;
        }
    }
}
