//! Tool calls of the last response that have no result yet.

use std::collections::BTreeSet;

use compaction_plan::Tail;
use compaction_runner::newest_entries;
use memory_model::{EntryKind, Message, Part, Role};
use turn_map::{AtomBuilder, AtomKind, GroupState};

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Returns the tool calls that have no result yet, in order, in one message of the assistant. Use it to resume a
    /// turn that was interrupted. If all calls have results and the model must reply next, the message has no calls.
    /// Returns `None` if no turn is incomplete: the log is empty, or its last message is a reply without open calls.
    ///
    /// The session does not know whether a tool without a result was run: the log does not record when a tool is run,
    /// only its call and its result.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn open_turn(&self) -> Result<Option<Message>> {
        let (open, latest) = self.open_calls_and_latest().await?;
        let is_complete =
            latest.is_none_or(|role| role == Role::Assistant) && open.parts.is_empty();
        Ok((!is_complete).then_some(open))
    }

    /// Returns whether a call of the last response has no result.
    pub(crate) async fn has_open_calls(&self) -> Result<bool> {
        Ok(!self.open_calls_and_latest().await?.0.parts.is_empty())
    }

    /// Returns the open calls of the latest response, and the role of the latest message.
    async fn open_calls_and_latest(&self) -> Result<(Message, Option<Role>)> {
        let head = self.snapshot().await?.head;
        let store = &*self.memory().inner.store;
        let newest = newest_entries(store, self.id(), head, Tail::messages(1)).await?;
        let mut open = Message::assistant("");
        open.parts.clear();
        let Some(first) = newest.first().map(|entry| entry.seq.0 as usize) else {
            return Ok((open, None));
        };
        let mut latest = newest.iter().rev();
        let latest = latest.find(|entry| entry.kind == EntryKind::Message);
        let latest = latest.map(|entry| entry.role);
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
        Ok((open, latest))
    }
}
