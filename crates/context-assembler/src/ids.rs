//! Ids of calls that are unique in a whole context.

use std::collections::{HashMap, HashSet};

use memory_model::Part;

use crate::context::{ContextMessage, RenamedCall};

/// The ids of the calls in a context, as far as it was put together.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    /// The number that was last put behind an id.
    numbers: HashMap<String, u64>,
}

impl CallIds {
    /// Takes the ids of further messages in. Where a call has an id that is taken, it and its
    /// result get another: then the messages are returned, rewritten.
    ///
    /// The messages hold each call together with its result, under ids of their own. What comes
    /// later changes no id before it, so an unchanged beginning stays the same bytes.
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

    /// The id with a number behind it that makes it one that is not taken.
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
