//! Makes messages valid for providers, with [`turn_map::sanitize`].

use std::collections::BTreeMap;

use memory_model::{Message, Part, ResultContent, Role, Seq};
use turn_map::{
    Edit, EditableMessage, InsertedResult, MessageView, PartView, Remedy, apply, sanitize,
};

use crate::context::{ContextMessage, MessageOrigin, MovedResult, RenamedCall};
use crate::marks::remark;

/// A message before it is made valid for providers.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) role: Role,
    pub(crate) name: Option<String>,
    pub(crate) source: MessageOrigin,
    pub(crate) parts: Vec<Placed>,
    /// Whether the message was inserted for tool results that are missing or elsewhere in the log.
    pub(crate) inserted: bool,
}

/// A part with its position in the log. The position is `None` for parts of stubs and summaries.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) part: Part,
    pub(crate) seq: Option<Seq>,
    /// Phase of what the assistant says in it: see [`ContextMessage::phases`].
    pub(crate) phase: Option<String>,
}

/// Messages that providers accept, with a record of the repairs.
#[derive(Debug, Default)]
pub(crate) struct Fitted {
    pub(crate) messages: Vec<ContextMessage>,
    /// Ids of the calls that got a stub as their result.
    pub(crate) stubbed: Vec<String>,
    pub(crate) moved: Vec<MovedResult>,
    pub(crate) renamed: Vec<RenamedCall>,
}

/// Makes messages valid for providers. Moves the results of each call into separate messages directly after the message
/// with the call. Adds stubs for missing results, makes the ids of calls unique, and leaves no message without content.
pub(crate) fn fit(lines: Vec<Line>) -> Fitted {
    let plan = sanitize(&lines, &remark("no result"));
    let stubbed = plan.findings.into_iter();
    let stubbed = stubbed.filter(|finding| finding.remedy == Remedy::Stubbed);
    let mut fitted = Fitted {
        stubbed: stubbed.map(|finding| finding.id).collect(),
        ..Fitted::default()
    };
    for edit in &plan.edits {
        match edit {
            Edit::SetId { message, part, id } => {
                let renamed = placed(&lines, *message, *part).and_then(|call| match &call.part {
                    Part::ToolCall { id: old, .. } => Some(RenamedCall {
                        message: call.seq?,
                        id: old.clone(),
                        new_id: id.clone(),
                    }),
                    _ => None,
                });
                fitted.renamed.extend(renamed);
            }
            Edit::InsertResults { after, results } => {
                let moved = results
                    .iter()
                    .filter_map(|result| moved(&lines, *after, result));
                fitted.moved.extend(moved);
            }
            _ => {}
        }
    }
    let lines = apply(lines, &plan.edits).into_iter();
    fitted.messages = lines.flat_map(messages_of).collect();
    fitted
}

/// Returns the record of a tool result that moves to directly follow the message `after`. `None` for a stub.
fn moved(lines: &[Line], after: usize, result: &InsertedResult) -> Option<MovedResult> {
    let InsertedResult::Moved { message, part } = *result else {
        return None;
    };
    let result = placed(lines, message, part)?;
    let Part::ToolResult { call_id, .. } = &result.part else {
        return None;
    };
    let call = lines
        .get(after)?
        .parts
        .iter()
        .find(|placed| match &placed.part {
            Part::ToolCall { id, .. } => id == call_id,
            _ => false,
        });
    Some(MovedResult {
        from: result.seq?,
        after: call?.seq?,
        call_id: call_id.clone(),
    })
}

fn placed(lines: &[Line], message: usize, part: usize) -> Option<&Placed> {
    lines.get(message)?.parts.get(part)
}

/// Splits a line into messages. Tool results become separate tool messages.
fn messages_of(line: Line) -> Vec<ContextMessage> {
    let mut messages: Vec<ContextMessage> = Vec::with_capacity(2);
    if line.inserted {
        // A moved result keeps its position in the log. A stub gets the position of its call.
        for Placed { part, seq, .. } in line.parts {
            let source = match seq {
                Some(seq) => MessageOrigin::Message {
                    first: seq,
                    last: seq,
                },
                None => line.source.clone(),
            };
            match messages.last_mut() {
                Some(last) if last.source == source => last.parts.push(part),
                _ => messages.push(ContextMessage::new(Role::Tool, source, vec![part])),
            }
        }
        return messages;
    }
    let is_result = |placed: &Placed| matches!(placed.part, Part::ToolResult { .. });
    let (results, mut others): (Vec<Placed>, Vec<Placed>) =
        line.parts.into_iter().partition(is_result);
    // Providers refuse texts without content.
    others.retain(|one| !matches!(&one.part, Part::Text { text } if text.trim().is_empty()));
    let phases = others.iter().enumerate();
    let phases = phases.filter_map(|(at, placed)| Some((at, placed.phase.clone()?)));
    let phases: BTreeMap<usize, String> = phases.collect();
    let parts_of = |placed: Vec<Placed>| placed.into_iter().map(|placed| placed.part).collect();
    let (results, mut others): (Vec<Part>, Vec<Part>) = (parts_of(results), parts_of(others));
    if results.is_empty() && others.is_empty() {
        others.push(Part::text(remark("empty message")));
    }
    let role = match line.role {
        Role::Tool => Role::User,
        role => role,
    };
    let with_phases = [
        (Role::Tool, results, BTreeMap::new()),
        (role, others, phases),
    ];
    for (role, parts, phases) in with_phases {
        if !parts.is_empty() {
            messages.push(ContextMessage {
                name: line.name.clone(),
                phases,
                ..ContextMessage::new(role, line.source.clone(), parts)
            });
        }
    }
    messages
}

impl MessageView for Line {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for placed in &self.parts {
            placed.part.view(visit);
        }
    }
}

impl EditableMessage for Line {
    type Part = Placed;

    fn take_parts(&mut self) -> Vec<Placed> {
        std::mem::take(&mut self.parts)
    }

    fn put_parts(&mut self, parts: Vec<Placed>) {
        self.parts = parts;
    }

    fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    fn results_behind(&self, parts: Vec<Placed>) -> Vec<Self> {
        vec![Self {
            role: Role::Tool,
            name: None,
            source: self.source.clone(),
            parts,
            inserted: true,
        }]
    }

    fn result_part(call_id: String, text: String) -> Placed {
        Placed {
            part: Part::ToolResult {
                call_id,
                content: ResultContent::Text(text),
                is_error: None,
            },
            seq: None,
            phase: None,
        }
    }

    fn set_text(part: &mut Placed, text: String) {
        Message::set_text(&mut part.part, text);
    }

    fn set_id(part: &mut Placed, id: String) {
        Message::set_id(&mut part.part, id);
    }

    fn result_to_text(part: Placed, heading: String) -> Vec<Placed> {
        let seq = part.seq;
        let parts = Message::result_to_text(part.part, heading).into_iter();
        let placed = |part| Placed {
            part,
            seq,
            phase: None,
        };
        parts.map(placed).collect()
    }
}
