//! Makes the ids of tool calls unique within a context.

use std::collections::{HashMap, HashSet};

use memory_model::Part;

use crate::context::{ContextMessage, RenamedCall};

/// Ids of the calls in the messages that were added so far.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    /// Number that was last appended to each id.
    numbers: HashMap<String, u64>,
}

impl CallIds {
    /// Records the ids of further messages. If an id was used before, gives the call and its result a new id and
    /// returns the rewritten messages. Otherwise returns `None`.
    ///
    /// A call must be in the same messages as its result. Later messages do not change earlier ids, so that the
    /// beginning of a context stays the same.
    pub(crate) fn take(
        &mut self,
        messages: &[ContextMessage],
        renamed: &mut Vec<RenamedCall>,
    ) -> Option<Vec<ContextMessage>> {
        let mut new_ids: HashMap<String, String> = HashMap::new();
        for message in messages {
            for part in &message.parts {
                let Part::ToolCall { id, .. } = part else {
                    continue;
                };
                if self.taken.insert(id.clone()) {
                    continue;
                }
                let new_id = self.unused(id);
                self.taken.insert(new_id.clone());
                if let Some(range) = message.source.range() {
                    renamed.push(RenamedCall {
                        message: range.first,
                        id: id.clone(),
                        new_id: new_id.clone(),
                    });
                }
                new_ids.insert(id.clone(), new_id);
            }
        }
        if new_ids.is_empty() {
            return None;
        }
        let mut messages = messages.to_vec();
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::ToolCall { id, .. } | Part::ToolResult { call_id: id, .. } = part
                && let Some(new_id) = new_ids.get(id)
            {
                id.clone_from(new_id);
            }
        }
        Some(messages)
    }

    /// Returns the id with a number appended that makes it unique.
    fn unused(&mut self, id: &str) -> String {
        let number = self.numbers.entry(id.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let new_id = format!("{id}_{number}");
            if !self.taken.contains(&new_id) {
                return new_id;
            }
        }
    }
}
