//! Ids of calls that are unique in a whole context.

use std::collections::{HashMap, HashSet};

use memory_model::Part;

use crate::context::{ContextMessage, RenamedCall};

/// The ids of the calls in the part of a context that was assembled.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    /// The latest number appended to an id.
    numbers: HashMap<String, u64>,
}

impl CallIds {
    /// Takes the ids of further messages. If an id is taken already, its call and result get another: then returns the
    /// rewritten messages.
    ///
    /// Each call is in the same messages as its result. Later messages do not change earlier ids, so that an unchanged
    /// beginning stays the same bytes.
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

    /// The id with an appended number that makes it unique.
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
