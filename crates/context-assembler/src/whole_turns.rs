//! The newest turns of a view, as a number of messages.

use memory_model::{EntryKind, LogEntry};
use turn_map::{AtomBuilder, CutPolicy, TurnBoundary, TurnMap};

use crate::input::Item;
use crate::policy::WholeTurns;

/// The number of messages in the newest turns of a view, behind its last summary, with a budget of `limit` tokens.
pub(crate) fn messages_of(turns: WholeTurns, items: &[Item], limit: u64) -> usize {
    let mut newest_first: Vec<&[LogEntry]> = Vec::new();
    for item in items.iter().rev() {
        match item {
            Item::Raw(entries) | Item::Trimmed(_, entries, _) => newest_first.push(entries),
            Item::Summary(_) | Item::Omitted(_) | Item::Unread(..) => break,
        }
    }
    let entries: Vec<&LogEntry> = newest_first.into_iter().rev().flatten().collect();
    let mut atoms = AtomBuilder::starting_at(0);
    let mut map = TurnMap::starting_at(0, TurnBoundary::Role);
    for entry in &entries {
        atoms.push(*entry);
        map.push(*entry);
    }
    let rule = CutPolicy::FreshTurns {
        turns: turns.turns,
        max_messages: turns.max_messages,
        budget_percent: turns.budget_percent,
        max_tokens: None,
    };
    let cost = |position: usize| entries.get(position).map_or(0, |entry| entry.tokens);
    let cuts = rule.within(limit).cuts(&atoms.finish(), &map, cost);
    let kept = entries.get(cuts.tail().position()..).unwrap_or_default();
    let is_message = |entry: &&&LogEntry| entry.kind == EntryKind::Message;
    kept.iter().filter(is_message).count()
}
