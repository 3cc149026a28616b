use std::collections::HashMap;

use token_estimate::{MessageView, Role};

/// One change in a plan that rewrites a list of messages.
///
/// All positions refer to the original list, so they do not depend on other edits. The order of edits affects only the
/// order of inserted messages, and edits that change the same part or role. [`apply`] carries out a plan on messages of
/// any [`EditableMessage`] type. Your own code may also carry out the edits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edit {
    /// Removes a message. Results that [`InsertResults`](Self::InsertResults) moves out of the message or inserts after
    /// it are kept.
    DropMessage {
        /// Position of the message to remove.
        message: usize,
    },
    /// Removes a part of a message.
    DropPart {
        /// Position of the message that contains the part.
        message: usize,
        /// Index of the part in the message.
        part: usize,
    },
    /// Replaces the text of a text part or of a tool result. If a result is a list of parts, the new text replaces all
    /// its texts, and its images are kept.
    SetText {
        /// Position of the message that contains the part.
        message: usize,
        /// Index of the part in the message.
        part: usize,
        /// The text to set.
        text: String,
    },
    /// Replaces the whole content of a tool result, including images, with a text.
    SetContent {
        /// Position of the message that contains the tool result.
        message: usize,
        /// Index of the tool result among the message's parts.
        part: usize,
        /// The text that becomes the content of the tool result.
        text: String,
    },
    /// Turns a tool result into ordinary content: a heading as text, followed by the content of the result, including
    /// images.
    ResultToText {
        /// Position of the message that contains the tool result.
        message: usize,
        /// Index of the tool result among the message's parts.
        part: usize,
        /// Text of the heading, which is the first line.
        heading: String,
    },
    /// Changes the id of a call, or the id by which a result names its call.
    SetId {
        /// Position of the message that contains the call or result.
        message: usize,
        /// Index of the call or result among the message's parts.
        part: usize,
        /// The id to set.
        id: String,
    },
    /// Changes the role of a message.
    SetRole {
        /// Position of the message to change.
        message: usize,
        /// The role to set.
        role: Role,
    },
    /// Inserts results directly after a message. [`EditableMessage::results_behind`] creates the new messages for them.
    InsertResults {
        /// Position of the message after which the tool results are inserted.
        after: usize,
        /// The tool results to insert, in order; not empty.
        results: Vec<InsertedResult>,
    },
}

/// A result to insert with [`Edit::InsertResults`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertedResult {
    /// An artificial result for a call that no tool has answered.
    Stub {
        /// Id of the call that the result answers.
        call_id: String,
        /// Text of the tool result.
        text: String,
    },
    /// A tool result that is moved from another message. Other edits of the result are applied too.
    Moved {
        /// Position of the message that contains the tool result.
        message: usize,
        /// Index of the tool result among that message's parts.
        part: usize,
    },
}

/// A message that [`apply`] can rewrite. Its parts are the parts that [`MessageView::parts`] visits, in the same order.
pub trait EditableMessage: MessageView + Sized {
    /// Type of a message's parts, which [`apply`] moves and changes.
    type Part;

    /// Removes all parts from the message and returns them.
    fn take_parts(&mut self) -> Vec<Self::Part>;

    /// Sets the parts of the message. Replaces all existing parts.
    fn put_parts(&mut self, parts: Vec<Self::Part>);

    /// Sets the role of the message.
    fn set_role(&mut self, role: Role);

    /// Returns new messages with these tool results, to insert after this message in order. If a message of the format
    /// can contain only one result, returns one message for each result. Otherwise one message is enough.
    fn results_behind(&self, parts: Vec<Self::Part>) -> Vec<Self>;

    /// Returns a new result with this text that answers the call `call_id`.
    fn result_part(call_id: String, text: String) -> Self::Part;

    /// Replaces the text of a text part or of a tool result, as [`Edit::SetText`] describes.
    fn set_text(part: &mut Self::Part, text: String);

    /// Replaces the whole content of a tool result with a text, as [`Edit::SetContent`] describes.
    fn set_content(part: &mut Self::Part, text: String) {
        Self::set_text(part, text);
    }

    /// Sets the id of a call, or the id by which a result names its call.
    fn set_id(part: &mut Self::Part, id: String);

    /// Returns the parts that replace a tool result: the heading as text, then the content of the result.
    fn result_to_text(part: Self::Part, heading: String) -> Vec<Self::Part>;
}

/// Applies a plan of edits to the list for which it was made, and returns the rewritten list. Ignores edits of messages
/// or parts that do not exist.
pub fn apply<M: EditableMessage>(messages: Vec<M>, edits: &[Edit]) -> Vec<M> {
    // The edits of each message, and the tool results inserted after it.
    let mut plans: HashMap<usize, Plan<'_>> = HashMap::new();
    let mut parts: HashMap<(usize, usize), M::Part> = HashMap::new();
    for edit in edits {
        match edit {
            Edit::DropMessage { message } => plans.entry(*message).or_default().dropped = true,
            Edit::SetRole { message, role } => {
                plans.entry(*message).or_default().role = Some(*role);
            }
            Edit::InsertResults { after, results } => {
                plans.entry(*after).or_default().behind.push(results);
                for result in results {
                    if let InsertedResult::Moved { message, part } = result {
                        plans.entry(*message).or_default().moved.push(*part);
                    }
                }
            }
            Edit::DropPart { message, .. }
            | Edit::SetText { message, .. }
            | Edit::SetContent { message, .. }
            | Edit::ResultToText { message, .. }
            | Edit::SetId { message, .. } => plans.entry(*message).or_default().edits.push(edit),
        }
    }
    if plans.is_empty() {
        return messages;
    }
    let mut rewritten: Vec<(usize, M)> = Vec::with_capacity(messages.len());
    for (at, mut message) in messages.into_iter().enumerate() {
        if let Some(plan) = plans.get(&at) {
            let old = message.take_parts();
            let new = plan.rewrite::<M>(at, old, &mut parts);
            message.put_parts(new);
            if let Some(role) = plan.role {
                message.set_role(role);
            }
        }
        rewritten.push((at, message));
    }
    let mut out = Vec::with_capacity(rewritten.len());
    for (at, message) in rewritten {
        let Some(plan) = plans.get(&at) else {
            out.push(message);
            continue;
        };
        let behind: Vec<M> = plan
            .behind
            .iter()
            .flat_map(|results| {
                let results = results.iter().filter_map(|result| match result {
                    InsertedResult::Stub { call_id, text } => {
                        Some(M::result_part(call_id.clone(), text.clone()))
                    }
                    InsertedResult::Moved { message, part } => parts.remove(&(*message, *part)),
                });
                let results: Vec<_> = results.collect();
                if results.is_empty() {
                    Vec::new()
                } else {
                    message.results_behind(results)
                }
            })
            .collect();
        if !plan.dropped {
            out.push(message);
        }
        out.extend(behind);
    }
    out
}

/// The edits of one message.
#[derive(Default)]
struct Plan<'a> {
    dropped: bool,
    role: Option<Role>,
    /// Edits of the parts of the message.
    edits: Vec<&'a Edit>,
    /// Indices of the parts that move to other messages.
    moved: Vec<usize>,
    behind: Vec<&'a Vec<InsertedResult>>,
}

impl Plan<'_> {
    /// Returns the parts that stay in the message. Puts the parts that move into `aside`.
    fn rewrite<M: EditableMessage>(
        &self,
        at: usize,
        old: Vec<M::Part>,
        aside: &mut HashMap<(usize, usize), M::Part>,
    ) -> Vec<M::Part> {
        let mut by_part: HashMap<usize, Vec<&Edit>> = HashMap::new();
        for edit in &self.edits {
            if let Edit::DropPart { part, .. }
            | Edit::SetText { part, .. }
            | Edit::SetContent { part, .. }
            | Edit::ResultToText { part, .. }
            | Edit::SetId { part, .. } = edit
            {
                by_part.entry(*part).or_default().push(edit);
            }
        }
        let moved: std::collections::HashSet<usize> = self.moved.iter().copied().collect();
        let mut new = Vec::with_capacity(old.len());
        'parts: for (index, mut part) in old.into_iter().enumerate() {
            let mut heading = None;
            for edit in by_part.get(&index).into_iter().flatten() {
                match edit {
                    Edit::DropPart { .. } => continue 'parts,
                    Edit::SetText { text, .. } => M::set_text(&mut part, text.clone()),
                    Edit::SetContent { text, .. } => M::set_content(&mut part, text.clone()),
                    Edit::SetId { id, .. } => M::set_id(&mut part, id.clone()),
                    Edit::ResultToText { heading: text, .. } => heading = Some(text.clone()),
                    _ => {}
                }
            }
            if let Some(heading) = heading {
                new.extend(M::result_to_text(part, heading));
            } else if moved.contains(&index) {
                aside.insert((at, index), part);
            } else {
                new.push(part);
            }
        }
        new
    }
}
