//! Finds the turns that a user took back.

use std::collections::{HashMap, HashSet};

use super::Reader;
use crate::claude::tree::{LineKind, Name, Step, TreeLine};

/// The line that a new turn continues.
#[derive(Debug)]
struct Anchor {
    /// `None` before the first line.
    line: Option<Name>,
    /// Notes of the program between this line and the turn.
    notes: Vec<Name>,
    /// Number of lines of the branch that stay in any case.
    first: usize,
}

impl Reader {
    /// Returns the number of lines that a branch showed when a line was last written again.
    fn stood_again(&self, branch: usize, name: Name) -> Option<usize> {
        let mut places = self.again.get(&name)?.iter().rev();
        let shown = |(chain, end): &&(usize, usize)| {
            *chain == branch || self.shows(branch, (*chain, end.saturating_sub(1)))
        };
        places.find(shown).map(|(_, end)| *end)
    }

    /// Returns the lines that a chain shows from a place on, each with its place, oldest first. A line that was written
    /// again comes once more, with its first place.
    fn steps_from(&self, chain: usize, place: usize) -> Vec<(usize, &Step)> {
        let mut steps = Vec::new();
        let (mut at, mut end) = (self.sessions.get(chain), usize::MAX);
        while let Some(chain) = at {
            let shared = chain.shared();
            let own = (shared..).zip(&chain.steps);
            let own = own.take(end.saturating_sub(shared));
            let own = own.skip(place.saturating_sub(shared));
            let from = chain
                .again
                .partition_point(|(by, _)| (*by as usize) < place);
            let again = chain.again.get(from..).unwrap_or_default().iter();
            let again = again.map(|(by, step)| (*by as usize, step));
            let mut again = again.take_while(|(by, _)| *by <= end).peekable();
            let first = |(by, step): (usize, &'_ Step)| {
                let line = step.uuid.and_then(|uuid| self.lines.get(uuid));
                line.and_then(TreeLine::place)
                    .map_or(by, |(_, place)| place)
            };
            let mut part = Vec::new();
            for (at, step) in own {
                while let Some(one) = again.next_if(|(by, _)| *by <= at) {
                    part.push((first(one), one.1));
                }
                part.push((at, step));
            }
            part.extend(again.map(|one| (first(one), one.1)));
            steps.extend(part.into_iter().rev());
            end = end.min(shared);
            at = match shared > place {
                true => self.sessions.get(chain.parent),
                false => None,
            };
        }
        steps.reverse();
        steps
    }

    /// Returns where a branch continues with a line behind `parent`, or `None` if the branch does not show that line.
    fn anchor(&self, branch: usize, parent: Option<Name>) -> Option<Anchor> {
        // The user goes back to a message, not to a note of the program before the turn.
        let mut anchor = parent;
        let mut notes = Vec::new();
        let mut again = 0;
        for _ in 0..=self.lines.depth() {
            let Some((uuid, line)) = anchor.and_then(|uuid| Some((uuid, self.lines.get(uuid)?)))
            else {
                break;
            };
            again = again.max(self.stood_again(branch, uuid).unwrap_or_default());
            if line.kind != LineKind::Aside {
                break;
            }
            notes.push(uuid);
            anchor = line.parent;
        }
        let first = match anchor {
            None => 0,
            Some(uuid) => {
                self.lines
                    .get(uuid)?
                    .place()
                    .filter(|place| self.shows(branch, *place))?
                    .1
                    + 1
            }
        };
        let first = first.max(again);
        Some(Anchor {
            line: anchor,
            notes,
            first,
        })
    }

    /// Returns the number of lines of a branch before the first line that was taken back, if a line behind `parent`
    /// begins a turn. Returns `None` if no turn is taken back, so that the line continues the branch.
    ///
    /// A turn is taken back if its first line is further down the tree than the line that the new turn continues. Other
    /// lines between the two, such as the result of a parallel call, can be on a side branch, and stay.
    pub(super) fn taken_back(
        &self,
        branch: usize,
        parent: Option<Name>,
        session: Option<Name>,
    ) -> Option<usize> {
        let Anchor {
            line: anchor,
            notes,
            first,
        } = self.anchor(branch, parent)?;
        // Lines further down the tree. Each has the first conversational line on the way to it, and its turn.
        let notes = notes.into_iter().map(|note| (note, (None, None)));
        let mut below: HashMap<Name, (Option<usize>, Option<usize>)> = notes.collect();
        let mut prompts: Vec<(usize, usize)> = Vec::new();
        let mut answered: HashSet<usize> = HashSet::new();
        let mut linked = anchor.is_some();
        // Lines that are written again follow the conversation as it stands, wherever they were in the tree. They begin
        // no turn there.
        let mut before = Some((None, None));
        let mut moved: HashSet<Name> = HashSet::new();
        for (place, step) in self.steps_from(branch, first) {
            if anchor.is_none() && step.kind == LineKind::Boundary {
                // The lines behind a boundary are a separate tree.
                return None;
            }
            let above = step.above;
            let state = match (above, anchor) {
                (above, Some(anchor)) if above == Some(anchor) => Some((None, None)),
                // A second root of the tree is a resume, unless it names the same session.
                (None, None) if step.is_root && step.session == session => Some((None, None)),
                (above, _) => above.and_then(|above| below.get(&above).copied()),
            };
            let is_moved = above != anchor && above.is_none_or(|above| moved.contains(&above));
            if step.is_copy && (state.is_none() || is_moved) {
                if let Some((uuid, before)) = step.uuid.zip(before) {
                    moved.insert(uuid);
                    below.insert(uuid, before);
                }
                continue;
            }
            let Some(state) = state else {
                // A summary or a result stands between turns, and a new turn needs words.
                if matches!(
                    step.kind,
                    LineKind::Prompt | LineKind::Command | LineKind::Assistant
                ) {
                    before = None;
                }
                continue;
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
            if step.kind.is_said() && !step.is_copy {
                before = Some((said, turn));
            }
            if let Some(uuid) = step.uuid {
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
