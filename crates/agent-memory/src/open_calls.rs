//! The calls of the newest response that wait for their results.

use std::collections::BTreeSet;

use compaction_plan::Tail;
use compaction_runner::newest_entries;
use memory_model::{Message, Part};
use turn_map::{AtomBuilder, AtomKind, GroupState};

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Returns the calls of the newest response that have no result yet, as one message of the assistant with
    /// these calls in their order; a message without calls when nothing is open.
    ///
    /// For a program that resumes a turn: it died, or gave up, between a response and the results of its tools.
    /// Whether a tool ran before is not known here: only its result is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn open_calls(&self) -> Result<Message> {
        let head = self.snapshot().await?.head;
        let store = &*self.memory().inner.store;
        let newest = newest_entries(store, self.id(), head, Tail::messages(1)).await?;
        let mut open = Message::assistant("");
        open.parts.clear();
        let Some(first) = newest.first().map(|entry| entry.seq.0 as usize) else {
            return Ok(open);
        };
        let mut builder = AtomBuilder::starting_at(first);
        newest.iter().for_each(|entry| builder.push(entry));
        let atoms = builder.finish();
        let is_open = AtomKind::Group(GroupState::Open);
        let groups = atoms.iter().filter(|atom| atom.kind() == is_open);
        let unanswered: BTreeSet<(usize, &str)> = groups
            .flat_map(|atom| atom.unanswered())
            .map(|call| (call.message, &*call.id))
            .collect();
        for entry in &newest {
            let is_unanswered = |part: &&Part| {
                matches!(part, Part::ToolCall { id, .. }
                    if unanswered.contains(&(entry.seq.0 as usize, id)))
            };
            let calls = entry.parts.iter().filter(is_unanswered);
            open.parts.extend(calls.cloned());
        }
        Ok(open)
    }
}
