//! Cutting a log into loops.

use std::ops::Range;

use turn_map::{Atoms, MessageView};

use crate::layout::TurnRule;
use crate::message::user_speaks;
use crate::planner::entry::LightEntry;
use crate::planner::policy::LoopRule;

/// The positions of each loop's entries, in order. No tool group reaches over two loops.
pub(crate) fn log_loops(
    entries: &[LightEntry],
    atoms: &Atoms,
    rule: LoopRule,
) -> Vec<Range<usize>> {
    let settled = atoms.settled_end().position();
    let mut starts = vec![0];
    let mut named: Option<&str> = None;
    let mut after_prompt = false;
    for (position, entry) in entries.iter().enumerate() {
        if entry.is_note() {
            continue;
        }
        let speaks = user_speaks(entry);
        let prompts = speaks && !after_prompt;
        let begins = match (rule, entry.loop_id.as_deref()) {
            (LoopRule::Named, Some(id)) => named.replace(id).is_some_and(|before| before != id),
            (LoopRule::Named, None) => prompts && named.is_none(),
            (LoopRule::Prompts, _) => prompts,
        };
        after_prompt = speaks;
        // Behind the settled atoms a result may still come that joins what is before with what follows.
        let is_cut = position <= settled && atoms.cut_before(position).position() == position;
        if begins && position > 0 && is_cut {
            starts.push(position);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let loops = starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end);
    loops.filter(|range| !range.is_empty()).collect()
}

/// How turns are told in a loop: by their indices where messages have them, else by answers.
pub(crate) fn turn_rule(entries: &[LightEntry]) -> TurnRule {
    match entries.iter().any(|entry| entry.turn().is_some()) {
        true => TurnRule::Index,
        false => TurnRule::Responses,
    }
}
