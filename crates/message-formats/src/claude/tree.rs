//! The tree of the root conversation's lines, and the branches that taking back turns makes of it.

use std::collections::{HashMap, HashSet};

use memory_model::Part;

use super::{Chain, Reader, Start};
use crate::blocks::{Blocks, Dialect, only_results};
use crate::raw::{MetaBuilder, RawObject, Reading};

/// Prefixes of texts that the program writes in the user's name when the user runs a command.
const COMMANDS: [&str; 3] = ["<command-", "<local-command-", "<bash-"];

/// Prefix of the text that the program writes in the user's name when the user stops it.
const INTERRUPT: &str = "[Request interrupted by user";

/// A line in the tree of the root conversation.
#[derive(Debug, Clone)]
pub(super) struct TreeLine {
    /// Its parent's uuid; `None` at a root of the tree.
    parent: Option<String>,
    /// Its chain, and its place among the lines that the chain shows; `None` for noise.
    place: Option<(usize, usize)>,
    kind: LineKind,
}

/// A line of the root conversation or of a fork.
#[derive(Debug, Clone)]
pub(super) struct Step {
    uuid: Option<String>,
    /// The nearest line above it that is no noise.
    above: Option<String>,
    /// Whether it is a root of the tree.
    is_root: bool,
    kind: LineKind,
    /// The session that it names.
    session: Option<String>,
}

impl Step {
    /// A line that is not in the tree.
    pub(super) fn beside_the_tree() -> Self {
        Self {
            uuid: None,
            above: None,
            is_root: false,
            kind: LineKind::Aside,
            session: None,
        }
    }
}

/// Kind of a line, by its part in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The user's own words: a turn begins.
    Prompt,
    /// A command of the user, or a text of the program as the user's: a turn begins if the assistant answers.
    Command,
    Assistant,
    /// Results, interruptions, summaries.
    Other,
    /// Something that the program notes between messages.
    Aside,
    /// A mark of the program that it compacted the conversation.
    Boundary,
}

impl LineKind {
    pub(super) fn of(object: &RawObject<'_>, tag: &str) -> Self {
        match tag {
            "assistant" => Self::Assistant,
            "user" if object.is_true("isCompactSummary") => Self::Other,
            "user" => {
                let inner = object.object("message");
                let value = inner.as_ref().and_then(|message| message.get("content"));
                let blocks = Blocks::new(Dialect::Claude, Reading::Now);
                let parts = value.map(|value| blocks.content(value, &mut MetaBuilder::default()));
                let parts = parts.unwrap_or_default();
                let text = parts.iter().find_map(|part| match part {
                    Part::Text { text } => Some(text.trim_start()),
                    _ => None,
                });
                let begins = |with: &str| text.is_some_and(|text| text.starts_with(with));
                if only_results(&parts) || begins(INTERRUPT) {
                    Self::Other
                } else if object.is_true("isMeta") || COMMANDS.iter().any(|tag| begins(tag)) {
                    Self::Command
                } else {
                    Self::Prompt
                }
            }
            "system" if object.string("subtype").as_deref() == Some("compact_boundary") => {
                Self::Boundary
            }
            _ => Self::Aside,
        }
    }

    pub(super) fn may_begin_turn(self) -> bool {
        matches!(self, Self::Prompt | Self::Command)
    }

    /// Whether the line is part of the conversation, and no note or mark beside it.
    pub(super) fn is_said(self) -> bool {
        !matches!(self, Self::Aside | Self::Boundary)
    }
}

impl Reader {
    /// Returns the chain that owns the line at a place of a chain, and that place.
    pub(super) fn owner(&self, mut chain: usize, place: usize) -> (usize, usize) {
        while let Some(at) = self.sessions.get(chain)
            && place < at.shared()
        {
            chain = at.parent;
        }
        (chain, place)
    }

    /// Whether a chain shows the line that another chain owns at a place.
    fn shows(&self, chain: usize, (owner, place): (usize, usize)) -> bool {
        self.owner(chain, place).0 == owner
    }

    /// Returns the branch that a line of the root conversation belongs to: a new fork if the line begins a turn in the
    /// place of a turn that was taken back.
    pub(super) fn branch(
        &mut self,
        object: &RawObject<'_>,
        uuid: Option<&str>,
        tag: &str,
        noise: bool,
    ) -> usize {
        if let Some(known) = uuid.and_then(|uuid| self.lines.get(uuid))
            && let Some((chain, _)) = known.place
        {
            // The same line once more, or another with its uuid.
            return chain;
        }
        let Some(stated) = object.get("parentUuid") else {
            return self.current;
        };
        let parent = object.string("parentUuid");
        if parent.is_none() && stated.get() != "null" {
            return self.current;
        }
        if noise {
            if let Some(uuid) = uuid {
                let line = TreeLine {
                    parent,
                    place: None,
                    kind: LineKind::Aside,
                };
                self.lines.insert(uuid.to_owned(), line);
            }
            return self.current;
        }
        let place = parent.as_deref().and_then(|parent| self.placed(parent));
        let place = place.and_then(|uuid| self.lines.get(uuid)?.place);
        let branch = match place {
            Some(place) if !self.shows(self.current, place) => place.0,
            _ => self.current,
        };
        let kind = LineKind::of(object, tag);
        if kind.may_begin_turn()
            && (parent.is_none() || place.is_some())
            && let Some(shared) =
                self.taken_back(branch, parent.as_deref(), object.id("sessionId").as_deref())
            && let Some(from) = self.sessions.get(branch)
        {
            let name = uuid.map_or_else(|| format!("fork-{}", self.sessions.len()), str::to_owned);
            let fork = Chain::new(
                from.log.branch(),
                branch,
                Some(name),
                Start::Fork { shared },
            );
            self.sessions.push(fork);
            self.current = self.sessions.len() - 1;
            return self.current;
        }
        // A result that comes late does not bring its branch back into use.
        if kind.may_begin_turn() || kind == LineKind::Assistant {
            self.current = branch;
        }
        branch
    }

    /// The nearest line from this one up that is no noise.
    fn placed<'a>(&'a self, mut uuid: &'a str) -> Option<&'a str> {
        // A file may state a circle.
        for _ in 0..=self.lines.len() {
            let line = self.lines.get(uuid)?;
            if line.place.is_some() {
                return Some(uuid);
            }
            uuid = line.parent.as_deref()?;
        }
        None
    }

    /// Keeps the place of a line that was stored in a branch.
    pub(super) fn step(
        &mut self,
        session: usize,
        object: &RawObject<'_>,
        uuid: Option<String>,
        kind: LineKind,
    ) {
        let parent = object.string("parentUuid");
        let above = parent.as_deref().and_then(|parent| self.placed(parent));
        let step = Step {
            uuid: uuid.clone(),
            above: above.map(str::to_owned),
            is_root: object
                .get("parentUuid")
                .is_some_and(|parent| parent.get() == "null"),
            kind,
            session: object.id("sessionId"),
        };
        let Some(chain) = self.sessions.get_mut(session) else {
            return;
        };
        let place = Some((session, chain.shared() + chain.steps.len()));
        chain.steps.push(step);
        if let Some(uuid) = uuid {
            let line = TreeLine {
                parent,
                place,
                kind,
            };
            self.lines.entry(uuid).or_insert(line);
        }
    }

    /// The lines that a chain shows from a place on, oldest first.
    fn steps_from(&self, chain: usize, place: usize) -> Vec<&Step> {
        let mut steps = Vec::new();
        let (mut at, mut end) = (self.sessions.get(chain), usize::MAX);
        while let Some(chain) = at {
            let shared = chain.shared();
            let own = chain.steps.iter().take(end.saturating_sub(shared));
            steps.extend(own.skip(place.saturating_sub(shared)).rev());
            end = end.min(shared);
            at = match shared > place {
                true => self.sessions.get(chain.parent),
                false => None,
            };
        }
        steps.reverse();
        steps
    }

    /// Returns the number of lines of a branch that stay before the first that was taken back, if a line behind
    /// `parent` begins a turn. `None` if no turn is taken back: the line continues the branch.
    ///
    /// A turn is taken back if its first line is further down the tree than the line that the new turn continues. Other
    /// lines between the two, such as the result of a parallel call, may be on a side branch, and stay.
    fn taken_back(
        &self,
        branch: usize,
        parent: Option<&str>,
        session: Option<&str>,
    ) -> Option<usize> {
        // The user goes back to a message, not to a note of the program before the turn.
        let mut anchor = parent;
        for _ in 0..=self.lines.len() {
            match anchor.and_then(|uuid| self.lines.get(uuid)) {
                Some(line) if line.kind == LineKind::Aside => anchor = line.parent.as_deref(),
                _ => break,
            }
        }
        let first = match anchor {
            None => 0,
            Some(uuid) => {
                self.lines
                    .get(uuid)?
                    .place
                    .filter(|place| self.shows(branch, *place))?
                    .1
                    + 1
            }
        };
        // Lines further down the tree, each with the first on the way that is said, and the turn that it is in.
        let mut below: HashMap<&str, (Option<usize>, Option<usize>)> = HashMap::new();
        let mut prompts: Vec<(usize, usize)> = Vec::new();
        let mut answered: HashSet<usize> = HashSet::new();
        let mut linked = anchor.is_some();
        for (place, step) in (first..).zip(self.steps_from(branch, first)) {
            if anchor.is_none() && step.kind == LineKind::Boundary {
                // The lines behind a boundary are a tree of their own.
                return None;
            }
            let above = step.above.as_deref();
            let state = match (above, anchor) {
                (above, Some(anchor)) if above == Some(anchor) => (None, None),
                // A second root of the tree is a resume, unless it is one of the same session.
                (None, None) if step.is_root && step.session.as_deref() == session => (None, None),
                (Some(above), _) => match below.get(above) {
                    Some(state) => *state,
                    None => continue,
                },
                _ => continue,
            };
            linked |= above.is_some();
            let (mut said, mut turn) = state;
            if step.kind.is_said() {
                said = said.or(Some(place));
            }
            match (step.kind, said) {
                (LineKind::Prompt | LineKind::Command, Some(said)) => {
                    prompts.push((place, said));
                    if step.kind == LineKind::Prompt {
                        answered.insert(place);
                    }
                    turn = Some(place);
                }
                (LineKind::Assistant, _) => answered.extend(turn),
                _ => {}
            }
            if let Some(uuid) = &step.uuid {
                below.insert(uuid, (said, turn));
            }
        }
        let turns = prompts
            .into_iter()
            .filter(|(place, _)| answered.contains(place));
        let left = turns.map(|(_, said)| said).min();
        left.filter(|_| linked)
    }
}
